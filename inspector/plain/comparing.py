"""One problem across checkpoints, and two of its debates side by side, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.plain.forms import as_json as json_of
from inspector.plain.paper import Paper, fitted, widths_of
from inspector.views.across import Across, Comparison, Held, TextPiece, TurnDifference
from inspector.views.checked import named
from inspector.views.compared import told_vote
from inspector.views.reward_lines import GRADES
from learner.formatting import percent, safe
from transcripts import Correct

AROUND = 40
"""Characters of a long common part that stand on each side."""


def print_across(found: Across, paper: Paper, *, as_json: bool = False) -> None:
    """Print the debates of a problem, a line each: id, step, where, the winner, the answers at the end."""
    if as_json:
        paper.json({"schema": 1, **json_of(found)})
        return
    paper.line(paper.paint(f"problem {safe(found.problem)}", "bold"))
    paper.line(safe(found.question))
    paper.line(f"right answer: {'not known' if found.gold is None else safe(found.gold)}")
    rows = [("debate", "steps learnt", "winner", "answers of the last round"), *map(_row, found.held)]
    widths = widths_of(rows)
    for row in rows:
        paper.line("  ".join(map(fitted, row, widths)).rstrip())
    if found.total > len(found.held):
        paper.line(f"{len(found.held)} of {found.total} debates; --limit shows more")
    for note in found.notes:
        paper.line(f"note: {safe(note)}")


def _row(held: Held) -> tuple[str, str, str, str]:
    winner = "none" if held.winner is None else f"{named(held.winner)} {_grade(held, held.winner.agent)}"
    answers = (
        f"{safe(row[-1] or '').strip() or '-'} ({_grade(held, agent)})"
        for agent, row in enumerate(held.answers)
    )
    return safe(held.ref), str(held.step), winner, ", ".join(answers)


def _grade(held: Held, agent: int) -> str:
    return GRADES[held.grades[agent][-1] if held.grades else None]


def print_comparison(found: Comparison, paper: Paper, *, as_json: bool = False) -> None:
    """Print what differs between two debates: words that went, words that came, answers, grades, votes."""
    if as_json:
        votes = [json_of(vote) | {"kind": vote.kind} for vote in found.votes]
        paper.json({"schema": 1, **json_of(found), "votes": votes})
        return
    paper.line(paper.paint(f"{safe(found.before)} -> {safe(found.after)}", "bold"))
    for note in found.notes:
        paper.line(f"note: {safe(note)}")
    for turn in found.turns:
        for line in _turn(turn, paper):
            paper.line(line)
    paper.line()
    paper.line(f"votes: {found.same_votes} the same, {len(found.votes)} not")
    for vote in found.votes:
        paper.line(f"  {told_vote(vote)}")


def _turn(turn: TurnDifference, paper: Paper) -> Iterator[str]:
    yield ""
    seats = ("no turn" if name is None else safe(name) for name in turn.personas)
    names = " -> ".join(dict.fromkeys(seats))
    alike = f"{percent(turn.alike, 0)} of the words alike"
    yield paper.paint(f"turn {named(turn.turn)} ({names}), {alike}", "bold")
    if turn.answers != (None, None):
        yield f"  answer: {_change(turn.answers, turn.grades, paper)}"
    if turn.cut:
        yield "  too long to compare word by word; only beginning and end are"
    yield f"  {_words(turn.pieces, paper)}"


def _change(answers: tuple[str | None, str | None], grades: tuple[Correct, Correct], paper: Paper) -> str:
    told = [
        f"{safe(answer).strip() if answer is not None else 'none'} ({paper.grade(GRADES[grade])})"
        for answer, grade in zip(answers, grades, strict=True)
    ]
    return told[0] + " (the same)" if answers == answers[::-1] and told[0] == told[1] else " -> ".join(told)


def _words(pieces: Sequence[TextPiece], paper: Paper) -> str:
    """Return the texts as one: [-what went-]{+what came+}, long common parts shortened."""
    return "".join(_piece(piece, paper) for piece in pieces)


def _piece(piece: TextPiece, paper: Paper) -> str:
    text = piece.text
    if piece.mark == " ":
        left_out = len(text) - 2 * AROUND
        if left_out > AROUND:
            text = f"{text[:AROUND]}[{left_out} characters]{text[-AROUND:]}"
        return safe(text.replace("\n", " "))
    words = safe(text.replace("\n", " "))
    return paper.paint(f"[-{words}-]", "red") if piece.mark == "-" else paper.paint(f"{{+{words}+}}", "green")
