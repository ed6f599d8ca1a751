"""The frozen reader of a run: log-probabilities of gold answers behind reasoning, without the question.

It is the reference that updates may be held near: below an adapter the base model, of full weights a copy. It
never learns, so that a reward can rise by what the reasoning says alone, and not by a code between a policy
and a reader that learn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from debate import Debate, Problem, run_debates
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.inference.local import LocalPolicy
from debate_rl.likelihood.answer_rows import AnswerRows, mean_logprobs
from debate_rl.likelihood.baselines import Baseline, Baselines
from debate_rl.likelihood.reasoning import reasoning_of, solution_of
from debate_rl.runs.trainer_state import generators_kept
from envs.types import Mode
from learner.types import Row
from learner.update.learner import Learner
from learner.update.reference import Reference
from rewards.likelihood import Likelihoods
from rewards.types import stream_of


def open_reader(config: Config, learner: object, tokenizer: Any, path: Path) -> Reader | None:
    """Return the reader of a run; None where nothing rewards a likelihood, ValueError with several ranks."""
    if not config.rewards.reads_likelihood:
        return None
    if not isinstance(learner, Learner):
        raise ValueError(
            "rewards.likelihood_weight: the frozen reader is the reference of one learner, and here several "
            "ranks have a share of it each; train on one GPU, or set it to 0"
        )
    return Reader(config, learner, tokenizer, path)


@dataclass
class Reader:
    """Reads the solutions of a run's steps; ``path`` is the run's folder, where baselines are kept."""

    config: Config
    learner: Learner
    tokenizer: Any
    path: Path
    baselines: Baselines = field(init=False)

    def __post_init__(self) -> None:
        self.baselines = Baselines(self.path)

    def read(self, debates: Sequence[Debate], step: int) -> list[Likelihoods]:
        """Return what the gold answer gets behind each solution of these debates, and of each baseline."""
        mode = self.config.grader.mode_at(step)
        baselines = self._baselines(debates, step, mode)
        turns = [
            (index, turn) for index, debate in enumerate(debates) for turn in debate.turns if not turn.ballot
        ]
        texts = [
            (problem := debates[index].problem, self._read_of(problem, solution_of(turn), mode))
            for index, turn in turns
        ]
        values: list[dict[TurnId, float | None]] = [{} for _ in debates]
        for (index, turn), value in zip(turns, self.logprobs(texts), strict=True):
            values[index][turn.id] = value
        return [
            Likelihoods(
                stream_of(of_turns, debate.protocol.num_agents, debate.protocol.num_rounds),
                baselines.get(debate.problem.id),
            )
            for debate, of_turns in zip(debates, values, strict=True)
        ]

    def _read_of(self, problem: Problem, solution: str, mode: Mode) -> str:
        whole = self.config.likelihood.reads == "solution"
        return solution if whole else reasoning_of(solution, problem, mode)

    def _baselines(self, debates: Sequence[Debate], step: int, mode: Mode) -> dict[str, float | None]:
        """Return the baseline of each problem by its id; those that are new are read, and kept."""
        kind = self.config.likelihood.baseline
        problems = {debate.problem.id: debate.problem for debate in debates}
        if kind == "none":
            return {}
        if kind == "empty":
            read = self.logprobs([(problem, "") for problem in problems.values()])
            return dict(zip(problems, read, strict=True))
        new = [problem for id, problem in problems.items() if id not in self.baselines.known]
        texts = self._written(new, step) if new else []
        read = self.logprobs(
            [(problem, self._read_of(problem, text, mode)) for problem, text in zip(new, texts, strict=True)]
        )
        read = self._or_empty(new, read)
        rows = zip(new, texts, read, strict=True)
        self.baselines.add(Baseline(step, problem.id, text, value) for problem, text, value in rows)
        return {id: self.baselines.known[id] for id in problems}

    def _or_empty(self, problems: Sequence[Problem], read: Sequence[float | None]) -> list[float | None]:
        """Return what was read, and behind no reasoning what did not fit the context."""
        long = [problem for problem, value in zip(problems, read, strict=True) if value is None]
        empty = iter(self.logprobs([(problem, "") for problem in long]) if long else ())
        return [next(empty) if value is None else value for value in read]

    def _written(self, problems: Sequence[Problem], step: int) -> list[str]:
        """Return a solution of each problem by the reference, one agent alone."""
        seed = derive_seed(self.config.seed, "likelihood", step)
        alone = self.config.at_step(step).debate.one_round(alone=True)
        protocol = alone.model_copy(update={"tools": "none"})  # outputs are not read as reasoning
        with generators_kept(), self._reference.model():
            held = run_debates(problems, self._writer, protocol, seed=seed)
        return [solution_of(debate.turns[0]) for debate in held]

    @property
    def _reference(self) -> Reference:
        assert self.learner.reference is not None, "check_likelihood refuses a run without one"
        return self.learner.reference

    @cached_property
    def _writer(self) -> LocalPolicy:
        """What speaks with the reference's weights, while the model has them."""
        model: Any = self._reference.module or self.learner.model
        settings = local_settings(self.config)
        return LocalPolicy(model, self.tokenizer, compute=self.learner.compute, **settings)

    def logprobs(self, texts: Sequence[tuple[Problem, str]]) -> list[float | None]:
        """Return the mean log-probability of a token of each gold answer behind a text, in nats.

        None for one that does not fit the model's context, or has no gold answer.
        """
        rows = [self.rows.row(problem, text) for problem, text in texts]
        known = [row for row in rows if row is not None]
        values = iter(reference_logprobs(self.learner, known))
        return [None if row is None else next(values) for row in rows]

    @cached_property
    def rows(self) -> AnswerRows:
        """What makes prompts of reasoning."""
        return AnswerRows(self.learner.model, self.tokenizer, self.config.likelihood)


def reference_logprobs(learner: Learner, rows: Sequence[Row]) -> list[float]:
    """Return the mean log-probability of the actions of each row under the learner's reference, in nats."""
    reference = learner.reference
    assert reference is not None
    with reference.model() as model:
        return mean_logprobs(
            model, rows, max_tokens=learner.config.micro_batch_tokens, compute=learner.compute
        )
