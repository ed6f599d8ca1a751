"""What differs between two debates on one problem."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from debate_rl.formatting import one_line, percent, safe_lines
from debate_rl.inspector.terminal.panels.votes import of_round, spelled
from debate_rl.inspector.terminal.style import DOUBT, FAINT, RIGHT, STRONG, WRONG, heading, letter, line
from debate_rl.inspector.views.across import Comparison, TextPiece, TurnDifference, VoteDifference
from debate_rl.inspector.views.debate import grade_name

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
    lines += ["", heading("answers"), *(_answers(turn) for turn in found.turns if _answered(turn))]
    lines += ["", heading("votes that differ", f"{found.same_votes} are the same")]
    lines += [_vote(vote) for vote in found.votes] or [line(("none", FAINT))]
    for turn in found.turns:
        cut = ", its middle not compared" if turn.cut else ""
        lines += [
            "",
            heading(spelled(turn.turn), f"{percent(turn.alike, 0)} alike{cut}"),
            *_texts(turn.pieces),
        ]
    return lines


def _answered(turn: TurnDifference) -> bool:
    """Return whether one of the debates had an answer due here: a final ballot has none."""
    return any(turn.answers) or any(grade is not None for grade in turn.grades)


def _answers(turn: TurnDifference) -> Text:
    signs = [letter(grade_name(grade)) for grade in turn.grades]
    answers = ["no answer" if answer is None else one_line(answer, 40) for answer in turn.answers]
    changed = turn.answers[0] != turn.answers[1] or turn.grades[0] != turn.grades[1]
    style = STRONG if changed else FAINT
    return line(
        (f"{spelled(turn.turn):<22}", style), signs[0], f" {answers[0]} → ", signs[1], f" {answers[1]}"
    )


def _vote(vote: VoteDifference) -> Text:
    judge = f"judge {vote.judge.agent + 1} in round {vote.judge.round + 1}"
    first, second = vote.first.agent + 1, of_round(vote.second, vote.first.round)
    told = {"first": f"{first} > {second}", "second": f"{second} > {first}", "tie": f"{first} = {second}"}
    before, after = ("no vote" if side is None else told[side] for side in (vote.before, vote.after))
    about = f"  {judge} on round {vote.first.round + 1}:  {before} → {after}"
    return line((f"{vote.kind:<8}", STRONG), about)


def _texts(pieces: Sequence[TextPiece]) -> list[Text]:
    whole = Text(end="")
    for piece in pieces:
        before, after = SIGNS[piece.mark]
        whole.append(before + "\n".join(safe_lines(piece.text)) + after, MARKS[piece.mark])
    return list(whole.split("\n", allow_blank=True))
