"""What the debate paid each turn: four streams that stay apart until the advantage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Truth: TypeAlias = bool | Literal["missing"] | None
"""True or False as graded, None when it was not (or the grader failed), "missing" without an answer."""

Correct: TypeAlias = Sequence[Sequence[Truth]] | None
"""``correct[agent][round]``, shape (N, R); None for a problem without an answer."""

Stream: TypeAlias = tuple[tuple[float | None, ...], ...]
"""``stream[agent][round]``; None means that the turn has no signal, which is not zero."""


@dataclass(frozen=True, slots=True)
class Rewards:
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
