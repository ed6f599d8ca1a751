"""How much votes count, by how far they are measured to be right more often than the crowd (p_v and p_c).

On a decidable pair of a problem with a label a vote is right or wrong, and so is the crowd: the commoner of
the two answers, among all answers to the problem in that round. Votes teach nothing where they are a coin,
and nothing that a majority would not where they are no better than it. So they count by the lower bound of
p_v - max(p_c, 1/2) over the last steps.

The state is sums over problems that each step multiplies with ``DECAY``, squares with its square: as many
numbers after a thousand steps as after one, and exact when a run is resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from math import sqrt
from typing import NamedTuple, TypeVar

from debate.ramps import number
from debate.types import Debate, TurnId
from rewards.config import RewardConfig
from rewards.judging import better_side
from rewards.shaping import AnswerKey
from rewards.types import Correct
from rewards.votes import DuePair, ballot_box, due_pairs, valid_votes

Group = TypeVar("Group", bound=Hashable)
DECAY = 0.9
"""What a step leaves of the sums of those before: the last ten steps or so count."""
LEAST = 10.0
"""Problems, counted by their weight, below which nothing is known."""
SURE = 1.96
"""Standard errors below the value at which its lower bound is."""
NO_SPREAD = 1e-9
"""Variance, in units of that of votes which are all right on some problems and all wrong on others."""
_SUMS = ("problems", "n", "v", "c")
_SQUARES = ("problems2", "nn", "vv", "cc", "nv", "nc", "vc")
_PREFIX = "measured/"


class JudgedPair(NamedTuple):
    """A due pair of which exactly one side is right: its debate's index, whether the vote is, and the crowd.

    ``vote``: None without a valid one. ``crowd``: one half where both answers are as common.
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
    """Yield the decidable pairs of debates in order; a tie is a wrong vote.

    The crowd is every answer of the round by a debate of the group. ``groups``: of each debate; None takes
    the debates of a problem as one.
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
    """Return how often each answer was given, by the debates' group, round and the key of the answer."""
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
    """Take the votes of a step into the state; ``correct``: the grades of problems with a label alone."""
    of: dict[str, list[float]] = {}
    for pair in judged_pairs(debates, correct, key):
        if pair.vote is not None:
            sums = of.setdefault(debates[pair.debate].problem.id, [0.0, 0.0, 0.0])
            for place, value in enumerate((1.0, float(pair.vote), pair.crowd)):
                sums[place] += value
    take(state, [(n, v, c) for n, v, c in of.values()])


def take(state: MutableMapping[str, float], problems: Sequence[tuple[float, float, float]]) -> None:
    """Take (votes, right ones, right ones of the crowd) of a step's problems into the state.

    >>> state = {}
    >>> take(state, [(4.0, 3.0, 1.0)])
    >>> take(state, [])
    >>> state["measured/v"], round(state["measured/vv"], 2)
    (2.7, 7.29)
    """
    rows = [(1.0, *row) for row in problems]
    for place, name in enumerate(_SUMS):
        state[_PREFIX + name] = DECAY * state.get(_PREFIX + name, 0.0) + sum(row[place] for row in rows)
    squares = ((0, 0), (1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3))
    for (one, other), name in zip(squares, _SQUARES, strict=True):
        sums = sum(row[one] * row[other] for row in rows)
        state[_PREFIX + name] = DECAY**2 * state.get(_PREFIX + name, 0.0) + sums


class Measured(NamedTuple):
    """p_v, p_c, and the lower end of the 95% interval of p_v - max(p_c, 1/2), clustered by problem."""

    votes: float
    crowd: float
    low: float


def measured(state: Mapping[str, float]) -> Measured | None:
    """Return what the state tells of the last steps; None with fewer than ten problems, by their weight.

    Problems are clusters: the variance of a ratio of weighted sums is that of its residuals [Miller
    2411.00640], times C / (C - 1) with C = (sum of weights)^2 / sum of squared weights. p_v - max(p_c, 1/2)
    is the smaller of p_v - p_c and p_v - 1/2, and its bound the smaller of theirs. Where all problems say the
    same, 0.025^(1 / C) of all, at least, do, and the others may say the worst [Clopper, Pearson 1934].

    >>> state = {}
    >>> take(state, [(2.0, 2.0, 1.0)] * 8 + [(2.0, 1.0, 1.0)] * 2)
    >>> found = measured(state)  # residuals 8 of .2 and 2 of -.8 over 20 votes: .9 +- 1.96 * .067
    >>> round(found.votes, 2), round(found.crowd, 2), round(found.low, 3)
    (0.9, 0.5, 0.269)
    """
    of = {name: state.get(_PREFIX + name, 0.0) for name in (*_SUMS, *_SQUARES)}
    if of["problems"] < LEAST - 1e-9 or of["n"] <= 0:
        return None
    clusters = of["problems"] ** 2 / of["problems2"]
    over_crowd = of["vv"] - 2 * of["vc"] + of["cc"], of["nv"] - of["nc"]
    lows = (
        _low(of, (of["v"] - of["c"]) / of["n"], -1.0, *over_crowd, clusters),
        _low(of, of["v"] / of["n"], 0.0, of["vv"], of["nv"], clusters) - 0.5,
    )
    return Measured(of["v"] / of["n"], of["c"] / of["n"], min(lows))


def _low(
    of: Mapping[str, float], mean: float, lowest: float, square: float, cross: float, clusters: float
) -> float:
    """Return the lower bound of a ratio from ``lowest`` on; ``square``, ``cross``: sums of x x and n x."""
    residuals = square - 2 * mean * cross + mean**2 * of["nn"]
    if residuals <= NO_SPREAD * of["nn"]:
        alike = 0.025 ** (1 / clusters)
        return alike * mean + (1 - alike) * lowest
    return mean - SURE * sqrt(residuals * clusters / (clusters - 1)) / of["n"]


def vote_weight(found: Measured | None) -> float:
    """Return the share of their weight that votes have: twice the bound, in [0, 1]; 0 where none is known.

    >>> [vote_weight(Measured(0.9, 0.4, low)) for low in (-0.1, 0.2, 0.5)], vote_weight(None)
    ([0.0, 0.4, 1.0], 0.0)
    """
    return 0.0 if found is None else min(max(2 * found.low, 0.0), 1.0)


def stream_weights(config: RewardConfig, state: Mapping[str, float]) -> tuple[float, float]:
    """Return what peer and truth count in the generator's credit at a step, by what was measured before it.

    >>> [stream_weights(RewardConfig(peer_weight=peer), {}) for peer in ("rest", "measured")]
    [(0.5, 0.5), (0.0, 0.5)]
    """
    if config.peer_weight != "measured":
        return config.stream_weights
    truth = number(config.truth_weight)
    return (1 - truth) * vote_weight(measured(state)), truth


def measured_metrics(state: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of a step's votes, and the figures that it came from, where they are known."""
    found = measured(state)
    metrics = {"labels/vote_weight": vote_weight(found)}
    if found is None:
        return metrics
    known = {"votes_right": found.votes, "commoner_right": found.crowd, "margin_low": found.low}
    return metrics | {f"labels/{name}": value for name, value in known.items()}
