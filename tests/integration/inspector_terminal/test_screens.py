"""The screens at 80 by 24, as text: tests/data/terminal holds what they should be."""

import os
import re

import pytest

pytestmark = pytest.mark.anyio
DEBATE = ("d", "down", "enter")


@pytest.mark.slow
async def test_screens(run, drive, same_as_golden):
    async with drive(run) as session:
        for name, *keys in (
            ("steps",),
            ("debates", "d"),
            ("filter", "slash"),
            ("votes", "escape", "down", "enter", "v"),
            *(("adoption", "a"), ("parsing", "p"), ("tokens", "k"), ("problem", "i")),
            ("help", "question_mark"),
            ("message", "escape", "m", "right"),
        ):
            same_as_golden(name, await session.press(*keys))


async def test_runs(tmp_path, drive, same_as_golden, add_step):
    for age, name in enumerate(("first", "second")):
        add_step(tmp_path / "runs" / name, 0, 2)
        for shard in (tmp_path / "runs" / name / "transcripts").iterdir():
            os.utime(shard, (1000 - age, 1000 - age))

    async with drive(tmp_path / "runs") as session:
        same_as_golden("runs", session.text)


async def test_a_wide_screen_has_the_votes_beside_the_text(run, drive, same_as_golden):
    async with drive(run, size=(140, 30)) as session:
        same_as_golden("wide", await session.press(*DEBATE))


async def test_without_colour_every_sign_and_the_cursor_are_still_there(run, drive, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async with drive(run) as session:
        screen = await session.press("d")
        assert not any(has_colour(segment.style) for strip in session.strips for segment in strip)
        [row] = [strip for strip in session.strips if strip.text.startswith("›")]
        assert any(segment.style.reverse for segment in row)
        assert re.search(r"[✓✗] (right|wrong)", screen)
        await session.press("enter")
        chosen = [s.text for strip in session.strips[2:] for s in strip if s.style and s.style.reverse]
        assert [text.strip() for text in chosen] == ["✓  1"]


def has_colour(style) -> bool:
    return style is not None and any(c is not None and not c.is_default for c in (style.color, style.bgcolor))
