"""The rewards of a debate's turns: four streams that stay apart until the advantage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from debate.types import TurnId
from debate.values import Value

T = TypeVar("T")
Truth: TypeAlias = bool | Literal["missing"] | None
"""True or False as graded, None when it was not (or the grader failed), "missing" without an answer."""

Correct: TypeAlias = Sequence[Sequence[Truth]] | None
"""``correct[agent][round]``, shape (N, R); None for a problem without an answer."""

Stream: TypeAlias = tuple[tuple[float | None, ...], ...]
"""``stream[agent][round]``; None means that the turn has no signal, which is not zero."""

STREAMS: Final = ("peer", "truth", "judge", "format")
"""The fields of ``Rewards`` that hold a stream."""


class Rewards(Value, frozen=True):
    """Rewards by turn; index them ``[agent][round]``.

    ``peer`` (N, R): votes received, in [-1, 1] for margin and copeland; None without votes.
    ``truth`` (N, R): ground truth; None when the turn was not graded.
    ``judge`` (N, R + 1): votes given, in [-1, 1]; None when no vote had a value. Round R is the final ballot.
    ``format`` (N, R + 1): 0.0, or the penalty where due comparisons are missing; None where there is no turn.
    ``counters``: sorted (name, count) pairs, every name present in every debate.
    """

    peer: Stream
    truth: Stream
    judge: Stream
    format: Stream
    counters: tuple[tuple[str, int], ...] = ()

    def count(self, name: str) -> int:
        """Return one counter; KeyError when there is none of that name.

        >>> Rewards((), (), (), (), (("votes/valid", 9),)).count("votes/valid")
        9
        """
        return dict(self.counters)[name]


NO_REWARDS = Rewards((), (), (), ())
"""Of a debate that was not scored."""


def stream_of(values: Mapping[TurnId, float | None], num_agents: int, num_rounds: int) -> Stream:
    """Return the values by turn as ``[agent][round]``; None where there is no value.

    >>> stream_of({TurnId(1, 0): 0.5}, 2, 1)
    ((None,), (0.5,))
    """
    rows: list[list[float | None]] = [[None] * num_rounds for _ in range(num_agents)]
    for turn, value in values.items():
        if 0 <= turn.agent < num_agents and 0 <= turn.round < num_rounds:
            rows[turn.agent][turn.round] = value
    return tuple(map(tuple, rows))


def known_values(stream: Sequence[Sequence[float | None]]) -> list[float]:
    """Return the values of the turns that have one.

    >>> known_values(((0.5, None), (None, -1.0)))
    [0.5, -1.0]
    """
    return [value for row in stream for value in row if value is not None]


def value_of(table: Sequence[Sequence[T]], turn: TurnId) -> T | None:
    """Return ``table[agent][round]`` of a stream or of grades, None beyond its ends.

    >>> value_of(((0.5,),), TurnId(0, 0)), value_of(((0.5,),), TurnId(0, 1))
    (0.5, None)
    """
    row = table[turn.agent] if 0 <= turn.agent < len(table) else ()
    return row[turn.round] if 0 <= turn.round < len(row) else None
