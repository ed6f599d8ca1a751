"""One problem across checkpoints, two of its debates side by side, and replays of a run, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from debate_rl.formatting import fixed, percent, round_number, safe
from debate_rl.inspector.plain.forms import as_json as json_of
from debate_rl.inspector.plain.printer import Printer, table
from debate_rl.inspector.views.across import Across, ProblemDebate
from debate_rl.inspector.views.compared import Comparison, TextPiece, TurnDifference
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.views.replays import DebateReplay, ReplayName, StoredReplay, StreamChange
from rewards import Truth
from transcripts.record import PARTS, named

AROUND = 40
"""Characters of a long common part that stand on each side."""


def print_across(result: Across, printer: Printer, *, as_json: bool = False) -> None:
    """Print the debates of a problem, a line each: id, step, where, the winner, the answers at the end."""
    if as_json:
        printer.json({"schema": 1, **json_of(result)})
        return
    printer.line(printer.paint(f"problem {safe(result.problem)}", "bold"))
    printer.line(safe(result.question))
    printer.line(f"gold answer: {'not known' if result.gold is None else safe(result.gold)}")
    heads = ("debate", "after steps", "winner", "answers of the last round")
    printer.lines(table([heads, *map(_debate_row, result.held)], left=len(heads)))
    if result.total > len(result.held):
        printer.line(f"{len(result.held)} of {result.total} debates; --limit shows more")
    printer.lines(f"note: {safe(note)}" for note in result.notes)


def _debate_row(debate: ProblemDebate) -> tuple[str, str, str, str]:
    winner = "none"
    if debate.winner is not None:
        winner = f"{safe(debate.personas[debate.winner.agent])} {_grade(debate, debate.winner.agent)}"
    answers = (
        f"{safe(row[-1] or '').strip() or '-'} ({_grade(debate, agent)})"
        for agent, row in enumerate(debate.answers)
    )
    return safe(debate.ref), str(debate.step), winner, ", ".join(answers)


def _grade(debate: ProblemDebate, agent: int) -> str:
    return grade_name(debate.grades[agent][-1] if debate.grades else None)


def print_comparison(both: Comparison, printer: Printer, *, as_json: bool = False) -> None:
    """Print what differs between two debates: words that went, words that came, answers, grades, votes."""
    if as_json:
        votes = [json_of(vote) | {"kind": vote.kind} for vote in both.votes]
        printer.json({"schema": 1, **json_of(both), "votes": votes})
        return
    printer.line(printer.paint(f"{safe(both.before)} -> {safe(both.after)}", "bold"))
    printer.lines(f"note: {safe(note)}" for note in both.notes)
    for turn in both.turns:
        printer.lines(_turn(both, turn, printer))
    printer.line()
    printer.line(f"votes: {both.same_votes} the same, {len(both.votes)} not")
    printer.lines(f"  {safe(both.vote(vote))}" for vote in both.votes)


def _turn(both: Comparison, turn: TurnDifference, printer: Printer) -> Iterator[str]:
    yield ""
    address = f" (turn {named(turn.turn)})"
    name = safe(both.spelled(turn.turn)).removesuffix(address) + address
    yield printer.paint(f"{name}, {percent(turn.alike, 0)} of the words alike", "bold")
    if turn.answers != (None, None):
        yield f"  answer: {_change(turn.answers, turn.grades, printer)}"
    if turn.cut:
        yield "  too long to compare word by word; only beginning and end are"
    yield "  " + "".join(_piece(piece, printer) for piece in turn.pieces)


def _change(answers: tuple[str | None, str | None], grades: tuple[Truth, Truth], printer: Printer) -> str:
    before, after = (
        f"{safe(answer).strip() if answer is not None else 'none'} ({printer.grade(grade_name(grade))})"
        for answer, grade in zip(answers, grades, strict=True)
    )
    return before + " (the same)" if answers[0] == answers[1] and before == after else f"{before} -> {after}"


def _piece(piece: TextPiece, printer: Printer) -> str:
    """Return words as they stand in both, long ones shortened, or as [-what went-] or {+what came+}."""
    text = piece.text
    left_out = len(text) - 2 * AROUND
    if piece.mark == " " and left_out > AROUND:
        text = f"{text[:AROUND]}[{left_out} characters]{text[-AROUND:]}"
    words = safe(text.replace("\n", " "))
    if piece.mark == " ":
        return words
    return (
        printer.paint(f"[-{words}-]", "red")
        if piece.mark == "-"
        else printer.paint(f"{{+{words}+}}", "green")
    )


def print_replays(listed: Sequence[ReplayName], printer: Printer, *, as_json: bool = False) -> None:
    """Print the replays, a line each."""
    for replay in listed:
        text = replay.problem or f"{replay.changed} of {replay.debates} debates change"
        printer.json(json_of(replay)) if as_json else printer.line(f"{safe(replay.name)}: {safe(text)}")
    if not listed and not as_json:
        printer.line("no replays; debate replay RUN KEY=VALUE makes one")


def print_replay(replay: StoredReplay, printer: Printer, *, as_json: bool = False) -> None:
    """Print a replay's figures, by stream, and by stream, persona and round, and the debates to open."""
    facts = replay.facts
    if as_json:
        figures = json_of(facts)
        names = {"name": replay.name, "folder": str(replay.folder)}
        printer.json({"schema": 1, **names, **figures.pop("asked"), **figures})
        return
    printer.line(printer.paint(f"replay {safe(replay.name)}: {safe(' '.join(facts.overrides))}", "bold"))
    shown = f", of {safe(facts.asked.filter)}" if facts.asked.filter else ""
    printer.line(f"{facts.changed} of {facts.debates} debates{shown} have other advantages")
    printer.line(f"{facts.differ} of {facts.checked} were not stored as the run's own scheme gives them")
    if facts.damaged_lines:
        printer.line(f"{facts.damaged_lines} damaged lines; their groups lack a debate")
    heads = ("stream", "persona", "round", "turns", *(name.replace("_", " ") for name in (*SHARES, *MEANS)))
    rows = [_change_row(change, facts.rounds) for change in (*facts.streams, *facts.cells)]
    printer.lines(table([heads, *rows], left=3))
    ids = ", ".join(f"{safe(changed.id)} ({changed.change:.3g})" for changed in facts.most_changed)
    printer.line(f"these change most (sum of |new - old|): {ids or 'none'}")


SHARES, MEANS = ("sign_changed", "gained", "lost"), ("old", "new", "moved")


def _change_row(change: StreamChange, rounds: int | None) -> tuple[str, ...]:
    persona = "all" if change.persona is None else safe(change.persona)
    round_ = "all" if change.round is None else round_number(change.round, rounds)
    shares = (percent(getattr(change, name)) for name in SHARES)
    means = (fixed(getattr(change, name), "+.3f", none="-") for name in MEANS)
    return safe(change.stream), persona, round_, str(change.turns), *shares, *means


def print_debate_replay(debate: DebateReplay, printer: Printer, *, as_json: bool = False) -> None:
    """Print one debate under both schemes: the advantages of each turn, old and new."""
    if as_json:
        printer.json({"schema": 1, **json_of(debate)})
        return
    printer.line(printer.paint(f"debate {safe(debate.id)}: {safe(debate.problem)}", "bold"))
    rows: list[Sequence[str]] = [("turn", "round", "persona", *PARTS)]
    for turn in debate.turns:
        cells = (_pair(*turn.advantages[name]) for name in PARTS)
        round_ = round_number(turn.turn.round, debate.rounds)
        rows.append((named(turn.turn), round_, safe(turn.persona), *cells))
    printer.lines(table(rows, left=len(rows[0])))
    printer.line(f"sum of |new - old| over generator, judge and format: {debate.change:.3g}")
    if debate.differs:
        printer.line("what is stored is not what the run's own scheme gives")


def _pair(old: float | None, new: float | None) -> str:
    before, after = fixed(old, "+.3f", none="-"), fixed(new, "+.3f", none="-")
    return before if old == new else f"{before} -> {after}"
