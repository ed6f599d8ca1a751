"""One problem across checkpoints, two of its debates side by side, and replays of a run, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from debate_rl.formatting import fixed, percent, safe
from debate_rl.inspector.plain.forms import as_json as json_of
from debate_rl.inspector.plain.printer import Printer, table
from debate_rl.inspector.views.across import Across, Comparison, Held, TextPiece, TurnDifference
from debate_rl.inspector.views.checked import named
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.views.replays import DebateReplay, ReplayComparison, ReplayName, StreamChange
from rewards import Truth
from transcripts.record import PARTS

AROUND = 40
"""Characters of a long common part that stand on each side."""


def print_across(found: Across, printer: Printer, *, as_json: bool = False) -> None:
    """Print the debates of a problem, a line each: id, step, where, the winner, the answers at the end."""
    if as_json:
        printer.json({"schema": 1, **json_of(found)})
        return
    printer.line(printer.paint(f"problem {safe(found.problem)}", "bold"))
    printer.line(safe(found.question))
    printer.line(f"gold answer: {'not known' if found.gold is None else safe(found.gold)}")
    rows = [("debate", "after steps", "winner", "answers of the last round"), *map(_held_row, found.held)]
    for line in table(rows, left=len(rows[0])):
        printer.line(line)
    if found.total > len(found.held):
        printer.line(f"{len(found.held)} of {found.total} debates; --limit shows more")
    for note in found.notes:
        printer.line(f"note: {safe(note)}")


def _held_row(held: Held) -> tuple[str, str, str, str]:
    winner = (
        "none"
        if held.winner is None
        else f"{safe(held.personas[held.winner.agent])} {_grade(held, held.winner.agent)}"
    )
    answers = (
        f"{safe(row[-1] or '').strip() or '-'} ({_grade(held, agent)})"
        for agent, row in enumerate(held.answers)
    )
    return safe(held.ref), str(held.step), winner, ", ".join(answers)


def _grade(held: Held, agent: int) -> str:
    return grade_name(held.grades[agent][-1] if held.grades else None)


def print_comparison(found: Comparison, printer: Printer, *, as_json: bool = False) -> None:
    """Print what differs between two debates: words that went, words that came, answers, grades, votes."""
    if as_json:
        votes = [json_of(vote) | {"kind": vote.kind} for vote in found.votes]
        printer.json({"schema": 1, **json_of(found), "votes": votes})
        return
    printer.line(printer.paint(f"{safe(found.before)} -> {safe(found.after)}", "bold"))
    for note in found.notes:
        printer.line(f"note: {safe(note)}")
    for turn in found.turns:
        for line in _turn(found, turn, printer):
            printer.line(line)
    printer.line()
    printer.line(f"votes: {found.same_votes} the same, {len(found.votes)} not")
    for vote in found.votes:
        printer.line(f"  {safe(found.vote(vote))}")


def _turn(found: Comparison, turn: TurnDifference, printer: Printer) -> Iterator[str]:
    yield ""
    address = f" (turn {named(turn.turn)})"
    name = safe(found.spelled(turn.turn)).removesuffix(address) + address
    yield printer.paint(f"{name}, {percent(turn.alike, 0)} of the words alike", "bold")
    if turn.answers != (None, None):
        yield f"  answer: {_change(turn.answers, turn.grades, printer)}"
    if turn.cut:
        yield "  too long to compare word by word; only beginning and end are"
    yield f"  {_words(turn.pieces, printer)}"


def _change(answers: tuple[str | None, str | None], grades: tuple[Truth, Truth], printer: Printer) -> str:
    sides = [
        f"{safe(answer).strip() if answer is not None else 'none'} ({printer.grade(grade_name(grade))})"
        for answer, grade in zip(answers, grades, strict=True)
    ]
    return (
        sides[0] + " (the same)" if answers == answers[::-1] and sides[0] == sides[1] else " -> ".join(sides)
    )


def _words(pieces: Sequence[TextPiece], printer: Printer) -> str:
    """Return the texts as one: [-what went-]{+what came+}, long common parts shortened."""
    return "".join(_piece(piece, printer) for piece in pieces)


def _piece(piece: TextPiece, printer: Printer) -> str:
    text = piece.text
    if piece.mark == " ":
        left_out = len(text) - 2 * AROUND
        if left_out > AROUND:
            text = f"{text[:AROUND]}[{left_out} characters]{text[-AROUND:]}"
        return safe(text.replace("\n", " "))
    words = safe(text.replace("\n", " "))
    return (
        printer.paint(f"[-{words}-]", "red")
        if piece.mark == "-"
        else printer.paint(f"{{+{words}+}}", "green")
    )


SHARES, MEANS = ("sign_changed", "gained", "lost"), ("old", "new", "moved")


def print_replays(found: Sequence[ReplayName], printer: Printer, *, as_json: bool = False) -> None:
    """Print the replays, a line each."""
    if as_json:
        for one in found:
            printer.json(json_of(one))
        return
    for one in found:
        told = f"{one.changed} of {one.debates} debates change" if not one.problem else one.problem
        printer.line(f"{safe(one.name)}: {safe(told)}")
    if not found:
        printer.line("no replays; debate replay RUN KEY=VALUE makes one")


def print_replay(found: ReplayComparison, printer: Printer, *, as_json: bool = False) -> None:
    """Print a replay's figures, by stream, and by stream, persona and round, and the debates to open."""
    if as_json:
        printer.json({"schema": 1, **json_of(found), "folder": str(found.folder)})
        return
    printer.line(printer.paint(f"replay {safe(found.name)}: {safe(' '.join(found.overrides))}", "bold"))
    shown = f", of {safe(found.filter)}" if found.filter else ""
    printer.line(f"{found.changed} of {found.debates} debates{shown} have other advantages")
    printer.line(f"{found.differ} of {found.checked} were not stored as the run's own scheme gives them")
    if found.damaged_lines:
        printer.line(f"{found.damaged_lines} damaged lines; their groups lack a debate")
    for line in _table([*found.streams, *found.cells]):
        printer.line(line)
    named_ids = ", ".join(f"{safe(one.id)} ({one.change:.3g})" for one in found.most_changed)
    printer.line(f"these change most (sum of |new - old|): {named_ids or 'none'}")


def _table(changes: Sequence[StreamChange]) -> Iterator[str]:
    rows: list[Sequence[str]] = [("stream", "persona", "round", "turns", "sign changed", *SHARES[1:], *MEANS)]
    rows += [_cells(one) for one in changes]
    yield from table(rows, left=3)


def _cells(one: StreamChange) -> tuple[str, ...]:
    """Return a row; rounds count from 0."""
    where = (
        "all" if one.persona is None else safe(one.persona),
        "all" if one.round is None else one.round,
    )
    shares = (percent(getattr(one, name)) for name in SHARES)
    means = (fixed(getattr(one, name), "+.3f", none="-") for name in MEANS)
    return safe(one.stream), where[0], str(where[1]), str(one.turns), *shares, *means


def print_debate_replay(found: DebateReplay, printer: Printer, *, as_json: bool = False) -> None:
    """Print one debate under both schemes: the advantages of each turn, old and new."""
    if as_json:
        printer.json({"schema": 1, **json_of(found)})
        return
    printer.line(printer.paint(f"debate {safe(found.id)}: {safe(found.problem)}", "bold"))
    rows: list[Sequence[str]] = [("turn", "persona", *PARTS)]
    for turn in found.turns:
        cells = (_pair(*turn.advantages[name]) for name in PARTS)
        rows.append((named(turn.turn), safe(turn.persona), *cells))
    for line in table(rows, left=len(rows[0])):
        printer.line(line)
    printer.line(f"sum of |new - old| over generator, judge and format: {found.change:.3g}")
    if found.differs:
        printer.line("what is stored is not what the run's own scheme gives")


def _pair(old: float | None, new: float | None) -> str:
    before, after = fixed(old, "+.3f", none="-"), fixed(new, "+.3f", none="-")
    return before if old == new else f"{before} -> {after}"
