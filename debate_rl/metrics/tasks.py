"""The figures of each source of problems, where a run trains on several: one curve for each task.

A source is named as ``Problem.source`` has it, without the data set where all are of one: ``gsm8k`` for
rlvr_mixed/gsm8k. One with more than ``MOST`` sources (the topics of a large set) has no curves of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from debate import Debate, Problem
from debate.types import WHOLE_RESPONSE
from debate_rl.metrics.answers import pass_at_k
from envs.data.loading import plain_subject
from rewards import Correct, Rewards
from rewards.truth import grade_of, score_of
from rewards.types import known_values

MOST = 16
LONGEST = 60
"""Characters of a source's name in metrics."""
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def sources_of(problems: Iterable[Problem]) -> dict[str, str]:
    """Return the name of each source in metrics; nothing where there is one, or more than ``MOST``.

    >>> sources_of([Problem(name, "?", source=f"rlvr_mixed/{name}") for name in ("gsm8k", "MATH")])
    {'rlvr_mixed/gsm8k': 'gsm8k', 'rlvr_mixed/MATH': 'math'}
    """
    sources = list(dict.fromkeys(problem.source for problem in problems))
    if not 1 < len(sources) <= MOST:
        return {}
    alike = len({source.partition("/")[0] for source in sources}) == 1
    names = {source: (source.partition("/")[2] if alike else "") or source for source in sources}
    return {
        source: _NO_NAME.sub("_", plain_subject(name))[:LONGEST] or "none" for source, name in names.items()
    }


def source_metrics(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    rewards: Sequence[Rewards],
    sources: Mapping[str, str],
) -> dict[str, float]:
    """Return share, accuracy, pass@k, score and truth reward of each source that the batch has.

    ``sources``: as ``sources_of``. The share is of all debates of the batch; accuracy and score are means
    over solutions of every round, pass@k over problems, k being the solutions that each has.
    """
    of_source: dict[str, list[int]] = defaultdict(list)
    for index, debate in enumerate(debates):
        if debate.problem.source in sources:
            of_source[sources[debate.problem.source]].append(index)
    result: dict[str, float] = {}
    for name, members in sorted(of_source.items()):
        own = [debates[index] for index in members]
        tables = [correct[index] for index in members]
        truth = [value for index in members for value in known_values(rewards[index].truth)]
        figures = {"share": len(members) / len(debates)} | _graded(own, tables) | score_metrics(own, tables)
        figures |= {"reward/truth": fmean(truth)} if truth else {}
        result |= {f"{figure}/source/{name}": value for figure, value in figures.items()}
    return result


def _graded(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return accuracy, and the chance that one of a problem's solutions is right."""
    by_problem: dict[str, list[bool]] = defaultdict(list)
    for debate, table in zip(debates, correct, strict=True):
        grades = (grade_of(turn.id, table) for turn in debate.turns if not turn.ballot)
        by_problem[debate.problem.id] += [grade is True for grade in grades if grade is not None]
    problems = [right for right in by_problem.values() if right]
    if not problems:
        return {}
    every, most = [one for right in problems for one in right], min(map(len, problems))
    passed = fmean(pass_at_k(len(right), sum(right), most) for right in problems)
    return {"accuracy": fmean(every), f"pass@{most}": passed}


def score_metrics(debates: Iterable[Debate], correct: Iterable[Correct]) -> dict[str, float]:
    """Return the mean score of graded solutions where that is measured; of a missing one it is 0.

    A score is the share of the instructions that are followed, or an overlap's F1.
    """
    scores = [score for pair in zip(debates, correct, strict=True) for score in _scores(*pair)]
    return {"score": fmean(scores)} if scores else {}


def _scores(debate: Debate, correct: Correct) -> list[float]:
    graded = [turn for turn in debate.turns if grade_of(turn.id, correct) is not None]
    scores = [score_of(turn) for turn in graded]
    measured = debate.problem.kind in WHOLE_RESPONSE or any(score is not None for score in scores)
    return [score or 0.0 for score in scores] if measured else []
