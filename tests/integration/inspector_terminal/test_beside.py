import pytest

from debate_rl.commands.console import Ended
from debate_rl.commands.replay import replay
from debate_rl.inspector.terminal.debate import DebateScreen
from debate_rl.inspector.terminal.screens import Pager
from debate_rl.inspector.terminal.widgets import Lines

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_the_same_problem_in_other_steps(run, drive):
    async with drive(run) as session:
        await session.press("d", "down", "enter", "x")
        assert "problem sum/1" in session.text
        assert [held.ref for held in session.app.screen.query_one("#held").items] == ["0.1", "1.1", "2.1"]
        assert "that you came from" in await session.press("enter")
        await session.press("down", "enter")
        assert isinstance(session.app.screen, Pager)
        shown = session.app.screen.query_one(Lines).plain
        assert "[-only 0.1-]  {+only 1.1+}" in shown
        assert "votes: " in shown
        await session.press("escape", "o")
        assert isinstance(session.app.screen, DebateScreen)
        assert session.app.screen.id_shown == "1.1"
        await session.press("n")
        assert session.app.screen.id_shown == "2.1"


@pytest.fixture
def replayed(run):
    """The run with two replays: one under another weight of truth, and one that is damaged."""
    (run / "config.toml").write_text('[run]\ndir = "run"\n[model]\nname_or_path = "none"\n', encoding="utf-8")
    with pytest.raises(Ended):  # the advantages of these debates are made up, and it says so
        replay(str(run), overrides=["rewards.truth_weight=0.3"])
    (run / "replays" / "torn").mkdir()
    (run / "replays" / "torn" / "replay.json").write_text('{"schema": 1,', encoding="utf-8")
    return run


@pytest.mark.slow
async def test_what_other_schemes_would_have_given(replayed, drive):
    async with drive(replayed) as session:
        await session.press("r")
        listed = session.app.screen.query_one("#replays").items
        assert [bool(item.problem) for item in listed] == [False, True]
        await session.press("enter")
        figures = session.app.screen.query_one("#figures", Lines).plain
        assert "18 of 18 debates have new advantages" in figures
        assert "by persona and round" in figures
        changed = session.app.screen.query_one("#changed").items[0].id
        await session.press("enter", "r")
        assert session.app.screen.id_shown == changed
        shown = session.app.screen.query_one("#main", Lines).plain
        assert "rewards.truth_weight=0.3" in shown
        assert "under both schemes" in shown
        await session.press("escape", "escape", "escape", "down", "enter")
        assert "torn" in "".join(row.strip() for row in session.text.splitlines()[-4:])


async def test_what_cannot_be_read_is_one_line(run, drive):
    shard = next(path for path in (run / "transcripts").glob("step_000002*"))
    lines = shard.read_bytes().splitlines(keepends=True)
    shard.write_bytes(b"".join([lines[0], b"x" * 40 + b"\n", *lines[2:]]))

    async with drive(run) as session:
        assert "1 damaged place" in session.text
        await session.press("d", "end", "enter")
        assert session.app.screen.id_shown == "2.5"
