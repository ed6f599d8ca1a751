"""Solves Inspect AI tasks by debate or by one agent alone. The scorer of the task grades the output.

Inspect AI (inspect.aisi.org.uk) is not a dependency: it is imported when a solver is created.
"""

# pyright: standard, reportMissingImports=false
# Inspect AI is not installed with the project.

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from debate import Completion, Debate, DebateConfig, Problem, SampleRequest, hold_debate
from debate.seeds import SERVER_SEEDS, derive_seed
from debate.types import Kind
from debate_rl.evaluation.grading import agreement
from debate_rl.evaluation.scores import winner_of
from debate_rl.inference.openai import restored
from envs.answers.words import LETTERS, letter_alone
from envs.registry import environment_of
from rewards import RewardConfig, score_debate

Solve: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""A Solver of Inspect AI: maps the state of a sample and ``generate`` to the new state."""


def debate_solver(
    *, direct: bool = False, kind: Kind = "expression", seed: int = 0, **protocol: Any
) -> Solve:
    """Return a solver whose output is the winner's solution. The evaluated model plays all agents.

    ``direct``: one agent alone answers, with the opening prompt of the same protocol.
    ``protocol``: keys of a recipe's ``debate``.
    ``kind``: the answer that the prompts request: "expression" or "number" in a box, or "open" for free text.
    For samples with choices, the prompts request a letter.

    The final answer is repeated in a last line, "ANSWER: 42", and choices are marked, so that the scorers
    ``match``, ``answer``, ``choice`` and model-graded scorers all find it.
    """
    from inspect_ai.solver import solver

    whole = DebateConfig.model_validate(protocol)
    config = whole.one_round(alone=True) if direct else whole

    @solver(name="debate_solver")
    def debate() -> Solve:
        async def solve(state: Any, generate: Any) -> Any:
            id, choices = str(state.sample_id), tuple(choice.value for choice in state.choices)
            checked: Kind = "choice" if choices else kind
            unknown = None if checked == "open" else ""  # no agent sees the target
            problem = Problem(id, state.input_text, unknown, "inspect", kind=checked, choices=choices)
            drawn = derive_seed(seed, "inspect", id, state.epoch)
            agreed = agreement(environment_of(problem))
            held = await hold_debate(problem, InspectPolicy(), config, seed=drawn, agreed=agreed)
            return _answered(state, held)

        return solve

    return debate()


class InspectPolicy:
    """The model that Inspect AI evaluates, as a policy. It gives texts and token counts but no token ids."""

    version = 0

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request."""
        from inspect_ai import model

        kinds = {
            "system": model.ChatMessageSystem,
            "user": model.ChatMessageUser,
            "assistant": model.ChatMessageAssistant,
        }
        likely = {"top_p": request.top_p} if request.top_p < 1 else {}
        likely |= {"top_k": request.top_k} if request.top_k else {}
        output = await model.get_model().generate(
            [kinds[message.role](content=message.content) for message in request.messages],
            config=model.GenerateConfig(
                temperature=request.temperature,
                max_tokens=request.max_tokens + request.thinking_tokens,
                stop_seqs=list(request.stop) or None,
                seed=request.seed % SERVER_SEEDS,
                **likely,
            ),
        )
        cut_off = output.stop_reason in ("max_tokens", "model_length")
        text = output.completion if cut_off else restored(output.completion, request.stop)
        usage = output.usage
        counts = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
        return Completion((), (), (), text, "length" if cut_off else "stop", 0, (), (), *counts)

    async def update(self, weights: object, version: int) -> None:
        """Raise NotImplementedError: this model cannot be trained here."""
        raise NotImplementedError("a model of Inspect AI can be evaluated but not trained")


def _answered(state: Any, debate: Debate) -> Any:
    """Return the state with the winner's solution as its output, and with every turn in its metadata."""
    from inspect_ai.model import ModelOutput

    judged = score_debate(debate, None, RewardConfig(judge_own=debate.protocol.judge_own))
    turn = debate.turn(winner_of(debate, judged))
    solution, text = turn.parsed.solution, turn.completion.text
    text = (text if solution is None else solution.of(text)).strip()
    answer = (turn.parsed.answer or "").strip()
    letter = letter_alone(answer, [choice.value for choice in state.choices])
    for index in range(len(state.choices)):
        state.choices.mark_choice(index, letter == LETTERS[index : index + 1])
    content = f"{text}\n\nANSWER: {answer}" if answer else text
    state.output = ModelOutput.from_content(model=str(state.model), content=content)
    state.messages.append(state.output.message)
    said = [
        {"agent": t.id.agent, "round": t.id.round, "text": t.completion.text, "answer": t.parsed.answer}
        for t in debate.turns
    ]
    state.metadata = {**(state.metadata or {}), "debate": said}
    return state
