"""Debates of a problem held in chunks, until some are right and some are wrong.

What a problem teaches lies in the difference between right and wrong. A problem of middling difficulty shows
it after a few debates; one that is nearly always solved, or nearly never, may need many. A debate is right
where a solution of its last round is right, and wrong where one is wrong or missing; one of several agents
may be both. So the truth of a problem that stopped differs within its last round, which is what dynamic
sampling asks of it (``debate_rl.training.step_problems``); where debates end after different rounds
(``debate.min_rounds``) and truth counts in the last alone, right and wrong may stand in different groups.
Solutions without a verdict count as neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from statistics import fmean

from debate import Problem
from debate_rl.config import AdaptiveConfig, TrainConfig
from debate_rl.evaluation.grading import Grades
from rewards.truth import right_share


def has_enough(tables: Sequence[Grades | None], wanted: AdaptiveConfig) -> bool:
    """Return whether enough of a problem's debates are right and enough are wrong; ``tables``: of each.

    >>> right, both = ((False, True),), ((True, True), (True, "missing"))
    >>> has_enough([right, both], AdaptiveConfig(chunk=1, right=2, wrong=1))
    True
    >>> has_enough([right, both], AdaptiveConfig(chunk=1, right=2, wrong=2))
    False
    """
    last = [{row[-1] for row in table} for table in tables if table is not None]
    right = sum(True in grades for grades in last)
    wrong = sum(not grades.isdisjoint({False, "missing"}) for grades in last)
    return right >= wanted.right and wrong >= wanted.wrong


def group_names(problems: Sequence[Problem]) -> list[str]:
    """Return a name for the group of each problem of a step: its id, with a number where it comes again.

    >>> group_names([Problem("p", "?"), Problem("q", "?"), Problem("p", "?")])
    ['p', 'q', 'p (2)']
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for problem in problems:
        seen[problem.id] += 1
        count = seen[problem.id]
        names.append(problem.id if count == 1 else f"{problem.id} ({count})")
    return names


def adaptive_metrics(
    groups: Sequence[str], correct: Sequence[Grades | None], train: TrainConfig
) -> dict[str, float]:
    """Return the debates of a problem, the share that was saved, and the accuracy of the first chunks.

    Entry i of each argument is about debate i; those of a group stand together. How many debates a problem
    has depends on their grades, so the mean over all of them is biased. That over the first chunk is not, as
    its size was fixed before; it is taken over the last round.
    """
    tables = [
        [table for _, table in members]
        for _, members in groupby(zip(groups, correct, strict=True), key=lambda pair: pair[0])
    ]
    sizes = [len(group) for group in tables]
    first = [
        right_share(row[-1] for table in group[: train.adaptive.chunk] for row in table or ())
        for group in tables
    ]
    known = [share for share in first if share is not None]
    return {
        "sampling/group_size/mean": fmean(sizes),
        "sampling/group_size/min": float(min(sizes)),
        "sampling/group_size/max": float(max(sizes)),
        "sampling/saved": 1 - sum(sizes) / (len(sizes) * train.group_size),
    } | ({"sampling/accuracy": fmean(known)} if known else {})
