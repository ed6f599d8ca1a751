"""Who is called what, and in which order texts are shown: drawn anew for each debate (D10)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Literal

from debate.seeds import derive_seed

LETTERS = "ACDEFGHJKLMNPQRTUVWXY"  # without I and O, B, S and Z, which look like digits
DIGITS = "23456789"  # without 0 and 1, which look like letters

_LABEL = re.compile(r"[^\W_]+(?:[ _-][^\W_]+)*")


def draw_handles(
    num_agents: int,
    seed: int,
    *,
    pool: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
    avoid: str = "",
) -> tuple[str, ...]:
    """Return one label for each seat, (N,): a letter and a digit, no letter twice up to 21 agents.

    Labels that stand in the text ``avoid`` (the question) are not drawn while others are left. With a
    ``pool`` of own labels they are drawn from it and dealt, in the pool's order, along ``order`` (the seats
    as their texts are shown, (N,); itself drawn anew for each debate), so that a very small model always
    reads them in one order. ValueError when a label is not words of letters and digits.

    >>> draw_handles(3, 7) == draw_handles(3, 7)
    True
    >>> draw_handles(2, 7, pool=("K7", "Q2"), order=(1, 0))
    ('Q2', 'K7')
    """
    rng = Random(seed)
    if pool is not None:
        return _dealt(_distinct(pool), rng, order or range(num_agents))
    taken = avoid.upper()
    letters = rng.sample(LETTERS, len(LETTERS))
    labels: list[str] = []
    for seat in range(num_agents):
        letter = letters[seat % len(letters)]
        free = [letter + digit for digit in rng.sample(DIGITS, len(DIGITS)) if letter + digit not in labels]
        labels.append(next((label for label in free if label not in taken), free[0]))
    return tuple(labels)


def _dealt(labels: Sequence[str], rng: Random, order: Sequence[int]) -> tuple[str, ...]:
    """Return a label for each seat: as many as there are seats, in their own order along the seats' order."""
    chosen = sorted(rng.sample(range(len(labels)), len(order)))
    by_seat = dict(zip(order, (labels[index] for index in chosen), strict=True))
    return tuple(by_seat[seat] for seat in range(len(order)))


def check_label(label: str) -> None:
    """Raise ValueError unless the label is words of letters and digits.

    >>> check_label("Agent 1")
    """
    if not _LABEL.fullmatch(label):
        raise ValueError(f'debate.handles: {label!r} must be made of letters and digits, such as "K7"')


def _distinct(pool: Sequence[str]) -> list[str]:
    """Return the labels of the pool, the first of each spelling; matching ignores case."""
    for label in pool:
        check_label(label)
    return list({label.upper(): label for label in reversed(pool)}.values())[::-1]


def show_orders(
    num_agents: int, seed: int, *, order: Literal["per_debate", "per_viewer"]
) -> tuple[tuple[int, ...], ...]:
    """Return for each viewer the seats in the order in which their texts are shown, (N, N).

    >>> len(set(show_orders(4, 1, order="per_debate")))
    1
    """
    if order == "per_debate":
        return (_shuffled(num_agents, derive_seed(seed, "order")),) * num_agents
    return tuple(_shuffled(num_agents, derive_seed(seed, "order", seat)) for seat in range(num_agents))


def _shuffled(num_agents: int, seed: int) -> tuple[int, ...]:
    return tuple(Random(seed).sample(range(num_agents), num_agents))
