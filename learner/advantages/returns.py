"""The discounted return of a turn: its agent's rewards from here to the end of the debate.

    G_t = r_t + gamma r_{t+1} + gamma^2 r_{t+2} + ...   over one agent's rounds [Sutton and Barto 2018, 3.3]

A solution that its author builds on is then rewarded for what came of it. With truth in the last round alone,
gamma = 0.7 gives the rounds before 0.7, 0.49, ... of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from learner.types import Transition


def returns(
    transitions: Sequence[Transition], values: Sequence[float | None], discount: float
) -> list[float | None]:
    """Return the discounted return of each turn, in order; None where neither it nor a later one has a value.

    ``values``: the reward of each turn. A turn without a value has the discounted return of the next one.
    """
    if not discount:
        return list(values)
    result: list[float | None] = [None] * len(values)
    after: dict[tuple[int, int], float] = {}
    for index in sorted(range(len(values)), key=lambda index: -transitions[index].turn.id.round):
        own, author = values[index], (transitions[index].debate, transitions[index].turn.id.agent)
        if transitions[index].turn.ballot or (own is None and author not in after):
            continue
        result[index] = after[author] = (own or 0.0) + discount * after.get(author, 0.0)
    return result
