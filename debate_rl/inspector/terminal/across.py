"""The debates on one problem, across steps and checkpoints, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget

from debate_rl.formatting import one_line, padded, percent, safe_lines
from debate_rl.inspector.terminal.opened import Matches
from debate_rl.inspector.terminal.panels.reading import Debate
from debate_rl.inspector.terminal.screen import Pager, RunScreen
from debate_rl.inspector.terminal.style import (
    DOUBT,
    FAINT,
    RIGHT,
    STRONG,
    WRONG,
    Cell,
    Column,
    heading,
    line,
    sign,
)
from debate_rl.inspector.terminal.widgets import Listing
from debate_rl.inspector.views.across import (
    Across,
    Comparison,
    Held,
    TextPiece,
    TurnDifference,
    across,
    compare,
    read,
)
from debate_rl.inspector.views.debate import grade_name

COLUMNS = (
    Column("", 1),
    Column("debate", 16, left=True),
    Column("after steps", 11),
    Column("winner", 20, left=True),
    Column("grades, agent by agent", 24, left=True),
    Column("answers of the last round", 26, rest=True, need=1),
)


class HeldList(Listing[Held]):
    """One row a debate; ``here`` is the one they are compared with."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "choose", "what differs", tooltip="what differs from =, where you came from")
    ]

    def __init__(self, here: str, *, id: str) -> None:
        super().__init__(COLUMNS, id=id)
        self.here = here

    def cells(self, item: Held) -> Sequence[Cell]:
        """Return a debate's cells."""
        answers = ", ".join(
            "–" if not row or row[-1] is None else one_line(row[-1], 30) for row in item.answers
        )
        return (
            ("=", STRONG) if item.ref == self.here else "",
            one_line(item.ref, 40),
            str(item.step),
            _winner(item),
            " ".join("".join(sign(grade_name(cell))[0] for cell in row) for row in item.grades or ()),
            (answers, FAINT),
        )


def _winner(item: Held) -> Cell:
    if item.winner is None:
        return ("· no votes", FAINT)
    agent, round_ = item.winner.agent, item.winner.round
    mark, style = sign(grade_name(item.grades[agent][round_]) if item.grades else "ungraded")
    return (f"{mark} {one_line(item.personas[agent], 40)}", style)


class AcrossScreen(RunScreen):
    """The other debates on the problem of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "open the debate"),
    ]

    def __init__(self, debate: Debate, opens: Callable[[str, Matches], None]) -> None:
        super().__init__()
        self.debate, self._opens = debate, opens

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield HeldList(self.debate.id, id="held")

    def place(self) -> str:
        """Return the problem."""
        return f"{self.debate.opened.name} › problem {self.debate.view.problem.id}"

    def told(self) -> str:
        """Return how many debates there are."""
        return f"{len(self.query_one(HeldList).items)} debates"

    def on_mount(self) -> None:
        """Read them."""
        super().on_mount()
        self.query_one(HeldList).focus()
        store, problem = self.debate.opened.store, self.debate.view.problem.id
        self.load("across", lambda: across(store, problem, limit=200), self._show)

    def _show(self, found: Across) -> None:
        here = [index for index, held in enumerate(found.held) if held.ref == self.debate.id]
        self.query_one(HeldList).show(found.held, cursor=here[0] if here else 0)
        self.retitle()
        if len(found.held) < found.total:
            self.say(f"{len(found.held):,} of {found.total:,} debates")
        elif found.notes:
            self.say(found.notes[0], wrong=True)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Show what differs."""
        held, here = self.query_one(HeldList).items[event.place], self.debate
        store = here.opened.store
        if held.ref == here.id:
            self.say("this is the debate where you came from")
            return

        def lines() -> Sequence[Text | str]:
            return comparison_lines(compare(here.record, read(store, held.ref), (here.id, held.ref)))

        self.app.push_screen(Pager(f"{here.id} (-) and {held.ref} (+)", lines))

    def action_open(self) -> None:
        """Open a debate, of training or of an evaluation."""
        held = self.query_one(HeldList).current
        if held is not None:
            problem = self.debate.view.problem.id.replace('"', '""')
            self._opens(held.ref, Matches(f'problem:"{problem}"'))


MARKS = {" ": "", "-": WRONG, "+": RIGHT}
SIGNS = {" ": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
"""Words that one debate has alone stand between these, so that colour is not needed."""


def comparison_lines(found: Comparison) -> list[Text | str]:
    """Return the answers, the votes, and the texts word by word."""
    lines: list[Text | str] = [line((one_line(note), DOUBT)) for note in found.notes]
    lines += [
        line(
            ("[-", WRONG),
            f"{one_line(found.before)} alone",
            ("-]", WRONG),
            "  ",
            ("{+", RIGHT),
            f"{one_line(found.after)} alone",
            ("+}", RIGHT),
        )
    ]
    lines += ["", heading("answers"), *(_answers(found, turn) for turn in found.turns if _answered(turn))]
    lines += ["", heading("votes that differ", f"{found.same_votes} are the same")]
    lines += [line(one_line(found.vote(vote))) for vote in found.votes] or [line(("none", FAINT))]
    for turn in found.turns:
        cut = ", its middle not compared" if turn.cut else ""
        lines += [
            "",
            heading(one_line(found.spelled(turn.turn), 80), f"{percent(turn.alike, 0)} alike{cut}"),
            *_texts(turn.pieces),
        ]
    return lines


def _answered(turn: TurnDifference) -> bool:
    """Return whether one of the debates had an answer due here: a final ballot has none."""
    return any(turn.answers) or any(grade is not None for grade in turn.grades)


def _answers(found: Comparison, turn: TurnDifference) -> Text:
    signs = [sign(grade_name(grade)) for grade in turn.grades]
    answers = ["" if answer is None else one_line(answer, 40) for answer in turn.answers]
    changed = turn.answers[0] != turn.answers[1] or turn.grades[0] != turn.grades[1]
    style = STRONG if changed else FAINT
    name = padded(one_line(found.spelled(turn.turn), 80), 34)
    return line((f"{name} ", style), signs[0], f" {answers[0]} → ", signs[1], f" {answers[1]}")


def _texts(pieces: Sequence[TextPiece]) -> list[Text]:
    whole = Text(end="")
    for piece in pieces:
        before, after = SIGNS[piece.mark]
        whole.append(before + "\n".join(safe_lines(piece.text)) + after, MARKS[piece.mark])
    return list(whole.split("\n", allow_blank=True))
