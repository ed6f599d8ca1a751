"""The result of one check of the doctor, and the verdict over all checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from debate_rl.formatting import number, short
from debate_rl.metrics.intervals import Estimate

Verdict: TypeAlias = Literal["ok", "warn", "bad", "not measured", "not used"]
"""The status of a check. "not used": nothing in the rewards of the first step depends on the figure."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check: name, status, figure or None, explanation, and KEY=VALUE to set.

    ``low`` and ``high``: the 95% interval of the figure, if known.
    """

    name: str
    verdict: Verdict
    value: float | int | None
    why: str
    set: str = ""
    low: float | None = None
    high: float | None = None

    def line(self) -> str:
        """Return the check as a line: status, name, figure, explanation, and what to set.

        >>> Check("judge", "warn", 0.5, "a coin", "train.steps=0", 0.4, 0.6).line()
        'warn          judge: 0.500 [0.400, 0.600]; a coin; set train.steps=0'
        """
        figure, known = "", self.low is not None and self.high is not None
        if self.value is not None:
            tiny = 0 < abs(self.value) < 0.0005
            shown = short(self.value) if tiny else number(self.value)
            bounds = f" [{number(self.low)}, {number(self.high)}]" if known else ""
            figure = f"{f'{self.value:,}' if isinstance(self.value, int) else shown}{bounds}; "
        remedy = f"; set {self.set}" if self.set and self.verdict in ("warn", "bad") else ""
        return f"{self.verdict:<13} {self.name}: {figure}{self.why}{remedy}"


def of_estimate(name: str, verdict: Verdict, estimate: Estimate, why: str, set: str = "") -> Check:
    """Return the check of a rate or a difference. With a single cluster, it has no interval."""
    least = -1.0 if estimate.p is not None else 0.0
    known = estimate.clusters > 1
    bounds = (max(estimate.low, least), min(estimate.high, 1.0)) if known else (None, None)
    return Check(name, verdict, estimate.value, why, set, *bounds)


def above(value: float, least: float, fair: float | None = None) -> Verdict:
    """Return the status of a figure that must be at least ``least``, and ideally at least ``fair``.

    >>> [above(value, 0.05, 0.1) for value in (0.04, 0.05, 0.1)]
    ['bad', 'warn', 'ok']
    """
    return "bad" if value < least else "warn" if fair is not None and value < fair else "ok"


def is_go(checks: Sequence[Check]) -> bool:
    """Return True if no check is bad."""
    return all(check.verdict != "bad" for check in checks)


def summary(checks: Sequence[Check]) -> str:
    """Return the last line of the doctor: go, or no go with the keys to change.

    >>> summary([Check("a", "ok", None, "fine"), Check("b", "bad", 0.0, "none", "model.chat=false")])
    'no go: b; set model.chat=false'
    """
    bad = [check for check in checks if check.verdict == "bad"]
    counts = [sum(check.verdict == verdict for check in checks) for verdict in ("warn", "not measured")]
    if not bad:
        return f"go: no check is bad, {counts[0]} of {len(checks)} warn, {counts[1]} not measured"
    sets = list(dict.fromkeys(check.set for check in bad if check.set))
    remedy = f"; set {', '.join(sets)}" if sets else ""
    return f"no go: {', '.join(check.name for check in bad)}{remedy}"
