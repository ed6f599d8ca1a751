"""The debates on one problem, across steps and checkpoints, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from debate_rl.formatting import one_line, padded, percent, safe_lines
from debate_rl.inspector.terminal.panels.reading import OpenDebate
from debate_rl.inspector.terminal.screen import Matches, Pager, RunScreen
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
from debate_rl.inspector.views.across import Across, ProblemDebate, across, read
from debate_rl.inspector.views.compared import Comparison, TextPiece, TurnDifference, compare
from debate_rl.inspector.views.debate import grade_name


def _winner(debate: ProblemDebate) -> Cell:
    if debate.winner is None:
        return ("· no votes", FAINT)
    agent, round_ = debate.winner.agent, debate.winner.round
    mark, style = sign(grade_name(debate.grades[agent][round_]) if debate.grades else "ungraded")
    return (f"{mark} {one_line(debate.personas[agent], 40)}", style)


def _grades(debate: ProblemDebate) -> str:
    return " ".join("".join(sign(grade_name(cell))[0] for cell in row) for row in debate.grades or ())


def _last_answers(debate: ProblemDebate) -> Cell:
    last = (row[-1] if row else None for row in debate.answers)
    return ", ".join("–" if answer is None else one_line(answer, 30) for answer in last), FAINT


COLUMNS: Sequence[Column[ProblemDebate]] = (
    Column("debate", 16, lambda debate: one_line(debate.ref, 40), left=True),
    Column("after steps", 11, lambda debate: str(debate.step)),
    Column("winner", 20, _winner, left=True),
    Column("grades, agent by agent", 24, _grades, left=True),
    Column("answers of the last round", 26, _last_answers, rest=True, need=1),
)


class ProblemDebates(Listing[ProblemDebate]):
    """One row a debate."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "choose", "what differs", tooltip="what differs from =, where you came from")
    ]


class AcrossScreen(RunScreen):
    """The other debates on the problem of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "open the debate"),
    ]

    def __init__(self, debate: OpenDebate) -> None:
        self.debate = debate
        self.list = ProblemDebates((Column("", 1, self._mark), *COLUMNS), id="held")
        super().__init__(f"{debate.run.name} › problem {debate.view.problem.id}", self.list)

    def _mark(self, listed: ProblemDebate) -> Cell:
        return ("=", STRONG) if listed.ref == self.debate.id else ""

    def on_mount(self) -> None:
        """Read them."""
        store, problem = self.debate.run.store, self.debate.view.problem.id
        self.load("across", lambda: across(store, problem, limit=200), self._show)

    def _show(self, result: Across) -> None:
        here = [index for index, listed in enumerate(result.held) if listed.ref == self.debate.id]
        self.list.show(result.held, cursor=here[0] if here else 0)
        self.sub_title = f"{len(result.held)} debates"
        if len(result.held) < result.total:
            self.say(f"{len(result.held):,} of {result.total:,} debates")
        elif result.notes:
            self.say(result.notes[0], error=True)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Show what differs."""
        ref, here = event.item.ref, self.debate
        if ref == here.id:
            self.say("this is the debate where you came from")
            return

        def lines() -> Sequence[Text | str]:
            return comparison_lines(compare(here.record, read(here.run.store, ref), (here.id, ref)))

        self.app.push_screen(Pager(f"{here.id} (-) and {ref} (+)", lines))

    def action_open(self) -> None:
        """Open a debate, of training or of an evaluation."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        if self.list.current is not None:
            problem = self.debate.view.problem.id.replace('"', '""')
            matches = Matches(f'problem:"{problem}"')
            self.app.push_screen(DebateScreen(self.debate.run, self.list.current.ref, matches))


MARKS = {" ": "", "-": WRONG, "+": RIGHT}
SIGNS = {" ": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
"""Words that one debate has alone stand between these, so that colour is not needed."""


def comparison_lines(both: Comparison) -> list[Text | str]:
    """Return the answers, the votes, and the texts word by word."""
    lines: list[Text | str] = [line((one_line(note), DOUBT)) for note in both.notes]
    lines += [
        line(
            ("[-", WRONG),
            f"{one_line(both.before)} alone",
            ("-]", WRONG),
            "  ",
            ("{+", RIGHT),
            f"{one_line(both.after)} alone",
            ("+}", RIGHT),
        )
    ]
    lines += ["", heading("answers"), *(_answers(both, turn) for turn in both.turns if _answered(turn))]
    lines += ["", heading("votes that differ", f"{both.same_votes} are the same")]
    lines += [line(one_line(both.vote(vote))) for vote in both.votes] or [line(("none", FAINT))]
    for turn in both.turns:
        cut = ", its middle not compared" if turn.cut else ""
        lines += [
            "",
            heading(one_line(both.spelled(turn.turn), 80), f"{percent(turn.alike, 0)} alike{cut}"),
            *_texts(turn.pieces),
        ]
    return lines


def _answered(turn: TurnDifference) -> bool:
    """Return whether one of the debates had an answer due here: a final ballot has none."""
    return any(turn.answers) or any(grade is not None for grade in turn.grades)


def _answers(both: Comparison, turn: TurnDifference) -> Text:
    signs = [sign(grade_name(grade)) for grade in turn.grades]
    answers = ["" if answer is None else one_line(answer, 40) for answer in turn.answers]
    changed = turn.answers[0] != turn.answers[1] or turn.grades[0] != turn.grades[1]
    style = STRONG if changed else FAINT
    name = padded(one_line(both.spelled(turn.turn), 80), 34)
    return line((f"{name} ", style), signs[0], f" {answers[0]} → ", signs[1], f" {answers[1]}")


def _texts(pieces: Sequence[TextPiece]) -> list[Text]:
    whole = Text(end="")
    for piece in pieces:
        before, after = SIGNS[piece.mark]
        whole.append(before + "\n".join(safe_lines(piece.text)) + after, MARKS[piece.mark])
    return list(whole.split("\n", allow_blank=True))
