"""Weight votes by their measured accuracy: twice the lower bound of p_v - 1/2 over the last steps.

On a decidable pair of a labelled problem a vote is right or wrong. p_v is the fraction of right votes. At p_v
= 1/2 votes are coin flips and teach nothing. The accuracy of the majority is not used: votes also taught
solvers when the majority was right more often than single votes (rules B3 and C of ``experiments/frontier``
failed).

The state consists of sums over problems. Each step multiplies the sums by ``DECAY``, and sums of squares by
its square, so the state has a constant size and resumes exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from math import sqrt
from typing import NamedTuple, TypeVar

from debate.ramps import number
from debate.types import Debate, TurnId
from rewards.config import RewardConfig
from rewards.judge_rewards import better_side
from rewards.shaping import AnswerKey
from rewards.types import Correct
from rewards.votes import DuePair, ballot_box, due_pairs, valid_votes

Group = TypeVar("Group", bound=Hashable)
DECAY = 0.9
"""The factor by which each step multiplies the earlier sums, so that about the last ten steps count."""
LEAST = 10.0
"""The minimum number of problems, each counted by its decayed weight. Below it the accuracy is unknown."""
SURE = 1.96
"""The number of standard errors between the value and its lower bound."""
NO_SPREAD = 1e-9
"""A sum of squared residuals below this fraction of the sum of squared vote counts is treated as zero."""
_SUMS = ("problems", "n", "v")
_SQUARES = ("problems2", "nn", "vv", "nv")
_PREFIX = "measured/"


class JudgedPair(NamedTuple):
    """A due pair with exactly one right side: the debate's index, the vote's correctness, and the crowd's.

    ``vote``: None without a valid vote. ``crowd``: 1 if the right answer is the more common of the two, 0 if
    the wrong one is, and one half if both are equally common.
    """

    debate: int
    pair: DuePair
    vote: bool | None
    crowd: float


def judged_pairs(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    key: AnswerKey,
    groups: Sequence[Hashable] | None = None,
) -> Iterator[JudgedPair]:
    """Yield the decidable pairs of the debates, in order. A tie is a wrong vote.

    The crowd consists of all answers of the round in the debates of a group. ``groups``: the group of each
    debate; None groups the debates by problem.
    """
    groups = [debate.problem.id for debate in debates] if groups is None else groups
    counts = answer_counts(debates, key, groups)
    for index, (debate, table, group) in enumerate(zip(debates, correct, groups, strict=True)):
        if table is None:
            continue
        box = ballot_box(debate)
        for pair in due_pairs(box, valid_votes(box)):
            better = better_side(pair.first, pair.second, table)
            if better:
                sides = (pair.first, pair.second) if better > 0 else (pair.second, pair.first)
                right, wrong = (_count(debate, turn, group, counts, key) for turn in sides)
                crowd = 0.5 if right == wrong else float(right > wrong)
                vote = None if pair.verdict is None else pair.verdict == better
                yield JudgedPair(index, pair, vote, crowd)


def answer_counts(
    debates: Sequence[Debate], key: AnswerKey, groups: Sequence[Group]
) -> Counter[tuple[Group, int, str]]:
    """Return how often each answer was given, by group, round and answer key."""
    return Counter(
        (group, turn.id.round, key(debate.problem, turn.parsed.answer))
        for debate, group in zip(debates, groups, strict=True)
        for turn in debate.turns
        if turn.parsed.answer is not None
    )


def _count(
    debate: Debate,
    turn: TurnId,
    group: Hashable,
    counts: Counter[tuple[Hashable, int, str]],
    key: AnswerKey,
) -> int:
    answer = debate.turn(turn).parsed.answer
    return 0 if answer is None else counts[group, turn.round, key(debate.problem, answer)]


def measure(
    state: MutableMapping[str, float],
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    key: AnswerKey,
) -> None:
    """Add the votes of a step to the state.

    ``correct``: the grades of labelled problems, None for others.
    """
    of: dict[str, list[float]] = {}
    for pair in judged_pairs(debates, correct, key):
        if pair.vote is not None:
            sums = of.setdefault(debates[pair.debate].problem.id, [0.0, 0.0])
            sums[0] += 1.0
            sums[1] += pair.vote
    take(state, [(n, v) for n, v in of.values()])


def take(state: MutableMapping[str, float], problems: Sequence[tuple[float, float]]) -> None:
    """Add each problem's (votes, right votes) of a step to the state.

    >>> state = {}
    >>> take(state, [(4.0, 3.0)])
    >>> take(state, [])
    >>> state["measured/v"], round(state["measured/vv"], 2)
    (2.7, 7.29)
    """
    rows = [(1.0, *row) for row in problems]
    for place, name in enumerate(_SUMS):
        state[_PREFIX + name] = DECAY * state.get(_PREFIX + name, 0.0) + sum(row[place] for row in rows)
    for (one, other), name in zip(((0, 0), (1, 1), (2, 2), (1, 2)), _SQUARES, strict=True):
        sums = sum(row[one] * row[other] for row in rows)
        state[_PREFIX + name] = DECAY**2 * state.get(_PREFIX + name, 0.0) + sums


class Measured(NamedTuple):
    """p_v, and the lower end of the 95% interval of p_v - 1/2, clustered by problem."""

    votes: float
    low: float


def measured(state: Mapping[str, float]) -> Measured | None:
    """Return the measured accuracy over the last steps. None below ten problems by weight.

    Problems are clusters. The variance of a ratio of weighted sums is that of its residuals [Miller
    2411.00640], times C / (C - 1) with C = (sum of weights)^2 / sum of squared weights. If all observed
    problems agree, at least a fraction 0.025^(1 / C) of all problems agree with them; on the rest every vote
    may be wrong [Clopper and Pearson 1934].

    >>> state = {}
    >>> take(state, [(2.0, 2.0)] * 8 + [(2.0, 1.0)] * 2)
    >>> found = measured(state)  # residuals 8 of .2 and 2 of -.8 over 20 votes: .9 +- 1.96 * .067
    >>> round(found.votes, 2), round(found.low, 3)
    (0.9, 0.269)
    """
    of = {name: state.get(_PREFIX + name, 0.0) for name in (*_SUMS, *_SQUARES)}
    if of["problems"] < LEAST - 1e-9 or of["n"] <= 0:
        return None
    clusters = of["problems"] ** 2 / of["problems2"]
    mean = of["v"] / of["n"]
    residuals = of["vv"] - 2 * mean * of["nv"] + mean**2 * of["nn"]
    if residuals <= NO_SPREAD * of["nn"]:
        low = 0.025 ** (1 / clusters) * mean
    else:
        low = mean - SURE * sqrt(residuals * clusters / (clusters - 1)) / of["n"]
    return Measured(mean, low - 0.5)


def vote_weight(found: Measured | None) -> float:
    """Return the fraction of their full weight that votes get, in [0, 1].

    It is twice the lower bound, clipped, and 0 if the bound is unknown.

    >>> [vote_weight(Measured(0.9, low)) for low in (-0.1, 0.2, 0.5)], vote_weight(None)
    ([0.0, 0.4, 1.0], 0.0)
    """
    return 0.0 if found is None else min(max(2 * found.low, 0.0), 1.0)


def stream_weights(config: RewardConfig, state: Mapping[str, float]) -> tuple[float, float]:
    """Return the weights of peer and truth in the generator's credit at a step, from the steps before it.

    >>> [stream_weights(RewardConfig(peer_weight=peer), {}) for peer in ("rest", "measured")]
    [(0.5, 0.5), (0.0, 0.5)]
    """
    if config.peer_weight != "measured":
        return config.stream_weights
    truth = number(config.truth_weight)
    return (1 - truth) * vote_weight(measured(state)), truth


def measured_metrics(state: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of a step's votes as a metric, and the measurements behind it, if there are any."""
    found = measured(state)
    metrics = {"labels/vote_weight": vote_weight(found)}
    return (
        metrics
        if found is None
        else metrics | {"labels/votes_right": found.votes, "labels/margin_low": found.low}
    )
