"""Drop rewards that are NaN or infinite, as a custom rule may return, before they reach the learner.

The affected turn gets no reward (``drop_nan_rewards``), and the whole step is not trained on
(``debate_rl.training.loop``), because the same rule computed the rewards of its other turns.
"""

from __future__ import annotations

from math import isfinite

from msgspec import UNSET
from msgspec.structs import replace

from rewards.types import OPTIONAL_STREAMS, STREAMS, Rewards, stream_named


def drop_nan_rewards(rewards: Rewards) -> tuple[Rewards, int]:
    """Return the rewards with None for each value that is not finite, and the number of such values.

    >>> rewards, dropped = drop_nan_rewards(Rewards(((float("nan"), 1.0),), ((0.0,),), ((None,),), ((0.0,),)))
    >>> rewards.peer, rewards.truth, dropped
    (((None, 1.0),), ((0.0,),), 1)
    """
    names = (*STREAMS, *(name for name in OPTIONAL_STREAMS if getattr(rewards, name) is not UNSET))
    streams = {name: stream_named(rewards, name) for name in names}
    given = [value for stream in streams.values() for row in stream for value in row if value is not None]
    bad = len(given) - sum(map(isfinite, given))
    if not bad:
        return rewards, 0
    good = {
        name: tuple(tuple(v if v is None or isfinite(v) else None for v in row) for row in stream)
        for name, stream in streams.items()
    }
    return replace(rewards, **good), bad
