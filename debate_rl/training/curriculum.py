"""Which problems a step trains on: a pure function of how many were drawn before."""

from __future__ import annotations

import random
from collections.abc import Sequence

from debate import Problem
from debate.seeds import derive_seed


def problems_from(problems: Sequence[Problem], position: int, *, size: int, seed: int) -> list[Problem]:
    """Return the next ``size`` problems after ``position`` were drawn.

    Each epoch is shuffled anew; batches run across epochs.

    >>> ps = [Problem(str(i), "?") for i in range(3)]
    >>> seen = [p.id for drawn in (0, 2, 4) for p in problems_from(ps, drawn, size=2, seed=0)]
    >>> sorted(seen[:3]), sorted(seen[3:])
    (['0', '1', '2'], ['0', '1', '2'])
    """
    places = [divmod(position + i, len(problems)) for i in range(size)]
    orders = {epoch: _order(len(problems), epoch, seed) for epoch, _ in places}
    return [problems[orders[epoch][index]] for epoch, index in places]


def _order(count: int, epoch: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(derive_seed(seed, "epoch", epoch)).shuffle(order)
    return order
