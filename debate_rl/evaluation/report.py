"""The figures of an evaluation: as rows, as metrics, by problem, and as JSON with gains.

Their 95% intervals are computed in ``debate_rl.metrics.intervals``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, TypeAlias

from debate_rl.evaluation.scores import KINDS, Scores, difference
from debate_rl.metrics.features import verdict_costs
from debate_rl.metrics.held_out import COUNTS, LEADS, HeldOut
from debate_rl.metrics.intervals import Estimate, spread
from debate_rl.runs.provenance import problems_checksum

MAIN = (
    "direct/greedy_accuracy",
    "direct/accuracy",
    "direct/self_consistency",
    "debate/accuracy/round_0",
    "debate/winner/accuracy",
    "debate/majority",
)
"""Figures that are also shown by level and subject, and compared between evaluations."""
COSTS = ("missing", "truncated", "valid_xml", "format", "stopped", "tools")
"""Prefixes of figures that are listed after the accuracies."""
WITHIN = {"share": (0.0, 1.0), "difference": (-1.0, 1.0), "tokens": (0.0, inf), "count": (0.0, inf)}
"""The range of possible values of a figure, by its unit."""
Unit: TypeAlias = Literal["share", "tokens", "difference", "count"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``unit`` is a key of ``WITHIN``; ``group`` names its problems, "" for all."""

    name: str
    estimate: Estimate
    unit: Unit = "share"
    group: str = ""

    @property
    def label(self) -> str:
        """The name, followed by the group of problems if there is one."""
        return f"{self.name} [{self.group}]" if self.group else self.name

    def plain(self) -> dict[str, object]:
        """Return the figure as a dict for a JSON file."""
        return {"name": self.label, "unit": self.unit, **plain_estimate(self.estimate)}


def plain_estimate(estimate: Estimate) -> dict[str, object]:
    """Return an estimate as a dict for a JSON file. A bound that is not finite is None."""
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    p: dict[str, object] = {} if estimate.p is None else {"p": estimate.p}
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n, **p}


def rows(scores: Scores) -> list[Row]:
    """Return all figures of an evaluation: ordered by mode, then differences, then by level and subject."""
    figures = [
        Row(name, estimate, _unit(name))
        for name in sorted(scores.values, key=_mode)
        if (estimate := scores.estimate(name)) is not None
    ]
    for name, (minuend, subtrahend) in LEADS.items():
        lead = difference(scores, minuend, scores, subtrahend)
        figures += [] if lead is None else [Row(name, lead, "difference")]
    for name, estimate in scores.agreement().items():
        figures.append(Row(f"verifier/{name}", estimate, "difference" if name == "kappa" else "share"))
    for kind in KINDS:
        groups = scores.groups(kind)
        for label, problems in groups.items() if len(groups) > 1 else ():
            for name in MAIN:
                if (estimate := scores.estimate(name, problems)) is not None:
                    figures.append(Row(name, estimate, group=f"{kind} {label}"))
    return figures


def _unit(name: str) -> Unit:
    if name.endswith("_tokens"):
        return "tokens"
    return "count" if name.endswith(COUNTS) else "share"


def _mode(name: str) -> tuple[int, int]:
    """Return the sort key of a figure: its mode, and whether it is a cost, which follows the accuracies."""
    mode, _, figure = name.partition("/")
    costs = _unit(name) != "share" or figure.startswith(COSTS)
    return ("direct", "debate", "judge", "verifier").index(mode), int(costs)


def metrics(scores: Scores, data: str = "") -> dict[str, float]:
    """Return the figures over all problems as "eval/...", with their 95% bounds under "/low" and "/high".

    The figures of a further held-out set include its name, ``data``: "eval/DATA/...". There are no bounds
    with only one problem, or for a token figure that is equal on all problems.
    """
    counts = {"problems": len(scores.problems), "ungraded": scores.ungraded, "direct/samples": scores.samples}
    head = f"eval/{data}/" if data else "eval/"
    figures = {f"{head}{name}": float(count) for name, count in counts.items()}
    for row in rows(scores):
        if not row.group:
            estimate, name = row.estimate, f"{head}{row.name}"
            figures[name] = estimate.value
            if isfinite(estimate.low) and isfinite(estimate.high):
                figures |= {f"{name}/low": estimate.low, f"{name}/high": estimate.high}
    costs = verdict_costs(scores.asked) if scores.asked else {}
    return figures | {f"{head}{name}": value for name, value in costs.items()}


def held_out(scores: Scores, step: int, *, series: str = "", data: str = "") -> HeldOut:
    """Return the figures by problem in the form that is stored, for weights trained for ``step`` steps."""
    return HeldOut(
        step=step,
        problems={id: problems_checksum([problem])[:16] for id, problem in scores.problems.items()},
        figures={
            name: {id: (sum(values), len(values)) for id, values in by_problem.items() if values}
            for name, by_problem in scores.values.items()
        },
        samples=scores.samples,
        ungraded=scores.ungraded,
        series=series,
        data=data,
    )


def cell(row: Row) -> str:
    """Return a figure's value and interval as text.

    >>> cell(Row("direct/accuracy", Estimate(0.5, 0.4, 0.6, n=10, clusters=10)))
    '0.500 ± 0.100'
    """
    sign, digits = ("+" if row.unit == "difference" else ""), 1 if row.unit == "tokens" else 3
    return f"{row.estimate.value:{sign}.{digits}f}{spread(row.estimate, digits, WITHIN[row.unit])}"


def plain_rows(evaluated: Mapping[str, Scores]) -> list[dict[str, object]]:
    """Return every figure and its gain over the first evaluation, paired by problem, for a JSON file."""
    (first, base), *others = evaluated.items()
    figures = [
        {"evaluation": name, **row.plain()} for name, scores in evaluated.items() for row in rows(scores)
    ]
    gains = (
        {"evaluation": name, "minus": first, **Row(figure, gain, "difference").plain()}
        for name, other in others
        for figure in other.values
        if (gain := gain_of(figure, other, base)) is not None
    )
    return [*figures, *gains]


def gain_of(figure: str, scores: Scores, base: Scores) -> Estimate | None:
    """Return the gain of a rate over all problems, paired by problem, or None for any other figure."""
    known = figure in scores.values and not figure.endswith("_tokens")
    return difference(scores, figure, base, figure) if known else None
