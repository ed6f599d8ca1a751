import os
import shutil
import threading

import pytest

from debate_rl.commands.console import Ended
from debate_rl.commands.replay import replay
from debate_rl.inspector.terminal.debate import PANELS, DebateScreen
from debate_rl.inspector.terminal.screens import PAGE, Debates, Pager, Runs, Steps
from debate_rl.inspector.terminal.widgets import Grid, Lines, Listing
from transcripts import RunStore

pytestmark = pytest.mark.anyio


async def test_the_list_of_runs_follows_them_and_the_cursor_stays_on_its_run(tmp_path, drive, add_step):
    for age, name in enumerate(("first", "second")):
        add_step(tmp_path / "runs" / name, 0, 2)
        aged(tmp_path / "runs" / name, 1000 - age)

    async with drive(tmp_path / "runs") as session:
        assert [one.run.name for one in session.app.screen.list.items] == ["first", "second"]
        await session.press("down")
        add_step(tmp_path / "runs" / "second", 1, 2)
        aged(tmp_path / "runs" / "second", 2000)
        await session.app.look_again()
        await session.settle()
        shown = session.app.screen.list
        assert [(one.run.name, one.progress) for one in shown.items] == [("second", "2"), ("first", "1")]
        assert shown.current.run.name == "second"


def aged(run, seconds):
    for shard in (run / "transcripts").iterdir():
        os.utime(shard, (seconds, seconds))


async def test_all_the_way_in_and_out(run, drive, tmp_path):
    shutil.copytree(run, tmp_path / "other")

    async with drive(tmp_path) as session:
        seen = [type(session.app.screen)]
        for key in ("enter", "enter", "enter", "escape", "backspace", "escape", "escape"):
            await session.press(key)
            seen.append(type(session.app.screen))
        assert seen == [Runs, Steps, Debates, DebateScreen, Debates, Steps, Runs, Runs]
        assert "q quits" in session.text
        await session.press("q")


async def test_a_single_run_opens_at_its_steps_and_a_filter_at_its_debates(run, drive):
    async with drive(run) as session:
        assert isinstance(session.app.screen, Steps)
        assert "18 debates in 3 steps" in session.text
        await session.press("down", "down", "enter")
        assert session.app.screen.matches.filter == "step:1"
        assert [row.id for row in session.app.screen.list.items] == [f"1.{n}" for n in range(6)]

    async with drive(run, filter="step:>0") as session:
        assert session.app.screen.matches.filter == "step:>0"
        assert session.app.screen.count == 12
        await session.press("escape")
        assert isinstance(session.app.screen, Steps)
    async with drive(run, filter="step:99") as session:
        assert "no debate matches this filter" in session.text


async def test_a_filter_holds_for_the_run_that_is_chosen(run, drive, tmp_path):
    shutil.copytree(run, tmp_path / "other")

    async with drive(tmp_path, filter="id:2.4") as session:
        assert isinstance(session.app.screen, Runs)
        await session.press("enter")
        assert [row.id for row in session.app.screen.list.items] == ["2.4"]


@pytest.mark.slow
async def test_a_filter_and_the_place_of_its_error(run, drive):
    async with drive(run) as session:
        await session.press("d", "slash")
        await session.write("winner:wrnog")
        screen = (await session.press("enter")).splitlines()
        caret = next(place for place, row in enumerate(screen) if row.strip() == "^")
        assert screen[caret].index("^") == screen[caret - 1].index("wrnog")
        assert "did you mean" in session.text
        await session.press(*["backspace"] * len("wrnog"), *"wrong", "enter")
        with RunStore.open(run) as store:
            wanted = [row.id for row in store.debates("winner:wrong")]
        assert [row.id for row in session.app.screen.list.items] == wanted
        assert session.app.screen.list.has_focus
        await session.press("slash", "escape")
        assert session.app.screen.matches.filter == "winner:wrong"


async def test_words_are_searched_once_they_are_read(run, drive, monkeypatch):
    """The full text is built in slices, and how far it is is told."""
    said, real, calls = [], RunStore.index_text, []

    def slowly(store, **given):
        calls.append(given)
        return len(calls) > 2 and real(store)

    monkeypatch.setattr(RunStore, "index_text", slowly)
    monkeypatch.setattr(RunStore, "text_read", lambda store: (34, 100))
    monkeypatch.setattr(Debates, "say", lambda face, words, **_: said.append(words))

    async with drive(run, filter='text:"What" OR step:0..2') as session:
        assert session.app.screen.count == 18
        assert len(calls) >= 3
        assert all(given["seconds"] < 1 for given in calls if given)

    assert said[:2] == ["indexing the words of all debates: 34%"] * 2


@pytest.mark.slow
async def test_next_and_previous_match(run, drive):
    async with drive(run, filter="winner:right") as session:
        wanted = [row.id for row in session.app.screen.list.items]
        assert len(wanted) > 2
        await session.press("enter")
        seen = [session.app.screen.id_shown]
        for _ in wanted[1:]:
            await session.press("n")
            seen.append(session.app.screen.id_shown)
        assert seen == wanted
        assert "last debate of the list" in await session.press("n")
        await session.press("N")
        assert session.app.screen.id_shown == wanted[-2]
        await session.press("escape")
        assert session.app.screen.list.current.id == wanted[-2]
        await session.press("o", "enter", "n")
        assert session.app.screen.id_shown == wanted[-2]


@pytest.mark.slow
async def test_pages_are_read_as_the_cursor_comes_near_the_end(tmp_path, drive, add_step):
    for step in range(3):
        add_step(tmp_path / "run", step, 45)

    async with drive(tmp_path / "run", filter="step:>=0") as session:
        listed = session.app.screen.list
        assert (len(listed.items), session.app.screen.count) == (PAGE, 135)
        await session.press("end")
        assert (len(listed.items), listed.current.id) == (135, "2.9")
        assert "2.44" in await session.press("end")
        assert listed.current.id == "2.44"


@pytest.mark.slow
@pytest.mark.parametrize("newest", [False, True])
async def test_debates_that_come_are_marked_and_the_cursor_stays(run, drive, add_step, newest):
    add_step(run, 3, 40)

    async with drive(run) as session:
        await session.press("d", *(["o"] if newest else []), "down", "down")
        listed = session.app.screen.query_one(Listing)
        before, row = listed.current.id, listed.cursor - listed.scroll_offset.y
        add_step(run, 4, 10)
        await session.app.look_again()
        await session.settle()
        assert listed.current.id == before
        assert listed.cursor - listed.scroll_offset.y == row
        every = session.app.open_run.store.debates(newest=newest, limit=200)
        assert [row.id for row in listed.items] == [row.id for row in every]
        assert session.app.screen.fresh == {f"4.{n}" for n in range(10)}
        assert "68 debates, 10 new" in session.text
        await session.press("home" if newest else "end")
        assert "•  4." in session.text
        await session.press("escape")
        assert session.app.screen.query_one(Listing).items[-1].step == 4


@pytest.mark.slow
async def test_the_grid_chooses_the_turn(run, drive):
    async with drive(run) as session:
        await session.press("d", "enter", "down", "right")
        grid = session.app.screen.query_one(Grid)
        assert (grid.chosen.agent, grid.chosen.round) == (1, 1)
        turn = session.app.screen.debate.view.turns[1][1]
        [solution] = [piece.of(turn.text).strip() for piece in turn.pieces if piece.kind == "solution"]
        assert solution in session.app.screen.query_one("#main", Lines).plain
        await session.press("up", "up", "left", "left", "right", "right", "right", "right")
        assert (grid.chosen.agent, grid.chosen.round) == (0, 2)


WAYS = {Runs: (), Steps: ("enter",), Debates: ("enter", "d"), DebateScreen: ("enter", "d", "enter")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WAYS)
async def test_help_lists_every_key_that_does_something(run, drive, tmp_path, kind):
    shutil.copytree(run, tmp_path / "other")

    async with drive(tmp_path) as session:
        await session.press(*WAYS[kind])
        screen = session.app.screen
        assert isinstance(screen, kind)
        bound = {node for node, *_ in screen.active_bindings.values()}
        assert {screen, screen.focused, session.app} == bound
        ours = [one.binding for one in screen.active_bindings.values() if not one.binding.system]
        await session.press("question_mark")
        told = session.app.screen.query_one(Lines).plain
        for binding in ours:
            [row] = [row for row in told.splitlines() if row.endswith(binding.tooltip or binding.description)]
            assert session.app.get_key_display(binding) in row.split(), row
        await session.press("question_mark")
        assert session.app.screen is screen


async def test_a_panel_that_takes_long_does_not_leave_the_one_before_under_its_name(run, drive, monkeypatch):
    go_on = threading.Event()
    panel = PANELS["p"]
    slow = panel._replace(read=lambda *asked: panel.read(*asked) if go_on.wait(60) else [])
    monkeypatch.setitem(PANELS, "p", slow)

    async with drive(run) as session:
        assert "solution" in await session.press("enter", "enter")
        monkeypatch.setattr("debate_rl.inspector.terminal.debate.LATE_S", 0.001)
        await session.pilot.press("p")
        while "reading…" not in session.text:
            await session.pilot.pause()
        go_on.set()
        await session.settle()
        assert "reading…" not in session.text


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (40, 10), (160, 50), (20, 6)])
async def test_resizing_loses_nothing(run, drive, size):
    async with drive(run) as session:
        await session.press("d", "down", "enter", "down", "v")
        before = session.app.screen.query_one("#main", Lines).plain
        await session.pilot.resize_terminal(*size)
        await session.settle()
        assert session.app.screen.query_one("#main", Lines).plain == before
        assert all(len(row) <= size[0] for row in session.text.splitlines())
        side = session.app.screen.query_one("#side", Lines)
        assert side.display == (size[0] >= 120)
        await session.press("escape", "escape")
        assert session.app.screen.query_one(Listing).current.id == "0.1"


async def test_a_click_moves_the_cursor_and_a_second_one_opens(run, drive):
    async with drive(run) as session:
        await session.press("d")
        await session.pilot.click("#debates", offset=(10, 4))
        await session.settle()
        assert session.app.screen.query_one(Listing).cursor == 3
        await session.pilot.click("#debates", offset=(10, 4))
        await session.settle()
        assert isinstance(session.app.screen, DebateScreen)
        assert session.app.screen.id_shown == "0.3"
        await session.pilot.click("#grid", offset=(45, 2))
        await session.settle()
        chosen = session.app.screen.query_one(Grid).chosen
        assert (chosen.agent, chosen.round) == (1, 1)


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
