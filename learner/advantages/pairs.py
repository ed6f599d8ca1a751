"""Judge turns by where the right solutions stood, so that both positions count alike.

A judge that always names the first is right whenever the first is right. Where such pairs are more frequent
in a batch, plain advantages reward the habit of naming the first; weighted so that pairs with the right
solution first and pairs with it second count alike, no habit that does not look at the solutions earns
anything (the reweighting of classes in cost-sensitive learning, as in balanced accuracy). A baseline may
depend on what the judge was shown, so each class has its own [Williams 1992].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from debate.types import TurnId
from learner.types import Transition


def sides_of(transitions: Sequence[Transition], truth_correct: float) -> list[int]:
    """Return for each turn on which side its judge was shown the right solutions: ``right_side``.

    ``truth_correct`` is the truth reward of a right solution, and of no other.
    """
    right = right_by_debate(transitions, truth_correct)
    return [right_side(one.turn.compared, right[one.debate]) for one in transitions]


def right_by_debate(transitions: Sequence[Transition], truth_correct: float) -> dict[int, dict[TurnId, bool]]:
    """Return for each debate whether its graded solutions are right, by their truth rewards."""
    right: dict[int, dict[TurnId, bool]] = {}
    for one in transitions:
        if one.debate not in right:
            right[one.debate] = {turn: value == truth_correct for turn, value in one.others}
        of_debate = right[one.debate]
        if one.truth is not None:
            of_debate[one.turn.id] = one.truth == truth_correct
    return right


def right_side(compared: Sequence[TurnId], right: Mapping[TurnId, bool]) -> int:
    """Return 1 where the right solution of a pair stood first more often than second, -1 for less, else 0.

    ``compared`` is in the order in which the judge was shown the solutions; pairs of two right or two wrong
    solutions, or with one that was not graded, do not count.

    >>> a, b, c = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0)
    >>> [right_side(shown, {a: True, b: False, c: False}) for shown in ([a, b], [b, a], [b, c], [b, a, c])]
    [1, -1, 0, 0]
    """
    decided = [(right[a], right[b]) for a, b in combinations(compared, 2) if a in right and b in right]
    firsts = sum(first - second for first, second in decided)
    return (firsts > 0) - (firsts < 0)


def balanced(
    advantages: Sequence[float | None], sides: Sequence[int], counts: Mapping[int, int]
) -> list[float | None]:
    """Return the advantages, those of side 1 and of side -1 weighted to count alike; side 0 and None stay.

    A side with n of the m turns of both gets the weight m / (2 n); ``counts`` are the ``side_counts``.

    >>> values, sides = [1.0, -1.0, 0.5, 2.0, None, 3.0], [1, 1, 1, -1, -1, 0]
    >>> balanced(values, sides, side_counts(values, sides))
    [0.6666666666666666, -0.6666666666666666, 0.3333333333333333, 4.0, None, 3.0]
    """
    total = sum(counts.values())
    weights = {side: total / (2 * count) for side, count in counts.items() if count} | {0: 1.0}
    return [
        None if advantage is None else weights[side] * advantage
        for advantage, side in zip(advantages, sides, strict=True)
    ]


def side_counts(advantages: Sequence[float | None], sides: Sequence[int]) -> dict[int, int]:
    """Return how many advantages there are with the right solution first (1) and second (-1).

    >>> side_counts([1.0, None, 2.0], [1, 1, -1])
    {1: 1, -1: 1}
    """
    present = [side for a, side in zip(advantages, sides, strict=True) if a is not None]
    return {side: present.count(side) for side in (1, -1)}
