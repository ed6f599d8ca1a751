"""What moves a vote beside truth: position, length, own work and persona; alone, and in one regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Codes, Estimate
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.logistic import NotEstimable, logistic
from debate_rl.reports.figures.rows import NO_VOTE
from debate_rl.reports.figures.study import Study

PERSONA = "persona/"
MOST_PERSONAS = 20
"""The most personas that have coefficients; with more of them none has one."""


def bias_figures(study: Study) -> Iterator[Figure]:
    """Yield the biases on pairs equal in truth, the swapped pairs, and the coefficients of the regression."""
    table, clusters, equal = study.pairs, study.clusters(study.pairs), equal_in_truth(study)
    won = table["outcome"][equal] == 1
    why = "no decided vote on two right or two wrong solutions"
    yield figure("bias/position", less_half(won, clusters[equal]), None, why)
    length = table["length"][equal]
    apart = length != 0
    longer = won[apart] == (length[apart] > 0)
    yield figure("bias/length", less_half(longer, clusters[equal][apart]), None, f"{why} of different length")
    yield _self_preference(study)
    yield from _swaps(study)
    yield from regression_figures(study)


def equal_in_truth(study: Study) -> NDArray[np.bool_]:
    """Return which pairs have a decided vote, and two right or two wrong solutions."""
    table = study.pairs
    return (np.abs(table["outcome"]) == 1) & (table["first"] == table["second"]) & (table["first"] >= 0)


def less_half(chosen: NDArray[np.bool_], clusters: Codes) -> Estimate | None:
    """Return a rate's distance from a half, with the rate's own interval."""
    rate, apart = intervals.mean(chosen, clusters), intervals.mean(chosen - 0.5, clusters, signed=True)
    if rate is None or apart is None:
        return None
    return replace(apart, low=rate.low - 0.5, high=rate.high - 0.5)


def _self_preference(study: Study) -> Figure:
    estimate = intervals.difference(*own_work(study))
    return figure("bias/self_preference", estimate, None, "judges compared no own work that was wrong")


def own_work(study: Study) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Codes]:
    """Return votes (n,) on wrong work against right, by judges who were wrong: for it, its author, problem.

    The judge's own wrong work is compared with wrong work of others, where no own work is in the pair.
    """
    table, clusters = study.pairs, study.clusters(study.pairs)
    wrong, own = -table["better"], table["own"]
    used = (table["outcome"] != NO_VOTE) & (wrong != 0)
    used &= ((own != 0) & (own == wrong)) | ((own == 0) & (table["self"] == 0))
    return (table["outcome"] == wrong)[used], (own != 0)[used], clusters[used]


def _swaps(study: Study) -> Iterator[Figure]:
    kind, clusters = study.swaps["kind"], study.clusters(study.swaps)
    why = 'no pair was shown to judges in both orders: see debate.order = "per_viewer"'
    for name, value in (("consistency", 0), ("primacy", 1), ("recency", -1)):
        yield figure(f"swaps/{name}", intervals.mean(kind == value, clusters), None, why)


def regression_figures(study: Study) -> Iterator[Figure]:
    """Yield logit P(first wins) on position, truth, own work, length and persona, over decided votes."""
    table = study.pairs
    used = np.abs(table["outcome"]) == 1
    used &= (table["first"] >= 0) & (table["second"] >= 0)
    design, absent = _design(study, used)
    won, clusters = table["outcome"][used] == 1, study.clusters(table)[used]
    coefficients, reasons, flag = _fitted(design, won, clusters)
    for name in (*design, *absent):
        reason = reasons.get(name, "not estimable: it does not vary")
        yield figure(
            f"regression/{name}", coefficients.get(name), None, reason, flag if name in coefficients else ""
        )


def _fitted(
    design: dict[str, NDArray[Any]], won: NDArray[np.bool_], clusters: Codes
) -> tuple[dict[str, Estimate], dict[str, str], str]:
    """Return coefficients, reasons of those that have none, and a flag where personas had to be left out.

    One persona whose votes all went one way leaves no finite estimate of any coefficient: the others are then
    fitted without the personas.
    """
    without = {name: column for name, column in design.items() if not name.startswith(PERSONA)}
    reasons: dict[str, str] = {}
    for columns in (design, without) if len(without) < len(design) else (design,):
        try:
            estimates = logistic([*columns.values()], won, clusters)
        except NotEstimable as error:
            reasons = dict.fromkeys(columns, f"not estimable: {error}") | reasons
        else:
            flag = "without personas" if columns is not design else ""
            return dict(zip(columns, estimates, strict=True)), reasons, flag
    return {}, reasons, ""


def _design(study: Study, used: NDArray[np.bool_]) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Return the columns of the regression by name, and the names of those that do not vary."""
    table = study.pairs
    columns: dict[str, NDArray[Any]] = {
        "correctness": table["first"][used] - table["second"][used],
        "own": table["own"][used],
        "length": table["length"][used],
    }
    absent = [name for name, column in columns.items() if not len(column) or np.ptp(column) == 0]
    varying = {name: column for name, column in columns.items() if name not in absent}
    position = {"position": np.ones(int(used.sum()), dtype=np.int8)}
    return position | varying | _persona_columns(study, used), absent


def _persona_columns(study: Study, used: NDArray[np.bool_]) -> dict[str, NDArray[np.int8]]:
    """Return a column for each persona but the last, coded so that all personas' effects sum to 0."""
    codes = study.pairs["persona"][used]
    texts = [*study.personas]
    present = sorted(np.unique(codes).tolist(), key=texts.__getitem__)
    if not 2 <= len(present) <= MOST_PERSONAS:
        return {}
    last = (codes == present[-1]).astype(np.int8)
    return {f"{PERSONA}{texts[code]}": (codes == code).astype(np.int8) - last for code in present[:-1]}
