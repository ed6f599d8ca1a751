"""A small run, and an application that is driven by keys and read as text."""

import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from debate_rl.inspector.terminal.app import Inspector
from transcripts import TurnAdvantages, write_step

GOLDEN = Path(__file__).parents[2] / "data" / "terminal"
REWRITE = "REWRITE_TERMINAL_SCREENS"
"""With this variable set, tests write the screens they should find."""


@dataclass
class Session:
    app: Inspector
    pilot: Pilot[Any]

    async def settle(self) -> None:
        """Wait until nothing is read any more, and all is drawn."""
        await self.pilot.pause()
        while any(not worker.is_finished for worker in self.app.workers):
            await self.pilot.pause()
        await self.pilot.pause()

    async def press(self, *keys: str) -> str:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.text

    async def write(self, words: str) -> None:
        await self.pilot.press(*(KEYS.get(character, character) for character in words))
        await self.settle()

    @property
    def strips(self):
        return self.app.screen._compositor.render_strips(self.app.size)

    @property
    def text(self) -> str:
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


@pytest.fixture(scope="session")
def add_step(step_records):
    """Return add(folder, step, count): write a further step, with advantages."""

    def add(folder: Path, step: int, count: int = 6) -> None:
        def credited(record):
            turns = record.debate.turns
            parts = tuple(TurnAdvantages(turn.id, generator=0.25, judge=-0.5) for turn in turns)
            return replace(record, advantages=parts)

        write_step(folder / "transcripts", step, map(credited, step_records(step, count)))

    return add


@pytest.fixture(scope="session")
def written(tmp_path_factory, add_step) -> Path:
    folder = tmp_path_factory.mktemp("written")
    for step in range(3):
        add_step(folder / "run", step)
    return folder / "run"


@pytest.fixture
def run(tmp_path: Path, written: Path) -> Path:
    """Return a run of three steps of six debates each."""
    return Path(shutil.copytree(written, tmp_path / "run"))
