"""The groups of a step: the debates on one problem, whose rewards share a baseline, side by side.

A group has K debates of N agents. Its page shows each answer with its grade and its advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, isclose, log10
from statistics import fmean, pstdev

from debate_rl.formatting import counted, share, shorten
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Link,
    Section,
    Span,
    Table,
    Words,
    grade,
    named_agent,
    to_debate,
    to_turn,
)
from debate_rl.inspector.lists import meaning_of
from debate_rl.inspector.views.debate import DebateView, TurnView, debate_view
from debate_rl.metrics.group_table import agent_votes
from rewards import STREAMS
from transcripts import DebateRow, RunStore, TranscriptError
from transcripts.index.facts import ProblemFacts

MOST_DEBATES = 64
"""Maximum number of debates of a group on a page."""


@dataclass(frozen=True, slots=True)
class Group:
    """The debates of a step on one problem, in order. ``rows`` come from the index."""

    step: int
    rows: Sequence[DebateRow]

    @property
    def problem(self) -> ProblemFacts:
        """The problem."""
        return self.rows[0].problem

    @property
    def right(self) -> int:
        """The number of debates whose winner is right."""
        return sum(row.winner == "right" for row in self.rows)

    def mean(self, name: str) -> float | None:
        """Return the mean of a fact over the debates that have it."""
        values = [value for row in self.rows if (value := getattr(row.facts, name)) is not None]
        return fmean(values) if values else None


@dataclass(frozen=True, slots=True)
class GroupView:
    """The debates of a group. ``judged``: for each debate and agent, its right and its decidable votes."""

    step: int
    problem: ProblemFacts
    debates: tuple[DebateView, ...]
    judged: tuple[tuple[tuple[int, int], ...], ...]
    total: int


def groups_of(store: RunStore, step: int) -> list[Group]:
    """Return the groups of a step in the order of its debates. TranscriptError if the step has none."""
    rows = store.debates(f"step:{step}", limit=store.count(f"step:{step}"))
    if not rows:
        raise TranscriptError(f"{store.run}: no debate of step {step}")
    by_problem: dict[str, list[DebateRow]] = {}
    for row in rows:
        by_problem.setdefault(row.problem.id, []).append(row)
    return [Group(step, found) for found in by_problem.values()]


def group_named(groups: Sequence[Group], problem: str) -> Group:
    """Return the group of a problem, or for "" the first group with right and wrong last answers.

    TranscriptError if there is no such group.
    """
    if not problem:
        mixed = (group for group in groups if 0 < (group.mean("accuracy_last_round") or 0) < 1)
        return next(mixed, groups[0])
    found = next((group for group in groups if group.problem.id == problem), None)
    if found is None:
        raise TranscriptError(f"step {groups[0].step}: no debate on problem {problem!r}")
    return found


def group_view(store: RunStore, group: Group) -> GroupView:
    """Read the debates of a group."""
    records = [(row.id, store.debate(row.id)) for row in group.rows[:MOST_DEBATES]]
    views = tuple(debate_view(id, record) for id, record in records)
    judged = tuple(tuple(counts[:2] for counts in agent_votes(record)) for _, record in records)
    return GroupView(group.step, group.problem, views, judged, len(group.rows))


def groups_table(groups: Sequence[Group], chosen: Group) -> Table:
    """Return the groups of a step as a list of links."""
    rows = [
        (
            Span(
                shorten(group.problem.question, 90),
                "strong" if group is chosen else "",
                Link(("group",), (("step", group.step), ("problem", group.problem.id)), "group"),
                "group-link",
            ),
            str(len(group.rows)),
            f"{share(group.mean('accuracy_round_0'))}→{share(group.mean('accuracy_last_round'))}",
            f"{group.right} of {len(group.rows)}",
            share(group.mean("judge_accuracy")),
        )
        for group in groups
    ]
    heads = ("problem", ">debates", ">accuracy", ">winner right", ">judge")
    abouts = [meaning_of(head.strip(">").removesuffix(" right")) for head in heads]
    return Table(heads, rows, name="groups", row_name="group-row", kind="list sortable", abouts=abouts)


CLOSE, MOST_REWARD = 1e-9, 1e12
"""Minimum and maximum width of a histogram: less is rounding."""
MEANS = (*(f"reward.{name}" for name in STREAMS), "advantage.generator", "advantage.judge")
"""The filter fields that have a histogram."""


def histograms(groups: Sequence[Group]) -> list[Block]:
    """Return a histogram of each mean reward and advantage that differs between the debates of the step.

    Each row leads to its debates.
    """
    found: list[Block] = []
    for field in MEANS:
        means = (getattr(row.facts, field.replace(".", "_")) for group in groups for row in group.rows)
        values = [mean for mean in means if mean is not None]
        least, greatest = min(values, default=0.0), max(values, default=0.0)
        if not isclose(least, greatest, abs_tol=CLOSE) and greatest - least < MOST_REWARD:
            bins, rows = binned(values), list[Sequence[Words]]()
            most = max(size for _, _, size in bins)
            for low, high, size in bins:
                filter = f"step:{groups[0].step} {field}:>={low!r} {field}:<{high!r}"
                link = Link(("debates",), (("filter", filter),)) if size else None
                rows.append((f"{low:g} to {high:g}", Span(str(size), "", link, "bar", bar=size / most)))
            kind, of = field.split(".")
            found.append(Table((f"{of} {kind}", "debates"), rows, name="histogram", kind="histogram"))
    return found


def binned(values: Sequence[float], most: int = 12) -> list[tuple[float, float, int]]:
    """Return at most ``most`` + 1 adjoining bins of a round width that hold all values.

    A bin has its lower end, its upper end, which does not belong to it, and the number of its values.

    >>> binned([0, 0.25, 0.25, 1], 4)
    [(0.0, 0.5, 3), (0.5, 1.0, 0), (1.0, 1.5, 1)]
    """
    low, high = min(values), max(values)
    rough = (high - low) / most or 1.0
    power = 10.0 ** floor(log10(rough))
    width = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))
    digits = max(0, 2 - floor(log10(width)))
    first, last = floor(low / width), floor(high / width)
    edges = [round(at * width, digits) for at in range(first - 1, last + 3)]
    bins = [(a, b, sum(a <= value < b for value in values)) for a, b in pairwise(edges)]
    filled = [at for at, (_, _, size) in enumerate(bins) if size]
    return bins[filled[0] : filled[-1] + 1]


def group_blocks(view: GroupView) -> list[Block]:
    """Return a group: the problem, the rewards of each round, and all turns as a grid."""
    gold: Words = ("gold answer: ", Span(view.problem.gold or "–", "answer"))
    left = view.total - len(view.debates)
    more = [Line(f"{counted(left, 'more debate')} not shown", "faint")] if left else []
    blocks = [Line(gold, "faint"), _rewards(view.debates), _grid(view), *more]
    return [Section(Span(shorten(view.problem.question, 300), "strong"), blocks, name="group", id="group")]


def _rewards(views: Sequence[DebateView]) -> Table:
    """Return the mean and the spread of each reward stream by round, over all debates and agents."""
    rows: list[Sequence[Words]] = []
    for round_ in _rounds(views):
        turns = [turn for view in views for row in view.turns if (turn := row[round_]) is not None]
        cells: list[Words] = [views[0].round_name(round_)]
        for stream in STREAMS:
            values = [value for turn in turns if (value := turn.rewards[stream]) is not None]
            cells.append(f"{fmean(values):+.2f} ± {pstdev(values):.2f}" if values else "–")
        rows.append(cells)
    heads = ("rewards, mean ± spread", *(f">{name}" for name in STREAMS))
    return Table(heads, rows, name="streams", kind="plain")


def _rounds(views: Sequence[DebateView]) -> range:
    return range(min(len(row) for view in views for row in view.turns))


def _grid(view: GroupView) -> Table:
    """Return a row for each agent of each debate, with its answer and its advantage in each round."""
    turns = (turn for debate in view.debates for turn in debate.spoken())
    most = max((abs(value) for turn in turns if (value := _advantage(turn)) is not None), default=0.0)
    rounds = _rounds(view.debates)
    heads = ["debate", "agent"]
    for round_ in rounds:
        heads += [view.debates[0].round_name(round_), ">advantage"]
    rows: list[Sequence[Words]] = []
    for debate, judged in zip(view.debates, view.judged, strict=True):
        for agent, row in enumerate(debate.turns):
            cells: list[Words] = [Span(debate.id, link=to_debate(debate.id)), named_agent(debate, agent)]
            for round_ in rounds:
                cells += _cells(debate, row[round_], most)
            right, decided = judged[agent]
            votes = Span(f"{right} of {decided}" if decided else "–", "", to_debate(debate.id, "graph"))
            rows.append([*cells, votes])
    caption = "advantage: of the solution, or of the votes where a turn has no solution; 0 is the baseline"
    heads = [*heads, ">votes right"]
    return Table(heads, rows, caption, name="grid", row_name="grid-row", kind="list sortable")


def _cells(view: DebateView, turn: TurnView | None, most: float) -> tuple[Words, Words]:
    if turn is None:
        return "–", "–"
    answer = "votes" if turn.ballot else shorten(turn.answer or "no answer", 24)
    said: list[str | Span] = [Span(answer, "" if turn.ballot else "answer", to_turn(view.id, turn.id))]
    said += [] if turn.ballot else [" ", grade(turn.grade)]
    said += [Span(" ★ won", "lit")] if view.winner == turn.id else []
    value = _advantage(turn)
    if value is None:
        return said, "–"
    link = to_debate(view.id, "why", turn.id)
    return said, Span(f"{value:+.2f}", "", link, "advantage", bar=value / most if most else 0.0)


def _advantage(turn: TurnView) -> float | None:
    return turn.advantages["judge" if turn.ballot else "generator"]
