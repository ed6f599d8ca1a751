"""What a report may state as found: cases enough, a size that matters, and not the luck of so many looks.

A page looks at a dozen things, and of twenty intervals of 95% one misses the truth. So the p-values of all
looks of a page are adjusted together [Holm 1979]: of a hundred pages at most two state anything that is not
so. Alarms of training are false in three of a hundred more. Intervals are shown as they are. docs/report.md
has the table of kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from debate_rl.formatting import json_number, number
from debate_rl.metrics.intervals import Estimate, holm
from debate_rl.reports.cells import count_cell, interval_of, number_cell
from debate_rl.reports.document import Behind, Cell, Paragraph, Table, Tone
from debate_rl.reports.kinds import KINDS, Kind

LEVEL = 0.02
"""The share of pages, at most, with any finding that is not so; with alarms of training it is .05."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look of a page at one run: the difference, its cases and problems (of the smaller side).

    ``detail`` says the numbers in words, ``behind`` leads to the debates to read.
    """

    kind: str
    run: str
    estimate: Estimate | None
    cases: int
    problems: int
    detail: str
    behind: Behind | None = None

    @property
    def about(self) -> Kind:
        """What is looked for."""
        return KINDS[self.kind]

    @property
    def enough(self) -> bool:
        """Are there cases enough to state anything?"""
        return self.cases >= self.about.cases and self.problems >= self.about.problems


@dataclass(frozen=True, slots=True)
class Finding:
    """A look with what it came to; ``p`` is adjusted for all looks of the page, None with too few cases."""

    look: Look
    p: float | None

    @property
    def state(self) -> Literal["found", "nothing found", "too few"]:
        """Whether it may be stated."""
        if self.p is None or self.look.estimate is None:
            return "too few"
        large = abs(self.look.estimate.value) >= self.look.about.size
        return "found" if large and self.p <= LEVEL else "nothing found"

    @property
    def words(self) -> tuple[str, Tone]:
        """The name of what the difference is, if it is one, and how it is to be taken."""
        value = self.look.estimate.value if self.look.estimate else 0.0
        return self.look.about.up if value > 0 else self.look.about.down

    @property
    def tone(self) -> Tone:
        """How the finding is to be taken; "" where nothing was found."""
        return self.words[1] if self.state == "found" else ""

    @property
    def doubt(self) -> str:
        """Why a difference whose interval leaves 0 out is none: luck, or its size; "" where it holds 0."""
        estimate = self.look.estimate
        if self.state != "nothing found" or estimate is None or estimate.low <= 0 <= estimate.high:
            return ""
        return "not sure" if (self.p or 0.0) > LEVEL else "too small to matter"

    def paragraph(self) -> Paragraph:
        """Return as a sentence what was found, or that nothing was, and why not."""
        start, end = self.words[0] if self.state == "found" else self.doubt or "no difference can be told", ""
        if self.doubt == "not sure":
            end = f"; chance alone gives one like it in {self.p:.0%} of such reports"
        return Paragraph(
            f"{start[:1].upper()}{start[1:]}: {self.look.detail}{end}.", self.tone, self.look.behind
        )


def findings(looks: Sequence[Look]) -> tuple[Finding, ...]:
    """Return what all looks of a page came to, in the order of the kinds."""
    ordered = sorted(looks, key=lambda look: [*KINDS].index(look.kind))
    counted = [look for look in ordered if look.enough and look.estimate is not None]
    adjusted = iter(holm([chance(look.estimate) for look in counted]))
    return tuple(Finding(look, next(adjusted) if look in counted else None) for look in ordered)


def chance(estimate: Estimate | None) -> float:
    """Return the p of a difference, 1 where it has none or its numbers are too large for one."""
    return 1.0 if estimate is None or estimate.p is None or isnan(estimate.p) else estimate.p


COLUMNS = ("kind", "difference", "95% interval", "cases", "problems", "p, adjusted", "least", "state")
COLUMNS += ("what is looked for",)
NOTE = (
    "Least: cases, problems and size below which nothing is stated. p is adjusted for all looks of this page "
    "(Holm 1979), and has to be .02 or less: of a hundred pages at most two state what is not so."
)


def looks_table(found: Sequence[Finding]) -> Table:
    """Return everything that was looked for in a run, whether or not it was found."""
    return Table("looks", "What was looked for", COLUMNS, tuple(map(_row, found)), NOTE)


def _row(finding: Finding) -> tuple[Cell, ...]:
    look, kind = finding.look, finding.look.about
    estimate = look.estimate
    return (
        Cell(kind.name, behind=look.behind),
        Cell(number(estimate.value, signed=True), estimate.value) if estimate else Cell("none"),
        Cell(interval_of("bias", estimate) if estimate else "none"),
        count_cell(look.cases),
        count_cell(look.problems),
        number_cell(finding.p),
        Cell(f"{kind.cases}, {kind.problems}, {kind.size:g}"),
        Cell(finding.state, tone=finding.tone),
        Cell(kind.what),
    )


def plain(finding: Finding) -> dict[str, object]:
    """Return a look and what it came to, as JSON has it."""
    look, estimate = finding.look, finding.look.estimate
    numbers = ("value", "low", "high", "p")
    return {
        "run": look.run,
        "kind": look.kind,
        "what": look.about.what,
        **{name: json_number(getattr(estimate, name, None)) for name in numbers},
        "p_adjusted": finding.p,
        "cases": look.cases,
        "problems": look.problems,
        "state": finding.state,
        "text": finding.paragraph().text,
        "filter": look.behind.filter if look.behind else None,
    }
