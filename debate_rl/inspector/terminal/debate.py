"""One debate: the grid of its turns, and under it a panel about the chosen one."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input, Static

from debate.types import TurnId
from debate_rl.formatting import one_line, safe_lines
from debate_rl.inspector.terminal.across import AcrossScreen
from debate_rl.inspector.terminal.grid import Grid
from debate_rl.inspector.terminal.panels.reading import PANELS, OpenDebate, Shown, read_debate
from debate_rl.inspector.terminal.panels.votes import chosen_votes, vote_lines
from debate_rl.inspector.terminal.screen import Matches, OpenRun, Pager, RunScreen
from debate_rl.inspector.terminal.style import FAINT, STRONG, WRONG, line
from debate_rl.inspector.terminal.widgets import Lines
from transcripts import DebateRow


class Ask(ModalScreen[str | None]):
    """Gives what was written, None where Escape was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]
    CSS = """
    Ask { align: center middle; background: transparent; }
    #ask { width: 70; max-width: 95%; height: 5; border: round $foreground; padding: 0 1; }
    #ask { background: $background; }
    #ask Input, #ask Input:focus { border: none; height: 1; padding: 0; }
    """

    def __init__(self, question: str, suggested: str) -> None:
        super().__init__()
        self._question, self._suggested = question, suggested

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="ask"):
            yield Static(self._question, markup=False)
            yield Input(self._suggested, compact=True, select_on_focus=False)
            yield Static("Enter saves, Esc leaves", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give what was written."""
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        """Give nothing."""
        self.dismiss(None)


HOME, SHOWN = "m", "vwp"
"""The key of the panel that a debate opens with, and of those that the footer shows."""
ACROSS = "the same problem in other steps, and what differs"
WIDE = 120
"""From so many columns on, the votes stand beside the text."""
LATE_S = 0.3
"""After so many seconds "reading…" takes the place of the panel before."""


class DebateScreen(RunScreen):
    """A debate; ``n`` and ``N`` go to the next and the previous one of the list that it was opened from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, f"panel({key!r})", panel.title.split()[0], show=key in SHOWN, tooltip=panel.about)
            for key, panel in PANELS.items()
        ),
        Binding("n", "match(True)", "next", tooltip="the next debate of the list"),
        Binding("N", "match(False)", "previous", show=False, tooltip="the previous debate of the list"),
        Binding("t", "thinking", "thinking", show=False, tooltip="unfold the thinking, or fold it"),
        Binding("o", "whole", "whole", show=False, tooltip="the whole message, as it was written"),
        Binding("x", "across", "same problem", show=False, tooltip=ACROSS),
        Binding("f", "fixture", "fixture", show=False, tooltip="save the debate as a fixture for tests"),
        Binding(
            "enter,tab", "other_half", "text", show=False, tooltip="to the text under the grid, and back"
        ),
        Binding("pageup,b", "turn_page(-1)", "a page of the text up", show=False),
        Binding("pagedown,space", "turn_page(1)", "a page of the text down", show=False),
    ]
    CSS = """
    #problem { height: auto; max-height: 2; padding: 0 1; }
    #panel_name { height: 1; padding: 0 1; }
    #halves { height: 1fr; }
    #side { display: none; width: 2fr; border-left: vkey $foreground; }
    #main { width: 3fr; }
    #halves.-wide #side { display: block; }
    """

    def __init__(self, run: OpenRun, id: str, matches: Matches) -> None:
        super().__init__(
            "",
            Static(id="problem", markup=False),
            Grid(id="grid"),
            Static(id="panel_name", markup=False),
            Horizontal(Lines(id="main"), Lines(id="side"), id="halves"),
        )
        self.run, self.id_shown, self.matches = run, id, matches
        self.debate: OpenDebate | None = None
        self._panel, self._folded = HOME, True
        self._late: Timer | None = None

    def result(self) -> str:
        """Return the debate that was seen last."""
        return self.id_shown

    def on_mount(self) -> None:
        """Read the debate."""
        self._retitle()
        self._open(self.id_shown)

    def _retitle(self) -> None:
        """Say where this is, and how the debate ended."""
        self.title = f"{self.run.name} › {self.matches.filter or 'all debates'} › {self.id_shown}"
        if self.debate is not None:
            view = self.debate.view
            turn = view.turn(view.winner) if view.winner else None
            grade = turn.grade if turn else "ungraded"
            self.sub_title = f"winner: {view.who(view.winner.agent)}, {grade}" if view.winner else "no winner"

    def _open(self, id: str) -> None:
        self.load("debate", lambda: read_debate(self.run, id), self._show)

    def _show(self, debate: OpenDebate) -> None:
        self.debate, self.id_shown = debate, debate.id
        grid = self.query_one(Grid)
        grid.show(debate.view, grid.chosen)
        problem = debate.view.problem
        gold = "unknown" if problem.answer is None else one_line(problem.answer, 60)
        shown = line((f"gold answer {gold}", STRONG), "  ", (one_line(problem.question, 600), ""))
        shown.no_wrap = False
        self.query_one("#problem", Static).update(shown)
        self._retitle()
        self._read()

    def on_resize(self) -> None:
        """Show the votes beside the text where the screen is wide."""
        self.query_one("#halves").set_class(self.app.size.width >= WIDE, "-wide")

    def on_grid_moved(self) -> None:
        """Show the chosen turn in the lower half."""
        self._read()

    def _read(self) -> None:
        debate, turn, folded = self.debate, self.query_one(Grid).chosen, self._folded
        if debate is None:
            return
        panel = PANELS[self._panel]
        about = f"{panel.title}  {one_line(debate.view.spelled(turn), 80)}"
        self.query_one("#panel_name", Static).update(line((f"── {about} ──", FAINT)))
        self._stop_waiting()
        self._late = self.set_timer(LATE_S, self._say_reading)
        self.load("panel", lambda: panel.read(debate, turn, folded), self._filled, self._failed)
        self.query_one("#side", Lines).show(_side(debate, turn))

    def _say_reading(self) -> None:
        """Say that the panel is being read."""
        self.query_one("#main", Lines).show([line(("reading…", FAINT))])

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.stop()

    def _filled(self, lines: Shown) -> None:
        self._stop_waiting()
        self.say("")
        self.query_one("#main", Lines).show(lines)

    def _failed(self, error: str) -> None:
        self._filled([line((one_line(error), WRONG))])

    def action_panel(self, key: str) -> None:
        """Show another panel; the same key again goes back to the message."""
        self._panel = HOME if key == self._panel else key
        self._read()

    def action_back(self) -> None:
        """Go back to the message, or out."""
        if self._panel != HOME:
            self.action_panel(HOME)
        else:
            super().action_back()

    def action_thinking(self) -> None:
        """Unfold the thinking, or fold it."""
        self._folded, self._panel = not self._folded, HOME
        self._read()

    def action_other_half(self) -> None:
        """Go from the grid to the text under it, or back."""
        self.query_one("#main" if self.query_one(Grid).has_focus else Grid).focus()

    def action_turn_page(self, by: int) -> None:
        """Scroll the lower half."""
        self.query_one("#main", Lines).action_turn(by)

    def action_whole(self) -> None:
        """Show all of the message, as it was written."""
        view = self.debate.view if self.debate else None
        turn = view.turn(self.query_one(Grid).chosen) if view else None
        if view is not None and turn is not None:
            name = f"{self.id_shown} › {view.spelled(turn.id)}, as written"
            self.app.push_screen(Pager(name, lambda: safe_lines(turn.text)))

    def action_match(self, forward: bool) -> None:
        """Go to the next or the previous debate of the list."""
        matches, store, after = self.matches, self.run.store, self.id_shown

        def read() -> list[DebateRow]:
            newest = matches.newest == forward
            return store.debates(matches.filter, newest=newest, after=after, limit=1)

        def go(rows: list[DebateRow]) -> None:
            if rows:
                self._open(rows[0].id)
            else:
                self.say(f"this is the {'last' if forward else 'first'} one of the list")

        self.load("debate", read, go)

    def action_across(self) -> None:
        """List the debates on the same problem."""
        if self.debate is not None:
            self.app.push_screen(AcrossScreen(self.debate))

    def action_fixture(self) -> None:
        """Ask for a file, and save the debate as a test's fixture."""
        suggested = f"debate_{self.id_shown.replace('.', '_')}.json"
        self.app.push_screen(Ask("save as a fixture for tests; file:", suggested), self._save)

    def _save(self, path: str | None) -> None:
        if path and self.debate is not None:
            debate = self.debate
            self.load("fixture", lambda: save(debate, path), lambda test: self._saved(path, test))

    def _saved(self, path: str, test: str) -> None:
        self.app.push_screen(Pager(f"saved {path}; a test to put beside it:", lambda: safe_lines(test)))


def save(debate: OpenDebate, path: str) -> str:
    """Write a debate as a fixture and return a test of it; ValueError where the file exists."""
    from pathlib import Path

    from debate_rl.inspector.views.fixture import save_fixture
    from debate_rl.inspector.views.reward import config_of

    config, _ = config_of(debate.run.store.run)
    return save_fixture(Path(path), debate.record, config, source=f"{debate.run.name} {debate.id}")


def _side(debate: OpenDebate, turn: TurnId) -> Shown:
    return [
        *chosen_votes(debate.graphs, debate.view, turn.agent, turn.round),
        *vote_lines(debate.view, debate.graphs),
    ]
