"""The solver for Inspect AI, against a double of the parts of its interface that the solver uses.

The double has the signatures of inspect_ai 0.3: ``solver(name=...)``, a model's ``generate(input, config)``,
``GenerateConfig``, ``ModelOutput.from_content`` and the fields of ``TaskState``.
"""

import asyncio
import sys
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate_rl.evaluation.inspect_ai_solver import debate_solver

RIGHT, WRONG = r"It is \boxed{4}.", r"It is \boxed{5}."


@dataclass
class Message:
    content: str
    role: str = "assistant"


class ModelOutput(SimpleNamespace):
    """``completion``, ``stop_reason`` and ``usage``; its message is that of the assistant."""

    @staticmethod
    def from_content(model, content):
        return ModelOutput(model=model, completion=content)

    @property
    def message(self):
        return Message(self.completion)


class Choices(list):
    def mark_choice(self, index, correct):
        self[index].correct = correct


@dataclass
class TaskState:
    input_text: str = "What is 2 + 2?"
    sample_id: int | str = 1
    epoch: int = 1
    model: str = "mock/model"
    choices: Choices = field(default_factory=Choices)
    messages: list = field(default_factory=list)
    metadata: dict = field(default_factory=dict)
    output: ModelOutput | None = None


class Model:
    """The first agent is right, the others are not; whoever compares prefers the right one."""

    def __init__(self, right=RIGHT, wrong=WRONG, stop_reason="stop"):
        self.asked, self._said, self._stop = [], (right, wrong), stop_reason

    async def generate(self, input, config):
        self.asked.append((input, config))
        opening = "</comparison>" not in config.stop_seqs
        text = self._said[(len(self.asked) - 1) % 3 > 0]
        said = f"<solution>{text}"  # the stop string is cut off, as Inspect AI does
        if not opening:
            said = "<evaluation>.</evaluation>" + self.judged(input)
        usage = SimpleNamespace(input_tokens=7, output_tokens=3)
        return ModelOutput(completion=said, stop_reason=self._stop, usage=usage)

    def judged(self, messages):
        """Return votes for the right solution over every other that the prompt shows, but the judge's own."""
        seen = read_prompt(load_prompts("default"), messages)
        others = {e.handle: "{4}" in e.solution for e in seen.entries if e.handle != seen.handle}
        good = [handle for handle, right in others.items() if right]
        lines = [f"{one} > {other}" for one in good for other, right in others.items() if not right]
        return "<comparison>" + "\n".join(lines) + "\n"


@pytest.fixture
def inspect_ai(monkeypatch):
    solver_module, model_module = ModuleType("inspect_ai.solver"), ModuleType("inspect_ai.model")
    solver_module.solver = lambda name: lambda make: make
    for role in ("assistant", "system", "user"):
        setattr(model_module, f"ChatMessage{role.capitalize()}", partial(Message, role=role))
    model_module.GenerateConfig, model_module.ModelOutput = SimpleNamespace, ModelOutput
    modules = {"": ModuleType("inspect_ai"), ".solver": solver_module, ".model": model_module}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"inspect_ai{name}", module)

    def use(model):
        model_module.get_model = lambda: model
        return model

    return use


def solved(state=None, **settings):
    return asyncio.run(debate_solver(**settings)(state or TaskState(), None))


def test_one_agent_alone_is_one_request_and_its_solution_is_the_output(inspect_ai):
    model = inspect_ai(Model())
    state = solved(direct=True, max_tokens=50, temperature=0.3)
    assert state.output.completion == RIGHT + "\n\nANSWER: 4"
    assert [message.content for message in state.messages] == [state.output.completion]
    [(messages, config)] = model.asked
    assert "2 + 2" in messages[-1].content
    assert (config.temperature, config.max_tokens, config.stop_seqs) == (0.3, 50, ["</solution>"])
    said = {"agent": 0, "round": 0, "text": f"<solution>{RIGHT}</solution>", "answer": "4"}
    assert state.metadata["debate"] == [said]


def test_a_debate_asks_every_agent_in_every_round_and_the_winner_is_the_output(inspect_ai):
    model = inspect_ai(Model())
    state = solved(num_agents=3, num_rounds=1)
    assert len(model.asked) == 3 + 3  # solutions, then the ballot
    assert len({config.seed for _, config in model.asked}) == 6
    assert len(state.metadata["debate"]) == 6
    assert state.output.completion == f"{RIGHT}\n\nANSWER: 4"  # two judges of three prefer it


def test_without_votes_an_agent_is_drawn_by_the_sample(inspect_ai, monkeypatch):
    inspect_ai(Model())
    monkeypatch.setattr(Model, "judged", lambda model, messages: "<comparison>\n")
    drawn, again = (
        [solved(TaskState(sample_id=n), num_agents=3, num_rounds=1).output.completion for n in range(8)]
        for _ in range(2)
    )
    assert drawn == again
    assert set(drawn) == {f"{RIGHT}\n\nANSWER: 4", f"{WRONG}\n\nANSWER: 5"}


def test_choices_are_asked_for_as_letters_and_marked(inspect_ai):
    model = inspect_ai(Model(right=r"So \boxed{(B)}"))
    choices = Choices(SimpleNamespace(value=value, correct=None) for value in ("3", "4", "5"))
    state = solved(TaskState(choices=choices), direct=True)
    assert [choice.correct for choice in state.choices] == [False, True, False]
    assert "letter" in model.asked[0][0][-1].content


def test_a_reply_that_was_cut_off_and_one_without_an_answer_are_left_to_the_scorer(inspect_ai):
    inspect_ai(Model(right="I would say", stop_reason="max_tokens"))
    state = solved(direct=True)
    assert state.output.completion == "I would say"
    assert state.metadata["debate"][0]["answer"] is None
    with pytest.raises(ValueError, match="num_agent"):  # refused before any sample
        debate_solver(num_agent=3)
