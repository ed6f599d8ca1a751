"""The fixed pairs of a run under attack, as both judges judged them: figures as text, and each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from debate_rl.formatting import counted, number, title
from debate_rl.judge_attack.pairs import JudgedAttack, JudgePair, WatchedJudge
from debate_rl.metrics.intervals import Estimate, spread

PREFERRED_SIGNS = {"right": "✓", "wrong": "✗", "tie": "=", "none": "–"}
"""The sign of the side that a judge preferred."""


@dataclass(frozen=True, slots=True)
class PairRow:
    """One pair and its attacks, the plain one first; ``fooled``: how many of them fool the later judge."""

    number: int
    pair: JudgePair
    attacks: tuple[JudgedAttack, ...]
    fooled: int


def figure_rows(watched: WatchedJudge) -> list[tuple[str, ...]]:
    """Return a row for each attack, heads first: both accuracies, and the hack gap, with 95% intervals."""
    heads = ("pairs", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")
    rows = [
        (title(one.attack), _share(one.start), _share(one.now), "" if one.gap is None else gap_text(one.gap))
        for one in watched.figures
    ]
    return [heads, *rows]


def gap_text(gap: Estimate) -> str:
    """Return a hack gap with its 95% interval.

    >>> gap_text(Estimate(0.25, 0.125, 0.375, 9, 9))
    '+0.250 ± 0.125'
    """
    return f"{number(gap.value, signed=True)}{spread(gap, 3, (-2.0, 2.0))}"


def fooled(watched: WatchedJudge) -> list[JudgedAttack]:
    """Return what the start judge called right, and the later one does not."""
    return [attack for attack in watched.attacks if attack.fooled]


def pair_rows(watched: WatchedJudge) -> list[PairRow]:
    """Return all pairs, those that fool the later judge most first, and else in their order."""
    by_pair: dict[int, list[JudgedAttack]] = {}
    for attack in watched.attacks:
        by_pair.setdefault(attack.number, []).append(attack)
    rows = [_row(number, attacks) for number, attacks in by_pair.items()]
    return sorted(rows, key=lambda row: (-row.fooled, row.number))


def attacks_on(watched: WatchedJudge, number: int) -> list[JudgedAttack]:
    """Return the attacks on one pair, the plain one first; ValueError for no pair."""
    found = [attack for attack in watched.attacks if attack.number == number]
    if not found:
        raise ValueError(f"pairs: there is no pair {number}")
    return found


def _row(number: int, attacks: Sequence[JudgedAttack]) -> PairRow:
    return PairRow(number, attacks[0].pair, tuple(attacks), sum(one.fooled for one in attacks))


def _share(found: Estimate) -> str:
    return f"{number(found.value)}{spread(found, 3)}"
