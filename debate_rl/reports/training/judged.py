"""How well votes follow truth, from the sampled debates, or else from the figures by step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from debate_rl.reports.figures.cascade import cascade_figures
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.judging import accuracy_figures
from debate_rl.reports.figures.winners import winner_figures
from debate_rl.reports.training.cells import between
from debate_rl.reports.training.loading import Run


@dataclass(frozen=True, slots=True)
class Judged:
    """Right votes on decidable pairs, its interval in words; winner against right; first-listed excess."""

    accuracy: float | None = None
    bounds: str = ""
    correlation: float | None = None
    followed: float | None = None
    follows: bool = False


def judged(run: Run) -> Judged:
    """Return the figures; the accuracy is that of all steps where metrics.jsonl has it."""
    found = _figures(run)
    estimates = {name: one.estimate for name, one in found.items()}
    right, first = estimates.get("judge/accuracy"), estimates.get("cascade/first_listed")
    linked = estimates.get("winner/correlation")
    accuracy = _of_steps(run)
    return Judged(
        accuracy if accuracy is not None else right.value if right else None,
        between(right.low, right.high) if right else "",
        linked.value if linked else None,
        first.value if first else None,
        first is not None and first.low > 0,
    )


def _figures(run: Run) -> dict[str, Figure]:
    if run.sample is None or not len(run.sample.study.debates):
        return {}
    study = run.sample.study
    every = chain(accuracy_figures(study), winner_figures(study), cascade_figures(study))
    return {one.name: one for one in every}


def _of_steps(run: Run) -> float | None:
    share, count = run.curves.dense("judge/accuracy"), run.curves.dense("judge/decidable")
    known = np.isfinite(share) & np.isfinite(count)
    total = float(count[known].sum())
    return float((share * count)[known].sum()) / total if total else None
