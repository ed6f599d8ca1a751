"""The order of an epoch, and further problems in a step for those that teach nothing.

DAPO leaves out the problems whose answers are all right or all wrong, and samples until the batch is full
(dynamic sampling, arXiv 2503.14476). Here a problem has several streams, and it is silent when those that
decide, ``train.dynamic_sampling_streams``, give no turn an advantage other than 0. Votes received have no
baseline by default, and hardly ever tie in all debates: so where there is truth it decides alone, and a
problem that everybody solves, or nobody, is silent whatever the votes. A silent problem's rows are left out,
and another problem takes its place, up to ``train.dynamic_sampling`` problems in a step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from debate import Problem
from debate.seeds import derive_seed
from debate_rl.config import Config
from learner.advantages import TurnAdvantage, turn_advantages
from learner.types import Transition


def epoch_order(count: int, seed: int, *drawn_by: str | int) -> list[int]:
    """Return the numbers below ``count``, shuffled by a seed and what else names the epoch.

    >>> sorted(epoch_order(4, 0, "epoch", 2))
    [0, 1, 2, 3]
    """
    order = list(range(count))
    random.Random(derive_seed(seed, *drawn_by)).shuffle(order)
    return order


T = TypeVar("T")


def silent_groups(transitions: Sequence[Transition], config: Config, ema: Mapping[str, float]) -> int:
    """Return how many groups have no signal of their own; the running means stay as they are."""
    silent = 0
    for _, members in groupby(transitions, key=lambda transition: transition.group):
        group = list(members)
        advantages = turn_advantages(group, config.rewards, config.advantages, dict(ema)).turns
        silent += not groups_with_signal(group, advantages, config)
    return silent


def groups_with_signal(
    transitions: Sequence[Transition], advantages: Sequence[TurnAdvantage | None], config: Config
) -> set[int]:
    """Return the groups in which any turn has an advantage other than 0 of a stream that decides."""
    with_truth = {transition.group for transition in transitions if transition.truth is not None}
    return {
        transition.group
        for transition, part in zip(transitions, advantages, strict=True)
        if part is not None
        and any(getattr(part, name) for name in _deciding(config, truth=transition.group in with_truth))
    }


def _deciding(config: Config, *, truth: bool) -> Sequence[str]:
    """Return the parts of an advantage that decide on a group; ``truth``: whether it has any."""
    chosen, rewards = config.train.dynamic_sampling_streams, config.rewards
    if chosen is not None:
        return chosen
    rest = (
        rewards.peer_weight != "routed" and rewards.mix == "advantages"
    )  # routed votes speak where truth is silent
    counts = rewards.truth_weight and config.advantages.lambda_gen and rest
    return ("truth",) if truth and counts else ("generator", "judge", "format")


def spare_problems(count: int, taken: Sequence[int], *, size: int, seed: int, step: int) -> list[int]:
    """Return at most ``size`` of ``count`` problems beside those of the step, by the seed and the step.

    They are not taken out of the epoch, so that a step's own problems do not depend on earlier steps.

    >>> sorted(spare_problems(4, (0, 1), size=9, seed=0, step=0))
    [2, 3]
    """
    rest = [index for index in range(count) if index not in taken]
    return random.Random(derive_seed(seed, "spare", step)).sample(rest, min(size, len(rest)))


def refills(
    missing: int, spare: Sequence[Problem], play: Callable[[list[Problem], int], tuple[T, int]]
) -> Iterator[T]:
    """Yield what further problems gave, until none is missing or none is spare.

    ``play(problems, number)`` plays the ``number``-th refill and returns what it gave and how many of its
    problems are silent; a refill takes as many problems as are missing.
    """
    start = number = 0
    while missing and start < len(spare):
        chosen = list(spare[start : start + missing])
        given, silent = play(chosen, number)
        yield given
        missing += silent - len(chosen)
        start, number = start + len(chosen), number + 1
