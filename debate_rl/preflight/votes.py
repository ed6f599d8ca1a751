"""Accuracy of votes, of the crowd and of its majority, and a forecast of training without labels.

p_v: fraction of right votes on decidable pairs. p_c: the fraction of these pairs on which the crowd's more
frequent answer is right. p_m: fraction of problems whose most frequent answer is right. Training on votes
moves answers towards the preferred answers, and pseudo-labels move them towards the majority. Accuracy is
therefore forecast to rise on votes if p_v > 1/2, on majorities if p_m > 1/2, and more on votes than on
majorities if p_v > p_m. This is rule E of ``experiments/frontier``, which was tested on three starting models
that were not used to make the rule.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate import Debate
from debate.types import TurnId
from debate_rl.metrics.intervals import Estimate, Numbered, clustered_mean, difference, student
from debate_rl.preflight.check import Check, of_estimate
from envs.answers.keys import AnswerKey
from rewards import Correct
from rewards.config import RewardConfig
from rewards.measured import answer_counts, judged_pairs
from rewards.truth import is_right

LEAST_PROBLEMS = 50
"""Minimum number of labelled problems. With fewer problems, intervals contain both signs."""
TESTED = "a rule without wrong forecasts on three starting models (experiments/frontier)"
"""The result of ``experiments.frontier.preregistered --check`` for gains with an interval that excludes 0."""
WORDS: Mapping[str, tuple[str, str, str]] = {
    "votes": ("training on votes alone", "gains", "loses"),
    "majority": ("training on majorities as pseudo-labels", "gains", "loses"),
    "votes over majority": (
        *("training on votes", "gains more than on majorities", "gains less than on majorities"),
    ),
}
"""The subject of each forecast, and its words for a positive and a negative sign."""


@dataclass(frozen=True, slots=True)
class RoundVotes:
    """Accuracy of a round's votes and of the crowd on decidable pairs, and the difference.

    All estimates are clustered by problem. ``shared``: see ``shared_errors``. ``majority``: the fraction of
    graded problems whose most frequent answer is right; ties count in proportion. ``over_majority``: the
    accuracy of votes minus ``majority``.
    """

    round: int
    votes: Estimate
    crowd: Estimate
    difference: Estimate
    shared: Estimate | None
    majority: Estimate
    over_majority: Estimate


class _Row(NamedTuple):
    """A vote on a decidable pair: 1 if right, 1 if the crowd is right, the problem and the judge."""

    right: float
    crowd: float
    problem: str
    judge: tuple[int, TurnId]


def votes_by_round(
    debates: Sequence[Debate],
    correct: Sequence[Correct | None],
    key: AnswerKey,
    groups: Sequence[Hashable] | None = None,
) -> list[RoundVotes]:
    """Return the figures of each judged round that has a vote on a decidable pair. A tie is a wrong vote.

    The crowd is all answers of the round in the debates of a group (without ``groups``: of a problem). It is
    right if the answer of the right solution is more frequent, and half right if both answers
    are equally frequent.
    """
    groups = [debate.problem.id for debate in debates] if groups is None else groups
    rows: dict[int, list[_Row]] = {}
    for one in judged_pairs(debates, correct, key, groups):
        if one.vote is not None:
            judge, problem = (one.debate, one.pair.judge), debates[one.debate].problem.id
            row = _Row(float(one.vote), one.crowd, problem, judge)
            rows.setdefault(one.pair.first.round, []).append(row)
    crowds: dict[int, list[tuple[str, float]]] = {}
    for number, problem, right in _majorities(debates, correct, key, groups):
        crowds.setdefault(number, []).append((problem, right))
    return [_of_round(number, rows[number], crowds[number]) for number in sorted(rows)]


def _majorities(
    debates: Sequence[Debate], correct: Sequence[Correct | None], key: AnswerKey, groups: Sequence[Hashable]
) -> Iterator[tuple[int, str, float]]:
    """Yield round, problem and the fraction of right answers among the most frequent answers, by group."""
    right, problem_of = set[tuple[Hashable, int, str]](), dict[Hashable, str]()
    for debate, table, group in zip(debates, correct, groups, strict=True):
        for turn in debate.turns if table is not None else ():
            answer = turn.parsed.answer
            grade = None if answer is None or table is None else is_right(turn.id, table)
            if answer is not None and grade is not None:
                problem_of[group] = debate.problem.id
                if grade:
                    right.add((group, turn.id.round, key(debate.problem, answer)))
    counts: dict[tuple[Hashable, int], dict[str, int]] = {}
    for (group, number, answer), count in answer_counts(debates, key, groups).items():
        if group in problem_of:
            counts.setdefault((group, number), {})[answer] = count
    for (group, number), of in counts.items():
        leading = [answer for answer, count in of.items() if count == max(of.values())]
        yield number, problem_of[group], fmean((group, number, answer) in right for answer in leading)


def _of_round(number: int, rows: Sequence[_Row], majorities: Sequence[tuple[str, float]]) -> RoundVotes:
    votes, crowd, problems, judges = zip(*rows, strict=True)
    graded, right = zip(*majorities, strict=True)
    codes = [*map(Numbered().__getitem__, (*problems, *graded))]
    in_votes = [place < len(votes) for place in range(len(codes))]
    over_majority = difference([*votes, *right], in_votes, np.array(codes))
    assert over_majority is not None
    return RoundVotes(
        number,
        clustered_mean(votes, problems),
        clustered_mean(crowd, problems),
        clustered_mean([one - other for one, other in zip(votes, crowd, strict=True)], problems, signed=True),
        shared_errors([not vote for vote in votes], judges, problems),
        clustered_mean(right, graded),
        over_majority,
    )


def shared_errors(
    wrong: Sequence[bool], judges: Sequence[Hashable], problems: Sequence[Hashable]
) -> Estimate | None:
    """Return the intraclass correlation of errors: 0 if judges err independently, 1 if all err together.

    It is (c - e) / (1 - e) [Fleiss, Cuzick 1979]. c is the fraction of wrong votes among the votes of other
    judges on the problem of a wrong vote, and e is the fraction of wrong votes among all votes. The interval
    is a jackknife over problems. None if no problem has votes of two judges, or if all or no votes are wrong.

    >>> shared_errors([True, True, False, False], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    1.0
    >>> shared_errors([True, False, True, False], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    -1.0
    """
    by_problem: dict[Hashable, list[tuple[Hashable, bool]]] = {}
    for error, judge, problem in zip(wrong, judges, problems, strict=True):
        by_problem.setdefault(problem, []).append((judge, error))
    # For each problem: ordered pairs of votes of two judges, with the first wrong, with both wrong.
    pairs = [
        [(one, other) for (a, one), (b, other) in permutations(votes, 2) if a != b]
        for votes in by_problem.values()
    ]
    counts = np.array([(len(of), sum(a for a, _ in of), sum(a and b for a, b in of)) for of in pairs], float)
    value = _correlation(counts.sum(axis=0))
    if value is None:
        return None
    left_out = [_correlation(counts.sum(axis=0) - one) for one in counts]
    known = np.array([one for one in left_out if one is not None])
    count = len(counts)
    if len(known) < count or count < 2:
        return Estimate(value, -inf, inf, len(wrong), count, 1.0)
    error = sqrt((count - 1) / count * float(np.square(known - known.mean()).sum()))
    return student(value, error, len(wrong), count)


def _correlation(counts: NDArray[np.float64]) -> float | None:
    every, first, both = map(float, counts)
    return None if first in (0, every) else (both / first - first / every) / (1 - first / every)


def labelled(debates: Sequence[Debate], correct: Sequence[Correct | None]) -> int:
    """Return the number of problems with a graded solution."""
    graded = [any(grade is not None for row in table or () for grade in row) for table in correct]
    return len({debate.problem.id for debate, known in zip(debates, graded, strict=True) if known})


def forecast_checks(problems: int, rounds: Sequence[RoundVotes], rewards: RewardConfig) -> Iterator[Check]:
    """Yield checks that forecast training without labels. The first round that has votes is used.

    ``problems``: the number of graded problems. With fewer than ``LEAST_PROBLEMS``, the result is a single
    check that is not measured. A forecast loss is a warning if the rewards use this source.
    """
    if problems < LEAST_PROBLEMS or not rounds:
        few = f"needs votes on {LEAST_PROBLEMS} problems with gold answers (--problems), but has {problems}"
        why = few if problems < LEAST_PROBLEMS else "no vote is on a decidable pair"
        yield Check("forecast", "not measured", None, why)
        return
    first = rounds[0]
    margins = (
        ("votes", "p_v - 1/2", _over_even(first.votes), "rewards.truth_weight=1.0"),
        ("majority", "p_m - 1/2", _over_even(first.majority), "rewards.pseudo=none"),
        ("votes over majority", "p_v - p_m", first.over_majority, "rewards.pseudo=last_majority"),
    )
    votes = rewards.stream_weights[0] > 0
    unlabelled = votes and rewards.hides_labels
    used = {"votes": votes, "majority": rewards.pseudo != "none", "votes over majority": unlabelled}
    for name, margin_of, margin, remedy in margins:
        sign, (about, gains, loses) = sign_of(margin), WORDS[name]
        said = (
            f"{about} {gains if sign > 0 else loses}"
            if sign
            else "no forecast, because the interval contains 0"
        )
        why = f"{margin_of} in round {first.round}; without labels: {said}; {TESTED}"
        verdict = "not used" if not used[name] else "warn" if sign < 0 else "ok"
        yield of_estimate(f"forecast, {name}", verdict, margin, why, remedy)


def sign_of(margin: Estimate) -> int:
    """Return 1 if the margin's interval is above 0, -1 if it is below, and 0 if it contains 0."""
    if margin.clusters < 2:
        return 0
    return 1 if margin.low > 0 else -1 if margin.high < 0 else 0


def _over_even(rate: Estimate) -> Estimate:
    return Estimate(rate.value - 0.5, rate.low - 0.5, rate.high - 0.5, rate.n, rate.clusters, 1.0)
