"""A baseline that depends on what a turn was shown: problem and context, fitted over a step.

From the second round on, the turns of a group answer different prompts. An agent that was right before, or
was shown a right solution, is usually right again. So relative to the mean of the problem, a copied answer
gets credit and the best answer to a hopeless history gets blame. A baseline may depend on everything known
before the turn [Williams 1992; AT-GRPO, arXiv 2510.11062, groups turns by state for the same reason]. Here it
is

    b = m[problem] + e[context],   m, e = argmin  sum (r - m[problem] - e[context])^2 + RIDGE sum e^2

over the turns of one round in a step. The context is whether the agent's own last solution is right, and how
many right solutions of others it was shown. A problem has too few turns to estimate a mean for each context.
So the problems of a step share the effect of a context, which is shrunk towards 0 if few turns have it. In
the first round, or if no solution was graded, all contexts are the same and b is the group's mean.

With "persona_effect" the context is the persona: some personas are right more often because of their
temperature or instructions. A separate group for each persona would have only K turns for its mean. It would
add more variance than it removes, unless the personas differ greatly.

The fit is linear in the rewards, and its weights depend only on the contexts. "group" subtracts the fit, so
the expected gradient of a turn is (1 - h) times the true one, where h is the weight of the turn's own reward
in its fit. "rloo" subtracts the fit without the turn itself, (fit - h r) / (1 - h), and is unbiased. Both
statements hold if the other rewards do not depend on the turn, as is the case for truth.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from debate.types import Turn, TurnId
from learner.types import Transition

RIDGE = 1.0
"""The effect of a context with n turns is multiplied by about n / (n + RIDGE)."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """The effects of contexts, in addition to the means of groups.

    ``offset`` (n,): the effect for each of n values. ``leverage`` (n,): the weight of a value in its own
    offset, at least 0 and below 1 - 1 / (size of its group).
    """

    offset: NDArray[np.float64]
    leverage: NDArray[np.float64]

    def of(self, indices: list[int]) -> Effects:
        """Return the effects for the values with these indices."""
        return Effects(self.offset[indices], self.leverage[indices])


def context_of(turn: Turn, right: Mapping[TurnId, bool]) -> tuple[bool | None, int]:
    """Return whether the agent's last solution is right, and how many right solutions of others it was shown.

    The first part is None if unknown. ``right``: whether each graded solution of the debate is right. Only
    the newest shown solution of each agent counts.

    >>> from debate.types import Completion, ParsedTurn
    >>> shown = (TurnId(1, 0), TurnId(0, 0), TurnId(2, 0))
    >>> turn = Turn(TurnId(0, 1), "A", shown, Completion((), (), (), "", "stop", 0), ParsedTurn())
    >>> context_of(turn, {TurnId(0, 0): False, TurnId(1, 0): True, TurnId(2, 0): True})
    (False, 2)
    """
    agent, round_ = turn.id
    own = max((one for one in right if one.agent == agent and one.round < round_), default=None)
    newest = {one.agent: one for one in sorted(turn.shown) if one in right and one.agent != agent}
    return None if own is None else right[own], sum(right[one] for one in newest.values())


def context_effects(
    values: Sequence[float | None], groups: Sequence[Hashable], contexts: Sequence[Hashable]
) -> Effects:
    """Return the effects of contexts on the values, fitted with a mean for each group; 0 for a value None.

    >>> found = context_effects([1.0, 0.0, 1.0, 0.0], "ppqq", "xyxy")
    >>> found.offset.round(3).tolist()  # of two turns each: two thirds of +.5 and -.5
    [0.333, -0.333, 0.333, -0.333]
    >>> found.leverage.round(3).tolist()
    [0.167, 0.167, 0.167, 0.167]
    """
    effects = Effects(np.zeros(len(values)), np.zeros(len(values)))
    present = [index for index, value in enumerate(values) if value is not None]
    if not present:
        return effects
    at, columns = (_numbered([names[index] for index in present]) for names in (groups, contexts))
    has = np.eye(columns.max() + 1)[columns]
    sums = np.zeros((at.max() + 1, has.shape[1]))
    np.add.at(sums, at, has)
    within = has - (sums / np.bincount(at)[:, None])[at]
    solved = np.linalg.solve(within.T @ within + RIDGE * np.eye(within.shape[1]), within.T)
    effects.offset[present] = within @ (solved @ np.array([values[index] for index in present], np.float64))
    effects.leverage[present] = np.einsum("nc,cn->n", within, solved)
    return effects


def _numbered(names: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the number of each name (n,), in order of first occurrence."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def sides_of(transitions: Sequence[Transition], truth_correct: float) -> list[int]:
    """Return for each turn the side on which its judge was shown the right solutions; see ``right_side``.

    ``truth_correct`` must be the truth reward of right solutions and of no others.
    """
    right = right_by_debate(transitions, truth_correct)
    return [right_side(one.turn.compared, right[one.debate]) for one in transitions]


def right_by_debate(transitions: Sequence[Transition], truth_correct: float) -> dict[int, dict[TurnId, bool]]:
    """Return for each debate whether its graded solutions are right, according to their truth rewards."""
    right: dict[int, dict[TurnId, bool]] = {}
    for one in transitions:
        if one.debate not in right:
            right[one.debate] = {turn: value == truth_correct for turn, value in one.others}
        of_debate = right[one.debate]
        if one.truth is not None:
            of_debate[one.turn.id] = one.truth == truth_correct
    return right


def right_side(compared: Sequence[TurnId], right: Mapping[TurnId, bool]) -> int:
    """Return 1 if right solutions were shown first more often than second, -1 if less often, else 0.

    ``compared`` is in the order shown to the judge. Pairs of two right or two wrong solutions, or with an
    ungraded solution, do not count.

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
    """Return the advantages, weighted so that the sides 1 and -1 count equally.

    Side 0 and None are unchanged.

    A judge that always prefers the first solution is right whenever the first is right. If such pairs are
    more frequent in a batch, plain advantages reward that habit. With equal total weight for pairs with the
    right solution first and second, a habit that ignores the solutions earns nothing (as with the reweighted
    classes of balanced accuracy). A baseline may depend on what the judge was shown, so each side has its own
    [Williams 1992].

    A side with n of the m turns on both sides gets the weight m / (2 n). ``counts``: the result of
    ``side_counts``.

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
    """Return the number of advantages with the right solution first (1) and second (-1).

    >>> side_counts([1.0, None, 2.0], [1, 1, -1])
    {1: 1, -1: 1}
    """
    present = [side for a, side in zip(advantages, sides, strict=True) if a is not None]
    return {side: present.count(side) for side in (1, -1)}
