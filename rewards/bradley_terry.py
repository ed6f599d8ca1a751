"""Fit Bradley-Terry strengths to votes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp

from debate.types import TurnId, Vote
from rewards.graph import components, vote_graph, win_matrix
from rewards.votes import Pair, pair_of


def bradley_terry(votes: Sequence[Vote], *, alpha: float = 0.1) -> dict[TurnId, float]:
    """Return log-strengths, centred to mean 0 within each connected part of the vote graph.

    ``alpha`` must be > 0.

    P(a beats b) is ``preference(a, b)`` [Bradley and Terry 1952]; a tie is half a win for each side.
    Strengths are fitted by iterative Luce spectral ranking [Maystre and Grossglauser 2015, choix]. The
    regularisation ``alpha`` is needed because without it the likelihood has no maximum on a transitive graph:
    a turn that wins every vote would have infinite strength. The fit is unreliable on a sparse graph: two or
    three votes give large strengths without any warning. Votes compare turns of one round, so a part never
    spans rounds. Strengths of different parts are not comparable, so each part is centred separately.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> bradley_terry([Vote(TurnId(2, 1), a, b, "tie")])[a]
    0.0
    """
    scores: dict[TurnId, float] = {}
    for part in fitted_together(votes):
        fitted = strengths(win_matrix(part, votes), alpha)
        scores.update(zip(part, fitted, strict=True))
    return scores


def preference(strength: float, other: float) -> float:
    """Return the Bradley-Terry probability e^a / (e^a + e^b) that strength a beats strength b.

    >>> preference(0.5, 0.5)
    0.5
    """
    return 1 / (1 + exp(other - strength))


def fitted_together(votes: Sequence[Vote]) -> tuple[tuple[TurnId, ...], ...]:
    """Return the connected parts of the vote graph, within which strengths are centred."""
    return _parts(frozenset(map(pair_of, votes)))


@lru_cache(maxsize=4096)
def _parts(pairs: frozenset[Pair]) -> tuple[tuple[TurnId, ...], ...]:
    """Return the connected parts of the graph with these pairs. Cached because the same pairs soon repeat."""
    graph = vote_graph([Vote(first, first, second, "tie") for first, second in pairs])
    return tuple(map(tuple, components(graph)))


@lru_cache(maxsize=65_536)
def strengths(wins: tuple[tuple[float, ...], ...], alpha: float) -> tuple[float, ...]:
    """Return the centred strengths fitted to one win matrix. Cached because the same few matrices recur."""
    import choix  # imports scipy, which takes half a second and which the other rules do not need
    import numpy as np

    # This is the matrix form of ilsr_pairwise: it builds the same chain, and accepts half wins.
    fitted = choix.ilsr_pairwise_dense(np.array(wins), alpha=alpha, max_iter=10_000)
    return tuple(float(strength) for strength in fitted - fitted.mean())
