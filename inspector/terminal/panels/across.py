"""What differs between two debates on one problem."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from inspector.terminal.panels.names import spelled
from inspector.terminal.style import DOUBT, FAINT, RIGHT, STRONG, WRONG, heading, letter, line
from inspector.terminal.visible import one_line, visible_lines
from inspector.views.across import Comparison, Piece, TurnDifference, VoteDifference
from inspector.views.debate import Grade
from transcripts import Correct

MARKS = {" ": "", "-": f"{WRONG} strike", "+": f"{RIGHT} underline"}
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
    lines += ["", heading("answers"), *(_answers(turn) for turn in found.turns)]
    lines += ["", heading("votes that differ", f"{found.same_votes} are the same")]
    lines += [_vote(vote) for vote in found.votes] or [line(("none", FAINT))]
    for turn in found.turns:
        cut = ", the beginnings alone" if turn.cut else ""
        lines += ["", heading(spelled(turn.turn), f"{turn.alike:.0%} alike{cut}"), *_texts(turn.pieces)]
    return lines


def _answers(turn: TurnDifference) -> Text:
    signs = [letter(_grade(grade)) for grade in turn.grades]
    answers = ["no answer" if answer is None else one_line(answer, 40) for answer in turn.answers]
    changed = turn.answers[0] != turn.answers[1] or turn.grades[0] != turn.grades[1]
    style = STRONG if changed else FAINT
    return line(
        (f"{spelled(turn.turn):<22}", style), signs[0], f" {answers[0]} → ", signs[1], f" {answers[1]}"
    )


def _grade(grade: Correct) -> Grade:
    if grade is None:
        return "ungraded"
    return "missing" if grade == "missing" else "right" if grade else "wrong"


def _vote(vote: VoteDifference) -> Text:
    sides = {
        "first": f"for {spelled(vote.first)}",
        "second": f"for {spelled(vote.second)}",
        "tie": "tie",
        None: "no vote",
    }
    pair = f"{spelled(vote.first)} or {spelled(vote.second)}"
    told = f"  {sides.get(vote.before)} → {sides.get(vote.after)}"
    return line((f"{vote.kind:<9}", STRONG), f"{spelled(vote.judge)} on {pair}:", told)


def _texts(pieces: Sequence[Piece]) -> list[Text]:
    whole = Text(end="")
    for piece in pieces:
        before, after = SIGNS[piece.mark]
        whole.append(before + "\n".join(visible_lines(piece.text)) + after, MARKS[piece.mark])
    return list(whole.split("\n", allow_blank=True))
