"""A small run, and an application that is driven by keys and read as text."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.inspector.terminal.app import Inspector
from rewards import RewardConfig, score_debate
from transcripts import Record, TurnAdvantages, write_step

GOLDEN = Path(__file__).parents[2] / "data" / "terminal"
REWRITE = "REWRITE_TERMINAL_SCREENS"
"""With this variable set, tests write the screens they should find."""


@dataclass
class Session:
    """An application that runs without a terminal."""

    app: Inspector
    pilot: Pilot[Any]

    async def settle(self) -> None:
        """Wait until nothing is read any more, and all is drawn."""
        await self.pilot.pause()
        while any(not worker.is_finished for worker in self.app.workers):
            await self.pilot.pause()
        await self.pilot.pause()

    async def press(self, *keys: str) -> str:
        """Press keys one after the other and return the screen."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.text

    async def write(self, words: str) -> None:
        """Type a text."""
        await self.pilot.press(*(KEYS.get(character, character) for character in words))
        await self.settle()

    @property
    def strips(self):
        """The rows of the screen."""
        return self.app.screen._compositor.render_strips(self.app.size)

    @property
    def text(self) -> str:
        """The screen as text."""
        rows = ("".join(segment.text for segment in strip).rstrip() for strip in self.strips)
        return "\n".join(rows) + "\n"


KEYS = {" ": "space", ":": "colon", ">": "greater_than_sign", '"': "quotation_mark", ".": "full_stop"}
KEYS |= {"/": "slash", "\\": "backslash", "_": "underscore"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def drive():
    """Return drive(path, size=(80, 24), filter="") -> the session of an open application, as a context."""

    @asynccontextmanager
    async def opened(path, *, size=(80, 24), filter=""):
        app = Inspector(path, filter=filter, every_s=None)
        async with app.run_test(size=size) as pilot:
            session = Session(app, pilot)
            await session.settle()
            yield session

    return opened


@pytest.fixture
def same_as_golden():
    """Return check(name, screen): the screen is the one of tests/data/terminal."""

    def check(name: str, screen: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get(REWRITE):
            path.write_text(screen, encoding="utf-8")
        assert screen == path.read_text(encoding="utf-8"), f"{path}; {REWRITE}=1 writes it again"

    return check


def records(step: int, problems: list[Problem], **protocol: Any):
    """Yield the debates of a step, by scripted debaters, scored and with advantages."""
    config = DebateConfig(num_agents=3, num_rounds=2, **protocol)
    answers = {problem.id: Answers(str(problem.answer), ("5", "6")) for problem in problems}
    policy = scripted_debaters(answers, solve=(0.7, 0.4, 0.5), judge=0.8, tokens=True)
    for debate in run_debates(problems, policy, config, seed=step):
        solved = {(t.id.agent, t.id.round): t.parsed.answer for t in debate.turns if not t.ballot}
        correct = tuple(
            tuple(solved[a, r] == debate.problem.answer if solved[a, r] else "missing" for r in range(2))
            for a in range(3)
        )
        rewards = score_debate(debate, correct, RewardConfig())
        parts = tuple(TurnAdvantages(turn.id, generator=0.25, judge=-0.5) for turn in debate.turns)
        yield Record(debate, step, debate.problem.id, correct, rewards, parts)


def write(folder: Path, step: int, count: int) -> None:
    """Write a step of this many debates."""
    problems = [Problem(f"sum/{n}", f"What is {n} + 1?", str(n + 1), "sums") for n in range(count)]
    write_step(folder / "transcripts", step, records(step, problems))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of three steps of six debates each."""
    for step in range(3):
        write(tmp_path / "run", step, 6)
    return tmp_path / "run"


@pytest.fixture
def add_step():
    """Return add(folder, step, count): write a further step."""
    return write


@pytest.fixture
def step_of():
    """Return make(step, problems): the records of a step."""
    return records
