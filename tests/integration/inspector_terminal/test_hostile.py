from dataclasses import replace

import pytest

from debate import Problem
from debate.personas import Persona
from debate.types import ParsedTurn, Span
from debate_rl.inspector.terminal.screens import Pager
from debate_rl.inspector.terminal.widgets import Lines
from transcripts import write_step

pytestmark = pytest.mark.anyio
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m \u202eabc\u2066 [red]x[/] [@click=app.quit]y[/] "
    "\x00\r\x08 \ufffd \u200b [bold $primary]z[/] {x} \\[b] end"
)
SHOWN = "<U+001B>]0;owned<U+0007><U+001B>[2J<U+009B>31m <U+202E>abc<U+2066> [red]x[/] [@click=app.quit]y[/]"


@pytest.fixture
def hostile(tmp_path, step_records):
    record, problem = step_records(0)[0], Problem("sum/[red]0[/]\x1b[2J", HOSTILE, "1", f"sums{HOSTILE}")
    persona = Persona(HOSTILE, HOSTILE)

    def spoiled(turn):
        text = f"<solution>{HOSTILE}</solution>"
        solution, failures = Span(10, 10 + len(HOSTILE)), turn.parsed.failures
        parsed = ParsedTurn(solution=solution, answer=HOSTILE, failures=failures)
        completion = replace(turn.completion, text=text, tokens=(), logprobs=(), offsets=())
        return replace(turn, completion=completion, parsed=parsed)

    turns = tuple(spoiled(turn) for turn in record.debate.turns)
    votes = tuple(replace(vote, span=Span(0, 60)) for vote in record.debate.votes)
    debate = replace(record.debate, problem=problem, personas=(persona,) * 3, turns=turns, votes=votes)
    write_step(tmp_path / "run" / "transcripts", 0, [replace(record, debate=debate)])
    return tmp_path / "run"


def harmless(session):
    for strip in session.strips:
        for segment in strip:
            assert segment.control is None
            assert all(character.isprintable() for character in segment.text), ascii(segment.text)
            assert "@click" not in (segment.style.meta if segment.style else {})


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_hostile_text_is_shown_escaped_on_every_screen(hostile, drive, size):
    async with drive(hostile, size=size) as session:
        harmless(session)
        await session.press("d")
        harmless(session)
        await session.press("enter")
        assert SHOWN in session.app.screen.query_one("#main", Lines).plain
        harmless(session)
        for key in "vwpakirmo":
            await session.press(key)
            harmless(session)
        assert isinstance(session.app.screen, Pager)
        assert "<solution><U+001B>]0;owned" in session.text


async def test_a_persona_or_a_problem_does_not_break_the_title(hostile, drive):
    async with drive(hostile, filter='problem:"sum/[red]0[/]*"') as session:
        harmless(session)
        assert "x[/]" in session.text or "›" in session.text


@pytest.fixture
def long(tmp_path, step_records):
    """A run with one message of a million characters, and one of a hundred thousand lines."""
    record = step_records(0)[0]
    texts = {(0, 0): "word " * 200_000, (1, 0): "\n" * 100_000, (2, 0): "é\u0301" * 200_000}

    def longer(turn):
        text = texts.get((turn.id.agent, turn.id.round), turn.completion.text)
        completion = replace(turn.completion, text=text, tokens=(), logprobs=(), offsets=())
        return replace(turn, completion=completion, parsed=ParsedTurn())

    turns = tuple(longer(turn) for turn in record.debate.turns)
    long = replace(record, debate=replace(record.debate, turns=turns))
    write_step(tmp_path / "run" / "transcripts", 0, [long])
    return tmp_path / "run"


@pytest.mark.slow
async def test_a_long_message_is_cut_with_a_note_and_shown_whole_when_asked(long, drive):
    async with drive(long) as session:
        await session.press("d", "enter")
        shown = session.app.screen.query_one("#main", Lines).plain
        assert (len(shown) < 30_000, "999,999 characters in total, o shows them" in shown) == (True, True)
        await session.press("o", "end")
        assert len(session.app.screen.query_one(Lines).plain) == 1_000_000
        assert session.text.splitlines()[-3].strip().startswith("word word")
        await session.press("escape", "down", "o")
        assert "100,001 rows" in session.text
        await session.press("end", "escape", "down", "o", "end")
