"""Whose labels were used, and whether those that stood for others were right: an audit, and no reward."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from typing import NamedTuple

from rewards import Correct, Credit
from rewards.pseudo import PSEUDO


class LabelCounts(NamedTuple):
    """Problems by what rewarded their solutions; of those without a label the rounds with a pseudo-label.

    ``graded``: pseudo-labels that a gold answer can tell right from wrong; ``right`` of them are.
    """

    problems: int = 0
    labelled: int = 0
    rounds: int = 0
    pseudo: int = 0
    graded: int = 0
    right: int = 0

    def plus(self, other: LabelCounts) -> LabelCounts:
        """Return the sums."""
        return LabelCounts(*(a + b for a, b in zip(self, other, strict=True)))

    def metrics(self) -> dict[str, float]:
        """Return the shares; one of nothing is left out.

        >>> LabelCounts(4, 1, rounds=6, pseudo=3, graded=2, right=1).metrics()
        {'labels/share': 0.25, 'labels/pseudo': 0.5, 'audit/pseudo_right': 0.5}
        """
        parts = {
            "labels/share": (self.labelled, self.problems),
            "labels/pseudo": (self.pseudo, self.rounds),
            "audit/pseudo_right": (self.right, self.graded),
        }
        return {name: part / whole for name, (part, whole) in parts.items() if whole}


def label_counts(
    credits: Sequence[Credit], correct: Sequence[Correct], groups: Sequence[Hashable]
) -> LabelCounts:
    """Return the counts of a step; entry i of each argument is about debate i.

    A pseudo-label is right where most solutions with that answer are.
    """
    of_group: dict[Hashable, list[tuple[Credit, Correct]]] = {}
    for credit, table, group in zip(credits, correct, groups, strict=True):
        of_group.setdefault(group, []).append((credit, table))
    counts = LabelCounts()
    for members in of_group.values():
        first = members[0][0]
        labelled = first.judge == "truth" or first.truth == "truth"
        counts = counts.plus(LabelCounts(1, int(labelled)))
        if first.truth in PSEUDO:
            rounds = [_round(members, round_) for round_ in range(len(first.labels))]
            counts = reduce(LabelCounts.plus, rounds, counts)
    return counts


def _round(members: Sequence[tuple[Credit, Correct]], round_: int) -> LabelCounts:
    """Return the counts of a round of a group; any of its solutions with the answer shows the grade."""
    labels = members[0][0].labels
    if labels[round_] is None:
        return LabelCounts(rounds=1)
    grades = [
        table[agent][other] is True
        for credit, table in members
        if table is not None
        for agent, row in enumerate(credit.grades)
        for other, same in enumerate(row)
        if same is True and labels[other] == labels[round_] and table[agent][other] is not None
    ]
    right = sum(grades) > len(grades) / 2
    return LabelCounts(rounds=1, pseudo=1, graded=bool(grades), right=right)
