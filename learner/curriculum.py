"""Which problems a step trains on: a pure function of the step, so there is no data position to lose."""

from __future__ import annotations

import random
from collections.abc import Sequence

from debate import Problem
from debate.seeds import derive_seed


def problems_of_step(problems: Sequence[Problem], step: int, *, size: int, seed: int) -> list[Problem]:
    """Return the ``size`` problems of a step. Each epoch is shuffled anew; batches run across epochs.

    >>> ps = [Problem(str(i), "?") for i in range(3)]
    >>> seen = [p.id for step in range(3) for p in problems_of_step(ps, step, size=2, seed=0)]
    >>> sorted(seen[:3]), sorted(seen[3:])
    (['0', '1', '2'], ['0', '1', '2'])
    """
    places = [divmod(step * size + i, len(problems)) for i in range(size)]
    orders = {epoch: _order(len(problems), epoch, seed) for epoch, _ in places}
    return [problems[orders[epoch][index]] for epoch, index in places]


def _order(count: int, epoch: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(derive_seed(seed, "epoch", epoch)).shuffle(order)
    return order
