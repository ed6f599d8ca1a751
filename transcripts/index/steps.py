"""The figures of each step of a run, from the index alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transcripts.index.facts import WINNERS
from transcripts.index.schema import PLACES

_RIGHT, _WRONG = WINNERS.index("right"), WINNERS.index("wrong")
_FIGURES = (
    "count(*), avg(d.correct_first), avg(d.correct_last), "
    f"avg(CASE d.winner WHEN {_RIGHT} THEN 1.0 WHEN {_WRONG} THEN 0.0 END), avg(d.judge), "
    "total(d.votes), total(d.cycle > 0), total(d.malformed), total(d.truncated), total(d.tokens), "
    "avg(d.peer), avg(d.truth), avg(d.judging), avg(d.format)"
)


@dataclass(frozen=True, slots=True)
class StepRow:
    """The debates of one step, or of all (``step`` None). Means are over the debates that have the value.

    ``correct_first``, ``correct_last``: mean share of right solutions in the first and the last round;
    ``winner_right``: share of right ones among the graded winners; ``judge``: mean share of right votes, by
    debate; ``cycles``: debates with a cycle; ``votes``, ``malformed``, ``truncated`` and ``tokens`` are sums;
    ``peer``, ``truth``, ``judging``, ``format``: mean rewards. All as the filters of the names have them.
    """

    step: int | None
    debates: int
    correct_first: float | None
    correct_last: float | None
    winner_right: float | None
    judge: float | None
    votes: int
    cycles: int
    malformed: int
    truncated: int
    tokens: int
    peer: float | None
    truth: float | None
    judging: float | None
    format: float | None


def steps_sql(debates: str, *, by_step: bool, whole: bool) -> str:
    """Return the SELECT of the rows of ``debates``, itself a SELECT from the table of that name.

    Of a ``whole`` run, shards are gone through in order, each with its range of keys: grouping by a computed
    step takes twice as long. What a filter finds is grouped: its own index is looked up once, not by step.
    """
    if not by_step:
        return f"SELECT NULL, {_FIGURES} FROM ({debates}) d"
    if not whole:
        step = f"d.key / {PLACES}"
        return f"SELECT {step}, {_FIGURES} FROM ({debates}) d GROUP BY {step} ORDER BY {step}"
    first = f"s.step * {PLACES}"
    joined = f"shards s CROSS JOIN ({debates}) d ON d.key BETWEEN {first} AND {first} + {PLACES - 1}"
    return f"SELECT s.step, {_FIGURES} FROM {joined} GROUP BY s.step ORDER BY s.step"


def step_row(values: tuple[Any, ...]) -> StepRow:
    """Return the row of what ``steps_sql`` selects."""
    step, debates, first, last, winner, judge, *sums_and_rewards = values
    sums = [int(value) for value in sums_and_rewards[:5]]
    return StepRow(step, debates, first, last, winner, judge, *sums, *sums_and_rewards[5:])
