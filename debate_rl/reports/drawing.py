"""Charts as inline SVG: no scripts, no external references, and deterministic.

Lines and letters have the page's text colour, so charts are readable on light and dark pages. The colours of
series have enough contrast on both.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from debate_rl.formatting import printable
from debate_rl.reports.document import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3a7bd5", "#c2701c", "#2e8b57", "#9a63c4", "#cf4658", "#208a94", "#8a7a22", "#7d7f85")
DASHES = ("-", "--", "-.", ":")
INK = "#010203"
"""A placeholder for the page's text colour until the SVG is written."""
SPACE = "http://www.w3.org"
WIDTH, HEIGHT, BAR = 7.4, 2.5, 0.23
SMALL = 4.2, 1.6
"""The size in inches of a chart next to a text."""
LONGEST = 36
LARGEST = 1e30
"""Larger values are not drawn, because ticks would overflow."""
STYLE = Path(__file__).parent / "templates" / "report.mplstyle"
COLOURED = ("axes.edgecolor", "axes.labelcolor", *(f"{p}.color" for p in ("text", "xtick", "ytick", "grid")))


def draw(chart: Chart) -> str:
    """Return the chart as an ``<svg>`` element with escaped texts."""
    import matplotlib
    from markupsafe import escape
    from matplotlib.figure import Figure

    rules = tuple(rule for rule in chart.rules if abs(rule[1]) <= LARGEST)
    chart = replace(chart, series=tuple(map(_within, chart.series)), rules=rules)
    height = 0.75 + BAR * len(chart.ticks) * max(1.0, 0.7 * len(chart.series)) if chart.ticks else HEIGHT
    style: Any = dict.fromkeys(COLOURED, INK) | {"svg.hashsalt": printable(chart.name)}
    with matplotlib.rc_context(style, STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no warnings about letters that a font lacks
        figure = Figure(figsize=SMALL if chart.small else (WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        for index in range(len(chart.series)):
            (_line if chart.kind == "line" else _bars)(axes, chart, index, COLOURS[index % len(COLOURS)])
        _name(axes, chart)
        if len(chart.series) > 1:
            figure.legend(loc="outside upper left", ncols=4, fontsize=8)
        file = StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    svg = file.getvalue()  # parts of the SVG that the page replaces are removed below
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style [^>]*>.*?</style>", "", svg, count=2, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    view = re.search(r'viewBox="[0-9. -]+"', svg)
    label = escape(f"Chart: {printable(chart.title)}. Its numbers are in the table below.")
    head = f'<svg xmlns="{SPACE}/2000/svg" xmlns:xlink="{SPACE}/1999/xlink" {view[0] if view else ""} '
    svg = f'{head}role="img" aria-label="{label}">' + svg[svg.index(">") + 1 :]
    return svg.replace(INK, "currentColor")


def _within(series: Series) -> Series:
    """Return the series without values that are too large to draw. The table still has them."""
    inside = [index for index, x in enumerate(series.x) if abs(x) <= LARGEST]

    def kept(values: Sequence[float | None]) -> tuple[float | None, ...]:
        known = [v if v is not None and abs(v) <= LARGEST else None for v in values]
        return tuple(known[index] for index in inside) if values else ()

    x = tuple(series.x[index] for index in inside)
    return Series(series.label, x, kept(series.y), kept(series.low), kept(series.high))


def _line(axes: Axes, chart: Chart, index: int, colour: str) -> None:
    series = chart.series[index]
    y, low, high = (np.array(values, dtype=float) for values in (series.y, series.low, series.high))
    dash, marker = DASHES[index // 2 % len(DASHES)], "o" if len(y) <= 40 else ""
    axes.plot(series.x, y, dash, color=colour, marker=marker, ms=3, lw=1.4, label=_short(series.label))
    if len(low) and len(high):
        axes.fill_between(series.x, low, high, color=colour, alpha=0.18, linewidth=0)


def _bars(axes: Axes, chart: Chart, index: int, colour: str) -> None:
    series, count, lying = chart.series[index], len(chart.series), bool(chart.ticks)
    step = min((b - a for a, b in pairwise(sorted(set(series.x)))), default=1.0)
    room = (0.68 if lying else step * 0.8) / count
    at, y = [x + (index - (count - 1) / 2) * room for x in series.x], np.array(series.y, dtype=float)
    (axes.barh if lying else axes.bar)(
        at, y, room * 0.92, color=colour, alpha=0.75, label=_short(series.label)
    )
    for x, low, high in zip(at, series.low, series.high, strict=False):
        if low is not None and high is not None:
            along, across = [low, high], [x, x]
            axes.plot(*((along, across) if lying else (across, along)), color=INK, linewidth=1.1)


def _name(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    lying = chart.kind == "bars" and bool(chart.ticks)
    values = [v for series in chart.series for v in (*series.y, *series.low, *series.high) if v is not None]
    if lying and all(0 <= value <= 1 for value in values):
        axes.set_xlim(0, 1)  # all shares on the same scale
    axes.set_xlabel(printable(chart.y_label if lying else chart.x_label))
    axes.set_ylabel("" if lying else printable(chart.y_label))
    if lying:
        axes.set_yticks(range(len(chart.ticks)), [_short(tick) for tick in chart.ticks])
        axes.set_ylim(len(chart.ticks) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    if chart.kind == "line":
        axes.ticklabel_format(axis="y", useOffset=False)  # readers overlook an offset in the corner
    steps = {x for series in chart.series for x in series.x}
    if not chart.ticks and all(x == int(x) for x in steps):
        if len(steps) == 1:  # otherwise the ticks around a single step are tenths of a step
            axes.set_xlim(min(steps) - 1, max(steps) + 1)
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))  # integers
    for name, value in chart.rules:
        (axes.axvline if lying else axes.axhline)(value, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        xy, units, offset = (1.0, value), ("axes fraction", "data"), (-2, 2)
        if lying:
            xy, units, offset = (value, 1.0), ("data", "axes fraction"), (2, 1)
        place: Any = {"xycoords": units, "xytext": offset, "textcoords": "offset points", "va": "bottom"}
        axes.annotate(printable(name), xy, ha="left" if lying else "right", fontsize=7.5, **place)


def _short(text: str) -> str:
    shown = printable(text).lstrip("_") or "-"  # matplotlib hides labels with a leading underscore
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
