"""Judges of a known accuracy, and how they vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random


@dataclass(frozen=True, slots=True)
class Judges:
    """How all judges of a simulation vote.

    ``silent`` is the chance that a due vote is left out, ``ties`` that a vote is a tie. Else the right side
    of a decidable pair wins with chance ``accuracy``, by ``position`` more where it was shown first and less
    where second; of two right or two wrong solutions the first shown wins with chance 1/2 + ``position``.
    """

    accuracy: float = 0.7
    position: float = 0.0
    ties: float = 0.0
    silent: float = 0.0

    def __post_init__(self) -> None:
        for name in ("accuracy", "ties", "silent"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: must be in [0, 1], got {value}")
        least = abs(self.position)
        if not (least <= 0.5 and least <= self.accuracy <= 1.0 - least):
            raise ValueError(
                f"position: accuracy and 1/2, each plus and minus it, must be in [0, 1], got {self.position}"
            )

    @property
    def expected(self) -> dict[str, float]:
        """What the figures of docs/judging.md are, up to chance; the first shown is right half of the time.

        >>> Judges(0.75, ties=0.2).expected["judge/accuracy"]
        0.6000000000000001
        """
        decided = 1.0 - self.ties
        return {
            "judge/accuracy": decided * self.accuracy,
            "judge/strict_accuracy": (1.0 - self.silent) * decided * self.accuracy,
            "judge/coverage": 1.0 - self.silent,
            "judge/ties": self.ties,
            "bias/position": self.position,
        }

    def first_wins(self, first: bool, second: bool) -> float:
        """Return the chance that the first shown wins a vote that is no tie; the sides: are they right."""
        if first == second:
            return 0.5 + self.position
        return (self.accuracy if first else 1.0 - self.accuracy) + self.position

    def lines(self, shown: Sequence[tuple[str, bool]], rng: Random) -> list[str]:
        """Return the comparison lines for labels in the order shown, each with whether its solution is right.

        >>> Judges(1.0).lines([("K7", False), ("Q2", True)], Random(0))[0] in ("K7 < Q2", "Q2 > K7")
        True
        """
        found: list[str] = []
        for first, second in combinations(shown, 2):
            silent, tie, wins = (rng.random() for _ in range(3))
            won = wins < self.first_wins(first[1], second[1])
            sign = "=" if tie < self.ties else ">" if won else "<"
            turned = rng.random() < 0.5  # the order within a line says nothing of the order shown
            line = (first[0], sign, second[0])
            if turned:
                line = (second[0], sign.translate(_TURNED), first[0])
            if silent >= self.silent:
                found.append(" ".join(line))
        return found


_TURNED = str.maketrans("<>", "><")
