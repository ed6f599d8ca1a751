"""The columns of lists of runs, steps, debates and replays on every screen, with their meanings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from debate_rl.formatting import fixed, padded, safe, share, shorten
from debate_rl.inspector.blocks import Link, Span, Table, Words, grade, spans, to_debate
from debate_rl.inspector.views.debate import grade_name
from transcripts import DebateRow, StepRow
from transcripts.filters.fields import FIELDS

if TYPE_CHECKING:
    from debate_rl.inspector.runs import Overview
    from debate_rl.inspector.views.across import ProblemDebate
    from debate_rl.inspector.views.replays import MostChanged, ReplayName

Item = TypeVar("Item")
GAP, WIDE = 2, 5
"""``GAP``: cells between columns. ``WIDE``: columns with at least this ``need`` are hidden on a phone."""
MEANINGS: tuple[tuple[str, str], ...] = (
    ("accuracy", "right / graded solutions, in round 0 and in the last round"),
    ("winner", "grade of the winner; for a step: right / graded winners"),
    ("judge", "judge accuracy: right / valid votes on pairs with exactly one right side; –: no such votes"),
    (
        "flags",
        "✓→✗: an agent gave up a right answer; ✗→✓: an agent found one; ✓→✗:2: two agents did; cycle: "
        "solutions beat each other in a circle; missing, ungraded: solutions; truncated: replies",
    ),
    ("votes", "valid votes"),
    ("malformed", "number of parse failures"),
    ("truncated", "number of replies cut at their token limit"),
    ("held-out", "for a run: held-out accuracy of one agent alone, first and last evaluation"),
    ("alarms", "for a run: collapse detectors that fire"),
    ("state", "for a run: whether it trains on held-out problems, and how a stage of a curriculum ended"),
    ("cycles", "debates with a cycle: A beats B beats C beats A"),
    ("peer", "mean reward for votes received"),
    ("truth", "mean reward for the grade"),
    ("judge reward", "mean reward for votes given"),
    ("format", "mean format penalty"),
)
"""The meanings of the columns of runs, steps and debates."""


def filter_fields() -> list[tuple[str, str]]:
    """Return an example and the meaning of each filter field.

    >>> filter_fields()[1]
    ('step:>200', 'training step')
    """
    return [(field.example, field.about) for field in FIELDS.values()]


def flags_of(row: DebateRow) -> list[tuple[str, str]]:
    """Return the unusual properties of a debate: each flag as shown in lists, with its meaning."""
    facts = row.facts
    flags = (
        ("cycle", facts.cycle, "solutions that beat each other in a cycle"),
        ("✓→✗", facts.flip_cw, "an agent's answer was right, then wrong"),
        ("✗→✓", facts.flip_wc, "an agent's answer was wrong, then right"),
        ("missing", facts.missing, "solutions without an answer"),
        ("ungraded", facts.ungraded, "solutions without a verdict"),
        ("truncated", facts.truncated, "replies cut at their token limit"),
        ("stopped", min(1, facts.rounds_saved), "all agents gave the same answer before the last round"),
    )
    return [(name if int(n) == 1 else f"{name}:{int(n)}", about) for name, n, about in flags if n]


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """One column. ``cell`` returns its text for an item; ``width`` is in terminal cells.

    If space is short, columns with the highest ``need`` are dropped first; columns with 0 always stay.
    ``rest``: the column takes the remaining width, and is omitted in a pipe.
    """

    name: str
    width: int
    cell: Callable[[Item], Words]
    need: int = 0
    left: bool = False
    rest: bool = False


def fitting(columns: Sequence[Column[Any]], width: int) -> list[tuple[Column[Any], int]]:
    """Return the columns that fit, each with its width. One text column takes the remaining width.

    >>> few = [Column("id", 6, str), Column("votes", 5, str, 2), Column("question", 10, str, 1, rest=True)]
    >>> [(column.name, size) for column, size in fitting(few, 22)]
    [('id', 6), ('question', 14)]
    """

    def total() -> int:
        return sum(column.width for column in left) + GAP * (len(left) - 1)

    left = list(columns)
    while total() > width and any(column.need for column in left):
        left.remove(max(reversed(left), key=lambda column: column.need))
    spare = max(0, width - total())
    widest = next((column for column in left if column.rest), left[-1] if left[-1].left else None)
    return [(column, column.width + (spare if column is widest else 0)) for column in left]


def padded_row(columns: Sequence[tuple[Column[Any], int]], item: Any) -> tuple[Span, ...]:
    """Return the row of an item in the columns that fit, or the heads for None."""
    row: list[Span] = []
    for column, width in columns:
        cell = spans(Span(column.name, "faint") if item is None else column.cell(item))
        text = safe("".join(span.text for span in cell))
        style = next((span.style for span in cell if span.style), "")
        row += [Span(" " * GAP)] if row else []
        row.append(Span(padded(text, width, left=column.left or column.rest), style))
    return tuple(row)


def table_of(columns: Sequence[Column[Item]], items: Sequence[Item], **named: Any) -> Table:
    """Return a list as a table with columns of the needed width."""
    marks = ["~" * (one.need >= WIDE) + ">" * (not one.left and not one.rest) for one in columns]
    heads = [mark + column.name for mark, column in zip(marks, columns, strict=True)]
    abouts = [meaning_of(column.name) for column in columns]
    return Table(heads, [[column.cell(item) for column in columns] for item in items], abouts=abouts, **named)


def meaning_of(head: str) -> str:
    """Return the meaning of a column, or "" if its name says it."""
    return dict(MEANINGS).get(head, "")


def _from_to(first: float | None, last: float | None) -> str:
    return f"{share(first)}→{share(last)}"


def _count(value: int) -> Span:
    return Span(f"{value:,}", "" if value else "faint")


def _alarms(one: Overview) -> Words:
    return "–" if one.alarms is None else Span(f"{one.alarms:,}", "wrong" if one.alarms else "faint")


def _tail(text: str, most: int) -> str:
    """Return the end of a text, because ids differ at the end.

    >>> _tail("MATH/algebra/2477", 8)
    '…ra/2477'
    """
    return text if len(text) <= most else "…" + text[1 - most :]


RUNS: Sequence[Column[Overview]] = (
    Column(
        "run", 20, lambda one: Span(one.run.name, link=Link(("/run", one.run.name))), left=True, rest=True
    ),
    Column("steps", 11, lambda one: one.progress),
    Column("held-out", 9, lambda one: "–" if one.before is None else _from_to(one.before, one.after)),
    Column("judge", 5, lambda one: share(one.judge)),
    Column("alarms", 6, _alarms),
    Column(
        "state", 18, lambda one: Span(f"{one.state}: {one.why}" if one.why else one.state, "right"), left=True
    ),
)


def _step(row: StepRow) -> Words:
    if row.step is None:
        return Span("all", "strong")
    return Span(str(row.step), link=Link(("group",), (("step", row.step),)), name="step-link")


def _debates(row: StepRow) -> Words:
    link = None if row.step is None else Link(("debates",), (("step", row.step),))
    return Span(f"{row.debates:,}", link=link, name="debates-link")


def _reward(name: str) -> Callable[[StepRow], Words]:
    return lambda row: fixed(getattr(row, f"reward_{name}"), "+.3f")


STEPS: Sequence[Column[StepRow]] = (
    Column("step", 6, _step, left=True),
    Column("debates", 8, _debates),
    Column("accuracy", 9, lambda row: _from_to(row.accuracy_round_0, row.accuracy_last_round)),
    Column("winner", 6, lambda row: share(row.winner_accuracy)),
    Column("judge", 5, lambda row: share(row.judge_accuracy)),
    Column("cycles", 6, lambda row: _count(row.cycles), 4),
    Column("malformed", 9, lambda row: _count(row.malformed), 3),
    Column("truncated", 9, lambda row: _count(row.truncated), 5),
    Column("peer", 7, _reward("peer"), 2),
    Column("truth", 7, _reward("truth"), 1),
    Column("judge reward", 12, _reward("judge"), 6),
    Column("format", 7, _reward("format"), 7),
    Column("votes", 8, lambda row: f"{row.votes:,}", 8),
    Column("tokens", 12, lambda row: Span(f"{row.tokens:,}", "faint"), 9),
)


def _winner(row: DebateRow) -> Words:
    return Span("· none", "faint") if row.winner == "none" else grade(row.winner)


DEBATES: Sequence[Column[DebateRow]] = (
    Column("debate", 8, lambda row: Span(row.id, link=to_debate(row.id), name="row-link"), left=True),
    Column("winner", 9, _winner, left=True),
    Column("accuracy", 9, lambda row: _from_to(row.facts.accuracy_round_0, row.facts.accuracy_last_round)),
    Column("judge", 5, lambda row: share(row.facts.judge_accuracy), 1),
    Column("flags", 14, lambda row: " ".join(flag for flag, _ in flags_of(row)), 5, left=True),
    Column("question", 26, lambda row: Span(shorten(row.problem.question, 120), "strong"), 2, rest=True),
    Column("votes", 5, lambda row: str(row.facts.votes), 3),
    Column("malformed", 9, lambda row: _count(row.facts.malformed), 5),
    Column("problem", 12, lambda row: Span(_tail(shorten(row.problem.id, 200), 40), "id"), 6, left=True),
    Column("level", 8, lambda row: shorten(row.problem.level, 24), 7, left=True),
    Column("tokens", 8, lambda row: f"{row.facts.tokens:,}", 8),
)


def _held_winner(debate: ProblemDebate) -> Words:
    if debate.winner is None:
        return Span("· no votes", "faint")
    agent, round_ = debate.winner
    sign = grade(grade_name(debate.grades[agent][round_] if debate.grades else None))
    return Span(f"{sign.text} {debate.personas[agent]}", sign.style)


def _last_answers(debate: ProblemDebate) -> Words:
    words: list[str | Span] = []
    for agent, row in enumerate(debate.answers[:8]):
        answer = (row[-1] if row else None) or "–"
        mark = grade(grade_name(debate.grades[agent][-1] if debate.grades else None))
        words += [", ", Span(shorten(answer, 30), "answer"), " ", mark]
    return words[1:]


PROBLEM_DEBATES: Sequence[Column[ProblemDebate]] = (
    Column("debate", 16, lambda one: Span(one.ref, link=to_debate(one.ref), name="held-link"), left=True),
    Column("after steps", 11, lambda one: str(one.step)),
    Column("winner", 20, _held_winner, left=True),
    Column("answers of the last round", 26, _last_answers, rest=True),
)


def _replay(one: ReplayName) -> Words:
    return Span(one.name, link=None if one.problem else Link(("replays", one.name)), name="replay-link")


def _scheme(one: ReplayName) -> Words:
    changed = " ".join(one.overrides) or "the run's own scheme"
    return Span(one.problem, "doubt") if one.problem else changed


REPLAYS: Sequence[Column[ReplayName]] = (
    Column("replay", 24, _replay, left=True),
    Column("debates", 9, lambda replay: "" if replay.problem else f"{replay.debates:,}"),
    Column("changed", 9, lambda replay: "" if replay.problem else f"{replay.changed:,}"),
    Column("scheme", 20, _scheme, left=True, rest=True),
)
MOST_CHANGED: Sequence[Column[MostChanged]] = (
    Column("debate", 12, lambda one: Span(one.id, link=to_debate(one.id)), left=True),
    Column("change", 10, lambda one: fixed(one.change)),
    Column("", 1, lambda one: "", rest=True),
)
