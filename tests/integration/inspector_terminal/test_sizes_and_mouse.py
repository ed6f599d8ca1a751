import pytest

from debate_rl.inspector.terminal.debate import DebateScreen
from debate_rl.inspector.terminal.widgets import Grid, Lines, Listing

pytestmark = pytest.mark.anyio


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
