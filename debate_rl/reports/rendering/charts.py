"""Charts as SVG that stands in a page: no script, no reference to anything outside, the same each time.

Lines and letters take the page's own colour, so that a chart reads in light and dark; series have colours
with enough contrast on both.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from debate_rl.formatting import printable
from debate_rl.reports.document import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3a7bd5", "#c2701c", "#2e8b57", "#9a63c4", "#cf4658", "#208a94", "#8a7a22", "#7d7f85")
DASHES = ("-", "--", "-.", ":")
INK = "#010203"
"""Stands for the page's own colour until the SVG is written."""
SPACE = "http://www.w3.org"
WIDTH, HEIGHT, BAR = 7.4, 2.5, 0.23
SMALL = 4.2, 1.6
"""A chart beside a text."""
LONGEST = 36
LARGEST = 1e30
"""The ticks of an axis overflow long before the numbers do."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "path.simplify": True,
} | {f"{part}.color": INK for part in ("text", "xtick", "ytick", "grid")}
STYLE |= {"axes.edgecolor": INK, "axes.labelcolor": INK}
NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(chart: Chart) -> str:
    """Return the chart as an ``<svg>`` element; its texts are escaped and its own."""
    import matplotlib
    from matplotlib.figure import Figure

    chart = _drawable(chart)
    style: Any = {**STYLE, "svg.hashsalt": printable(chart.name)}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that a font lacks are drawn as boxes
        figure = Figure(figsize=SMALL if chart.small else (WIDTH, _height(chart)), layout="constrained")
        axes = figure.add_subplot()
        _fill(axes, chart)
        _name(figure, axes, chart)
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=NOTHING)
    return _inline(file.getvalue(), chart)


def _drawable(chart: Chart) -> Chart:
    """Return the chart without what no axis can hold, which stands in the table of its numbers."""
    series = tuple(map(_within, chart.series))
    return replace(chart, series=series, rules=tuple(rule for rule in chart.rules if abs(rule[1]) <= LARGEST))


def _within(series: Series) -> Series:
    inside = [index for index, x in enumerate(series.x) if abs(x) <= LARGEST]
    columns = {
        name: tuple(value if value is not None and abs(value) <= LARGEST else None for value in values)
        for name, values in (("y", series.y), ("low", series.low), ("high", series.high))
    }
    chosen = {name: tuple(values[index] for index in inside) for name, values in columns.items() if values}
    return replace(series, x=tuple(series.x[index] for index in inside), **chosen)


def _height(chart: Chart) -> float:
    if not chart.ticks:
        return HEIGHT
    return 0.75 + BAR * len(chart.ticks) * max(1.0, 0.7 * len(chart.series))


def _fill(axes: Axes, chart: Chart) -> None:
    for index, series in enumerate(chart.series):
        look = COLOURS[index % len(COLOURS)], DASHES[index // 2 % len(DASHES)]
        if chart.kind == "line":
            _line(axes, series, *look)
        else:
            _bars(axes, series, look[0], index, len(chart.series), bool(chart.ticks))
    for _, value in chart.rules:
        rule = axes.axvline if chart.ticks and chart.kind == "bars" else axes.axhline
        rule(value, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))


def _line(axes: Axes, series: Series, colour: str, dash: str) -> None:
    y = _numbers(series.y)
    marker = "o" if len(y) <= 40 else ""
    axes.plot(series.x, y, dash, color=colour, marker=marker, ms=3, lw=1.4, label=_short(series.label))
    if series.low and series.high:
        low, high = _numbers(series.low), _numbers(series.high)
        axes.fill_between(series.x, low, high, color=colour, alpha=0.18, linewidth=0)


def _bars(axes: Axes, series: Series, colour: str, index: int, count: int, lying: bool) -> None:
    """Draw one series of bars with its intervals; ``lying`` ones stand beside the names of x = 0, 1, ..."""
    room = (0.68 if lying else _step(series.x) * 0.8) / count
    at = [x + (index - (count - 1) / 2) * room for x in series.x]
    draw_bars = axes.barh if lying else axes.bar
    draw_bars(at, _numbers(series.y), room * 0.92, color=colour, alpha=0.75, label=_short(series.label))
    for x, low, high in zip(at, series.low, series.high, strict=False):
        if low is not None and high is not None:
            along, across = [low, high], [x, x]
            axes.plot(*((along, across) if lying else (across, along)), color=INK, linewidth=1.1)


def _step(positions: tuple[float, ...]) -> float:
    ordered = sorted(set(positions))
    return min((b - a for a, b in pairwise(ordered)), default=1.0)


def _numbers(values: tuple[float | None, ...]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _name(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Label the axes, the rules and, where there are several, the series."""
    from matplotlib.ticker import MaxNLocator

    lying = chart.kind == "bars" and bool(chart.ticks)
    if lying and all(0 <= value <= 1 for value in _ends(chart)):
        axes.set_xlim(0, 1)  # shares of all charts on one scale
    axes.set_xlabel(printable(chart.y_label if lying else chart.x_label))
    axes.set_ylabel("" if lying else printable(chart.y_label))
    if lying:
        axes.set_yticks(range(len(chart.ticks)), [_short(tick) for tick in chart.ticks])
        axes.set_ylim(len(chart.ticks) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    elif chart.ticks:
        axes.set_xticks(range(len(chart.ticks)), [_short(tick) for tick in chart.ticks])
    if chart.kind == "line":
        axes.ticklabel_format(axis="y", useOffset=False)  # "+1" in a corner is overlooked
    if not chart.ticks and all(x == int(x) for series in chart.series for x in series.x):
        steps = {x for series in chart.series for x in series.x}
        if len(steps) == 1:  # else the only step stands between tenths of a step
            axes.set_xlim(min(steps) - 1, max(steps) + 1)
        whole = MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True)  # there is no half step
        axes.xaxis.set_major_locator(whole)
    for name, value in chart.rules:
        where = {"x": value, "y": 1.0} if lying else {"x": 1.0, "y": value}
        axes.annotate(
            printable(name),
            (where["x"], where["y"]),
            xycoords=("data", "axes fraction") if lying else ("axes fraction", "data"),
            xytext=(2, 1) if lying else (-2, 2),
            textcoords="offset points",
            ha="left" if lying else "right",
            va="bottom",
            fontsize=7.5,
        )
    if len(chart.series) > 1:
        figure.legend(loc="outside upper left", ncols=4, fontsize=8)


def _ends(chart: Chart) -> list[float]:
    values = [value for series in chart.series for value in (*series.y, *series.low, *series.high)]
    return [value for value in values if value is not None]


def _short(text: str) -> str:
    shown = printable(text).lstrip("_") or "-"  # a leading underscore would hide it from the legend
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _inline(svg: str, chart: Chart) -> str:
    """Return the element without what a page has itself: header, style, names of groups, a fixed size."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style [^>]*>.*?</style>", "", svg, count=2, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    view = re.search(r'viewBox="[0-9. -]+"', svg)
    box = view[0] if view else ""
    head = f'<svg xmlns="{SPACE}/2000/svg" xmlns:xlink="{SPACE}/1999/xlink" {box} role="img" '
    svg = head + f'aria-label="{_attribute(chart)}">' + svg[svg.index(">") + 1 :]
    return svg.replace(INK, "currentColor")


def _attribute(chart: Chart) -> str:
    from markupsafe import escape

    return str(escape(f"Chart: {printable(chart.title)}. Its numbers are in the table below."))
