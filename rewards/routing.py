"""Use votes only if truth gives no signal: in rounds whose grades are all equal or unknown.

This follows Reasoning Arena [arXiv 2606.09380], which sends groups that are all right or all wrong to a
tournament of pairs and leaves the others to truth. A group is the turns of one problem and round, as for
baselines. Only grades decide: a bonus for the answer's format, or different rewards for missing and wrong
answers, does not count as a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set

from msgspec.structs import replace

from rewards.config import RewardConfig
from rewards.types import Rewards, Stream


def routed(rewards: Sequence[Rewards], told: Sequence[Stream], groups: Sequence[Hashable]) -> list[Rewards]:
    """Return the rewards with truth alone in rounds whose grades differ, and votes alone in other rounds.

    ``told``: the truth stream of each debate by grades alone (``by_grades``), for the seats that learn.
    ``groups``: the group of each debate. Values that do not count become None.

    >>> streams = ((1.0, 1.0),), ((1.0, 0.0),), ((None,) * 3,), ((0.0,) * 3,)
    >>> other = ((-1.0, 1.0),), ((1.0, 1.0),), ((None,) * 3,), ((0.0,) * 3,)
    >>> first, second = routed([Rewards(*streams), Rewards(*other)], [streams[1], other[1]], ["p", "p"])
    >>> first.peer, first.truth
    (((1.0, None),), ((None, 0.0),))
    """
    seen: dict[tuple[Hashable, int], set[float]] = {}
    for stream, group in zip(told, groups, strict=True):
        for row in stream:
            for round_, value in enumerate(row):
                if value is not None:
                    seen.setdefault((group, round_), set()).add(value)
    tells = {place for place, values in seen.items() if len(values) > 1}
    return [
        _by_rounds(one, {round_ for of, round_ in tells if of == group})
        for one, group in zip(rewards, groups, strict=True)
    ]


def by_grades(config: RewardConfig) -> RewardConfig:
    """Return a scheme whose truth rewards differ only if grades do: no form bonus, and missing is wrong."""
    return config.model_copy(update={"form_bonus": 0.0, "truth_missing": config.truth_wrong})


def routed_as(rewards: Rewards, stored: Rewards | None) -> Rewards:
    """Return a debate's rewards, with truth alone in the rounds in which ``stored`` has truth rewards."""
    if stored is None:
        return rewards
    rounds = {round_ for row in stored.truth for round_, value in enumerate(row) if value is not None}
    return _by_rounds(rewards, rounds)


def _by_rounds(rewards: Rewards, by_truth: Set[int]) -> Rewards:
    """Return the rewards with truth alone in some rounds and votes alone in the others."""
    peer = _kept(rewards.peer, lambda round_: round_ not in by_truth)
    return replace(rewards, peer=peer, truth=_kept(rewards.truth, by_truth.__contains__))


def _kept(stream: Stream, keeps: Callable[[int], bool]) -> Stream:
    return tuple(
        tuple(value if keeps(round_) else None for round_, value in enumerate(row)) for row in stream
    )
