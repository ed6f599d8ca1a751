"""One debate: a grid of its turns, panels about the selected turn, and the same problem in other debates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Static

from debate.types import TurnId
from debate_rl.formatting import one_line, safe_lines
from debate_rl.inspector.blocks import Block, Layout, Line, Section, Span
from debate_rl.inspector.lists import PROBLEM_DEBATES, Column
from debate_rl.inspector.runs import config_of, evaluation_of
from debate_rl.inspector.terminal.screens import ListScreen, Matches, OpenRun, Pager, RunScreen
from debate_rl.inspector.terminal.widgets import Grid, Lines, Listing, rich_lines
from debate_rl.inspector.views.across import ProblemDebate, across, compare, comparison_blocks, read
from debate_rl.inspector.views.debate import DebateView, adoption_view, debate_view
from debate_rl.inspector.views.debate_blocks import answers_blocks, problem_blocks, turn_card
from debate_rl.inspector.views.parsing import parsing_blocks
from debate_rl.inspector.views.prompts import DebatePrompts, prompt_blocks
from debate_rl.inspector.views.replays import debate_replay_blocks, read_replay, replays
from debate_rl.inspector.views.tokens import token_blocks, token_view
from debate_rl.inspector.views.votes import RoundGraph, vote_graphs, votes_blocks, votes_of_turn
from debate_rl.inspector.views.why import why
from debate_rl.inspector.views.why_text import why_blocks
from transcripts import DebateRow, Record

MOST = 20_000
"""Maximum number of characters of a text, and of tokens, shown at once. ``o`` shows a whole message."""
LAYOUT = Layout(unfold="t shows them", most=MOST, further=", o shows them", indent="")


@dataclass(frozen=True, slots=True)
class OpenDebate:
    """A loaded debate: the record without token arrays, and the data of all panels."""

    run: OpenRun
    id: str
    record: Record
    view: DebateView
    graphs: tuple[RoundGraph, ...]


def read_debate(run: OpenRun, id: str) -> OpenDebate:
    """Read a debate by its id, or by its ref in an evaluation. TranscriptError if it cannot be read."""
    record = read(run.store, id)
    return OpenDebate(run, id, record, debate_view(id, record), vote_graphs(record))


def _message(debate: OpenDebate, turn: TurnId, folded: bool) -> list[Block]:
    shown = debate.view.turn(turn)
    none = Line("there is no turn here", "faint")
    return [none if shown is None else turn_card(debate.view, shown, fold=folded)]


def _tokens(debate: OpenDebate, turn: TurnId, folded: bool) -> list[Block]:
    store = debate.run.store
    record = store.debate(debate.id, tokens=True)
    return token_blocks(token_view(record, turn, evaluation=evaluation_of(store.run)), 0, MOST)


def _why(debate: OpenDebate, turn: TurnId, folded: bool) -> list[Block]:
    config, note = config_of(debate.run.store.run)
    return why_blocks(why(debate.run.store, config, debate.id, turn, note=note))


def _replays(debate: OpenDebate, turn: TurnId, folded: bool) -> list[Block]:
    blocks: list[Block] = []
    for listed in replays(debate.run.store.run):
        if not listed.problem:
            found = read_replay(debate.run.store.run, listed.name).debate(debate.id)
            none: list[Block] = [Line("this debate is not in the replay", "faint")]
            title = f"{listed.name}: {' '.join(listed.overrides)}"
            blocks.append(Section(title, none if found is None else debate_replay_blocks(found)))
    none_made = "this run has no replay: debate replay RUN rewards.truth_weight=0.3 makes one"
    return blocks or [Line(none_made, "faint")]


def _prompt(debate: OpenDebate, turn: TurnId, folded: bool) -> list[Block]:
    store = debate.run.store
    prompts = DebatePrompts(read(store, debate.id, tokens=True).debate, store.run)
    return prompt_blocks(debate.view, prompts, turn)


class Panel(NamedTuple):
    """A panel in the lower half: its title, its subject, and a function that returns its blocks."""

    title: str
    about: str
    read: Callable[[OpenDebate, TurnId, bool], Iterable[Block]]


PANELS: Final[dict[str, Panel]] = {
    "m": Panel("message", "message, by sections", _message),
    "v": Panel(
        "votes",
        "votes by round: who beat whom, and whether votes are right",
        lambda on, turn, folded: votes_blocks(on.view, on.graphs[::-1]),
    ),
    "w": Panel("why this reward", "why this reward: from the votes to the advantage", _why),
    "p": Panel(
        "parsing",
        "parsing: what is malformed, and why",
        lambda on, turn, folded: parsing_blocks(on.view, on.record, chosen=turn),
    ),
    "a": Panel(
        "answers",
        "answers by round, and who adopted whose answer",
        lambda on, turn, folded: answers_blocks(on.view, adoption_view(on.record)),
    ),
    "k": Panel("tokens", "tokens with advantages, and their sums by section", _tokens),
    "r": Panel("replays", "replays: rewards under other schemes", _replays),
    "P": Panel("prompt", "the prompt that the turn read", _prompt),
    "i": Panel(
        "problem",
        "the whole problem, the agents, seed and version",
        lambda on, turn, folded: problem_blocks(on.view),
    ),
}
"""The panels by their key."""
HOME, SHOWN = "m", "vwp"
"""The key of the first panel, and the keys in the footer."""
ELSEWHERE = "the same problem in other steps, and the differences"
WIDE = 120
"""Minimum number of columns of a terminal that shows the votes next to the text."""
LATE_S = 0.3
"""Seconds after which "reading…" replaces the previous panel."""


class DebateScreen(RunScreen):
    """A debate. The keys ``n`` and ``N`` show the next and the previous debate of the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, f"panel({key!r})", panel.title.split()[0], show=key in SHOWN, tooltip=panel.about)
            for key, panel in PANELS.items()
        ),
        Binding("n", "match(True)", "next", tooltip="the next debate of the list"),
        Binding("N", "match(False)", "previous", show=False, tooltip="the previous debate of the list"),
        Binding("t", "thinking", "thinking", show=False, tooltip="unfold or fold the thinking"),
        Binding("o", "whole", "whole", show=False, tooltip="the whole message as written"),
        Binding("x", "across", "same problem", show=False, tooltip=ELSEWHERE),
        Binding(
            "enter,tab", "other_half", "text", show=False, tooltip="to the text below the grid, and back"
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
        problem, name = Static(id="problem", markup=False), Static(id="panel_name", markup=False)
        halves = Horizontal(Lines(id="main"), Lines(id="side"), id="halves")
        super().__init__("", problem, Grid(id="grid"), name, halves)
        self.run, self.id_shown, self.matches = run, id, matches
        self.debate: OpenDebate | None = None
        self._panel, self._folded = HOME, True
        self._late: Timer | None = None

    def on_mount(self) -> None:
        self._retitle()
        self._open(self.id_shown)

    def _retitle(self) -> None:
        """Update the title: the debate and its winner."""
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
        shown = Text.assemble((f"gold answer {gold}", "bold"), "  ", one_line(problem.question, 600))
        self.query_one("#problem", Static).update(shown)
        self._retitle()
        self._read()

    def on_resize(self) -> None:
        self.query_one("#halves").set_class(self.app.size.width >= WIDE, "-wide")

    def on_grid_moved(self) -> None:
        self._read()

    def _read(self) -> None:
        debate, turn, folded = self.debate, self.query_one(Grid).chosen, self._folded
        if debate is None:
            return
        panel = PANELS[self._panel]
        about = f"{panel.title}  {one_line(debate.view.spelled(turn), 80)}"
        self.query_one("#panel_name", Static).update(Text(f"── {about} ──", "dim"))
        if self._late is not None:
            self._late.stop()
        main = self.query_one("#main", Lines)
        self._late = self.set_timer(LATE_S, lambda: main.show([Text("reading…", "dim")]))
        self.load(
            "panel", lambda: rich_lines(panel.read(debate, turn, folded), LAYOUT), self._filled, self._failed
        )
        votes = [*votes_of_turn(debate.view, debate.graphs, turn), *votes_blocks(debate.view, debate.graphs)]
        self.query_one("#side", Lines).show(rich_lines(votes, LAYOUT))

    def _filled(self, lines: Sequence[Text | str]) -> None:
        if self._late is not None:
            self._late.stop()
        self.say("")
        self.query_one("#main", Lines).show(lines)

    def _failed(self, error: str) -> None:
        self._filled([Text(one_line(error), "red")])

    def action_panel(self, key: str) -> None:
        self._panel = HOME if key == self._panel else key
        self._read()

    def action_back(self) -> None:
        if self._panel != HOME:
            self.action_panel(HOME)
        else:
            super().action_back()

    def action_thinking(self) -> None:
        self._folded, self._panel = not self._folded, HOME
        self._read()

    def action_other_half(self) -> None:
        self.query_one("#main" if self.query_one(Grid).has_focus else Grid).focus()

    def action_turn_page(self, by: int) -> None:
        self.query_one("#main", Lines).action_turn(by)

    def action_whole(self) -> None:
        view = self.debate.view if self.debate else None
        turn = view.turn(self.query_one(Grid).chosen) if view else None
        if view is not None and turn is not None:
            name = f"{self.id_shown} › {view.spelled(turn.id)}, as written"
            self.app.push_screen(Pager(name, lambda: safe_lines(turn.text)))

    def action_match(self, forward: bool) -> None:
        matches, store, after = self.matches, self.run.store, self.id_shown

        def read() -> list[DebateRow]:
            newest = matches.newest == forward
            return store.debates(matches.filter, newest=newest, after=after, limit=1)

        def go(rows: list[DebateRow]) -> None:
            if rows:
                self._open(rows[0].id)
            else:
                self.say(f"this is the {'last' if forward else 'first'} debate of the list")

        self.load("debate", read, go)

    def action_across(self) -> None:
        if self.debate is not None:
            self.app.push_screen(AcrossScreen(self.debate))


class AcrossScreen(ListScreen[ProblemDebate]):
    """The other debates on the same problem."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "open", "open the debate")]

    def __init__(self, debate: OpenDebate) -> None:
        self.debate, self.found = debate, 0
        mark = Span("=", "strong")
        here: Column[ProblemDebate] = Column("", 1, lambda listed: mark if listed.ref == debate.id else "")
        title = f"{debate.run.name} › problem {debate.view.problem.id}"
        super().__init__(title, (here, *PROBLEM_DEBATES), "held")
        self.notes: Sequence[str] = ()

    def on_mount(self) -> None:
        self.refresh_run()

    def read(self) -> Sequence[ProblemDebate]:
        result = across(self.debate.run.store, self.debate.view.problem.id, limit=200)
        self.found, self.notes = result.total, result.notes
        return result.held

    def show(self, items: Sequence[ProblemDebate]) -> None:
        here = [index for index, listed in enumerate(items) if listed.ref == self.debate.id]
        self.list.show(items, cursor=here[0] if here else 0)
        self.sub_title = f"{len(items)} debates"
        if len(items) < self.found:
            self.say(f"{len(items):,} of {self.found:,} debates")
        elif self.notes:
            self.say(self.notes[0], error=True)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        ref, here = event.item.ref, self.debate
        if ref == here.id:
            self.say("this is the debate that you came from")
            return

        def lines() -> Sequence[Text | str]:
            both = compare(here.record, read(here.run.store, ref), (here.id, ref))
            return rich_lines(comparison_blocks(both), LAYOUT)

        self.app.push_screen(Pager(f"{here.id} (-) and {ref} (+)", lines))

    def action_open(self) -> None:
        if self.list.current is not None:
            problem = self.debate.view.problem.id.replace('"', '""')
            self.open_debate(self.debate.run, self.list.current.ref, Matches(f'problem:"{problem}"'))
