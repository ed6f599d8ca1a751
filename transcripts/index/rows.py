"""Rows for lists of debates and steps, read from the index alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from rewards import STREAMS
from transcripts.index.database import MOST_DEBATES, id_of
from transcripts.index.facts import WINNERS, Facts, ProblemFacts

COLUMNS = ", ".join(
    [
        "d.key",
        *(f"problems.{name}" for name in ProblemFacts._fields),
        "persona_lists.names",
        *(f"d.{name}" for name in Facts._fields),
    ]
)
JOINS = (
    "JOIN problems ON problems.key = d.problem_key JOIN persona_lists ON persona_lists.key = d.personas_key"
)


@dataclass(frozen=True, slots=True)
class DebateRow:
    """One debate of a list. ``id`` names it, ``facts`` has its numbers, ``problem`` its problem."""

    id: str
    step: int
    index: int
    problem: ProblemFacts
    personas: tuple[str, ...]
    facts: Facts

    @property
    def winner(self) -> str:
        """The kind of the winner: right, wrong, ungraded, or none."""
        return WINNERS[self.facts.winner]


def row_of(values: tuple[Any, ...]) -> DebateRow:
    """Return the row of a result with the columns ``COLUMNS``."""
    width = len(ProblemFacts._fields)
    key, problem, names, facts = values[0], values[1 : width + 1], values[width + 1], values[width + 2 :]
    step, index = divmod(key, MOST_DEBATES)
    personas = tuple(orjson.loads(names))
    return DebateRow(id_of(key), step, index, ProblemFacts(*problem), personas, Facts(*facts))


def _mean(value: str, count: str) -> str:
    """Return the SQL of the mean over all turns or votes, from each debate's mean and count."""
    return f"total(d.{value} * d.{count}) / nullif(total(d.{count}), 0)"


_RIGHT, _WRONG = WINNERS.index("right"), WINNERS.index("wrong")
_FIGURES = ", ".join(
    [
        "count(*)",
        _mean("accuracy_round_0", "graded_round_0"),
        _mean("accuracy_last_round", "graded_last_round"),
        f"avg(CASE d.winner WHEN {_RIGHT} THEN 1.0 WHEN {_WRONG} THEN 0.0 END)",
        _mean("judge_accuracy", "decidable_votes"),
        "total(d.votes), total(d.cycle > 0), total(d.malformed), total(d.truncated), total(d.tokens)",
        *(_mean(f"reward_{name}", f"reward_{name}_n") for name in STREAMS),
    ]
)


@dataclass(frozen=True, slots=True)
class StepRow:
    """The figures of one step's debates, or of all (``step`` None). They are the same as in metrics.jsonl.

    ``accuracy_...``: right / graded answers. ``judge_accuracy``: right / valid votes on decidable pairs.
    ``winner_accuracy``: right / graded winners. ``reward_...``: means over the turns that have one.
    ``cycles``: the number of debates with a cycle. ``votes``, ``malformed``, ``truncated`` and ``tokens`` are
    sums.
    """

    step: int | None
    debates: int
    accuracy_round_0: float | None
    accuracy_last_round: float | None
    winner_accuracy: float | None
    judge_accuracy: float | None
    votes: int
    cycles: int
    malformed: int
    truncated: int
    tokens: int
    reward_peer: float | None
    reward_truth: float | None
    reward_judge: float | None
    reward_format: float | None


def steps_sql(debates: str, *, by_step: bool, whole: bool) -> str:
    """Return the SELECT of the step rows for ``debates``, which is itself a SELECT from the table debates.

    For a ``whole`` run, shards are visited in order, each with its range of keys, because grouping by a
    computed step takes twice as long. The results of a filter are grouped instead, so that its condition is
    evaluated only once.
    """
    if not by_step:
        return f"SELECT NULL, {_FIGURES} FROM ({debates}) d"
    if not whole:
        step = f"d.key / {MOST_DEBATES}"
        return f"SELECT {step}, {_FIGURES} FROM ({debates}) d GROUP BY {step} ORDER BY {step}"
    first = f"s.step * {MOST_DEBATES}"
    joined = f"shards s CROSS JOIN ({debates}) d ON d.key BETWEEN {first} AND {first} + {MOST_DEBATES - 1}"
    return f"SELECT s.step, {_FIGURES} FROM {joined} GROUP BY s.step ORDER BY s.step"


def step_row(values: tuple[Any, ...]) -> StepRow:
    """Return the row of a result of ``steps_sql``."""
    step, debates, first, last, winner, judge, *sums_and_rewards = values
    sums = [int(value) for value in sums_and_rewards[:5]]
    return StepRow(step, debates, first, last, winner, judge, *sums, *sums_and_rewards[5:])
