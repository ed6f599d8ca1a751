"""The sections of one run: a table for each group of docs/judging.md, and charts of accuracy."""

from __future__ import annotations

from collections.abc import Mapping

from debate_rl.formatting import number
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.cells import Judged, bounds_of, count_cell, estimate_cell, interval_of
from debate_rl.reports.document import Cell, Section, Table
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.judgment.groups import group_parts

READ_TOGETHER = (
    "Read the three together: a policy that votes only where it is sure gains accuracy and loses coverage; "
    "strict accuracy sees both."
)
IN_BOTH_ORDERS = 'They come with debate.order = "per_viewer" and four agents or more.'
LOG_ODDS = "Log-odds: 0 is no effect, 1 makes the odds 2.7 times as large."
BIASES = (
    ("bias", "On pairs that are equal in truth", "0 is no bias, 0.1 is 60 votes in 100 for it."),
    ("swaps", "Pairs shown in both orders", IN_BOTH_ORDERS),
    ("regression", "One regression for all of them", LOG_ODDS),
)
ANSWERS = (
    ("flip", "An agent's steps from one round to the next", ""),
    ("cascade", "Who is carried away", ""),
)
PARTS: tuple[tuple[str, str, str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "accuracy",
        "Judge accuracy",
        "how often votes are right, by step, persona, fault, round, agent, length, level and subject",
        (("accuracy", "On pairs with exactly one right side", READ_TOGETHER),),
    ),
    ("biases", "Biases", "what moves votes other than truth: position, length, own work, personas", BIASES),
    (
        "winner",
        "Winner",
        "what the vote's winner adds to one answer, a majority, and a perfect judge",
        (("winner", "The winner of the last judged round", ""),),
    ),
    ("answers", "Flips and cascades", "who changes from right to wrong, and whom agents follow", ANSWERS),
    (
        "graph",
        "Cycles and orders",
        "do the votes of a debate make an order",
        (("graph", "Strict majorities of the votes", ""),),
    ),
    (
        "collusion",
        "Collusion",
        "does praise grow without truth, are favours returned",
        (("collusion", "Praise without truth, favours returned, agreement", ""),),
    ),
)
"""Anchor, title and contents of each section, then name, title and note of its tables."""
COLUMNS = ("figure", "estimate", "95% interval", "n", "problems", "what it is")


def judgment_sections(judged: Judged, *, prefix: str = "") -> list[Section]:
    """Return the sections of a run; ``prefix`` goes before the anchors, and the run's name before titles."""
    named = f"{judged.run}: " if prefix else ""
    sections: list[Section] = []
    for name, title, about, tables in PARTS:
        parts = [figure_table(judged, stem, head, note) for stem, head, note in tables]
        more = group_parts(judged) if name == "accuracy" else []
        sections.append(Section(f"{prefix}{name}", f"{named}{title}", (*parts, *more), about))
    return sections


def figure_table(judged: Judged, stem: str, title: str, note: str) -> Table:
    """Return the figures of one group, those without a value with the reason."""
    rows = tuple(_row(judged, figure) for figure in judged.figures if _is_of(figure.name, stem))
    return Table(stem, title, COLUMNS, rows, note)


def meaning(figure: Figure) -> str:
    """Return what a figure is, with its source where it has one."""
    text = figure.meaning.text.replace("`", "")
    return text if figure.meaning.source == "-" else f"{text} [{figure.meaning.source}]"


def _name(name: str) -> str:
    """Return a figure's name within its table; a persona's is left as it is.

    >>> _name("judge/strict_accuracy"), _name("regression/persona/a_b")
    ('strict accuracy', 'persona a_b')
    """
    rest = name.partition("/")[2]
    first, slash, label = rest.partition("/")
    return f"{first} {label}" if slash else first.replace("_", " ")


def _is_of(name: str, stem: str) -> bool:
    head, _, rest = name.partition("/")
    return head == stem or (stem == "accuracy" and head == "judge" and "/" not in rest)


def _row(judged: Judged, figure: Figure) -> tuple[Cell, ...]:
    name, estimate, text = _name(figure.name), figure.estimate, meaning(figure)
    if estimate is None:
        nothing = (Cell(""),) * (len(COLUMNS) - 3)
        return (Cell(name), Cell("none"), *nothing, Cell(f"{text}. No value: {figure.why}"))
    return (
        Cell(name),
        estimate_cell(figure, judged.behind(figure)),
        Cell(interval_of(figure.name, estimate)),
        count_cell(estimate.n),
        count_cell(estimate.clusters),
        Cell(text),
    )


SIMULATED = ("figure", "put in", "found", "95% interval", "in the interval", "n", "problems")
KNOWN_JUDGES = (
    "The judges of these debates are simulated with known accuracy and biases. Of many such intervals 95 in "
    "a hundred hold what was put in."
)


def simulation_section(judged: Judged, expected: Mapping[str, float], *, prefix: str = "") -> Section:
    """Return a table of the figures that are known beforehand."""
    estimates = {figure.name: figure.estimate for figure in judged.figures}
    rows = tuple(_simulated_row(name, value, estimates.get(name)) for name, value in expected.items())
    named = f"{judged.run}: " if prefix else ""
    table = Table("put-in", "What was put in, and what was found", SIMULATED, rows, KNOWN_JUDGES)
    about = "what was put in, and what was found"
    return Section(f"{prefix}simulation", f"{named}Simulated judges", (table,), about)


def put_in(section: Section) -> Table:
    """Return the table of a section of simulated judges as a small one: without interval and counts."""
    [table] = section.parts
    assert isinstance(table, Table)
    return Table(
        "put-in-small",
        table.title,
        SIMULATED[:3] + SIMULATED[4:5],
        tuple((*row[:3], row[4]) for row in table.rows),
    )


def _simulated_row(name: str, value: float, estimate: Estimate | None) -> tuple[Cell, ...]:
    signed = bounds_of(name)[0] < 0
    first = Cell(name), Cell(number(value, signed=signed), value)
    if estimate is None:
        return *first, *(Cell("none") for _ in SIMULATED[2:])
    reach, inside = interval_of(name, estimate), estimate.low <= value <= estimate.high
    verdict = Cell("yes" if inside else "no", inside, tone="good" if inside else "warn")
    return (
        *first,
        Cell(number(estimate.value, signed=signed), estimate.value),
        Cell(reach),
        Cell("none") if reach == "none" else verdict,
        count_cell(estimate.n),
        count_cell(estimate.clusters),
    )
