"""The figure of a frontier: the plane of p_m and p_v, accuracy over labels, and the dose of wrong votes."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from debate_rl.runs.folder import write_whole
from experiments.frontier.labels import Worth, accuracies, cells_of_curve
from experiments.frontier.results import Cell, less, shortest
from experiments.frontier.rules import Point, fitted, of_votes, ttrl_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINS, LOSES, UNSURE, INK = "#2e8b57", "#cf4658", "#7d7f85", "#3a7bd5"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "frontier",
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
}


def draw(cells: Sequence[Cell], worths: Sequence[Worth], path: Path) -> None:
    """Write the figure as SVG: the same file each time. Panels without a cell are left out."""
    import matplotlib
    from matplotlib.figure import Figure

    short = shortest(cells)
    panels = [
        plane,
        *([labels] if worths else []),
        *([dose] if any(one.control != "none" for one in short) else []),
    ]
    style: Any = STYLE
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(3.6 * len(panels), 3.3), layout="constrained")
        for place, panel in enumerate(panels):
            panel(figure.add_subplot(1, len(panels), place + 1), short, worths)
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    write_whole(path, drawn.getvalue())


def plane(axes: Axes, cells: Sequence[Cell], _: Sequence[Worth]) -> None:
    """Draw each cell of votes at (p_m, p_v), by whether votes beat TTRL there."""
    axes.plot([0, 1], [0, 1], color=UNSURE, linewidth=0.6, linestyle="--")
    axes.axhline(0.5, color=UNSURE, linewidth=0.4)
    axes.axvline(0.5, color=UNSURE, linewidth=0.4)
    for cell in cells:
        other, votes, crowd = ttrl_of(cell, cells), cell.p_v(), cell.p_m()
        found = less(cell, other) if other is not None and of_votes(cell) else None
        if found is None or votes is None or crowd is None:
            continue
        colour = WINS if found.low > 0 else LOSES if found.high < 0 else UNSURE
        axes.scatter([crowd], [votes], s=16 + 240 * abs(found.value), color=colour, alpha=0.75, linewidths=0)
    for colour, words in (
        (WINS, "votes gain more"),
        (LOSES, "TTRL gains more"),
        (UNSURE, "no clear difference"),
    ):
        axes.scatter([], [], s=24, color=colour, label=words)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="p_m: the majority is right", ylabel="p_v: votes are right")
    axes.set_title("Votes compared with majorities", loc="left")
    axes.legend(loc="lower right")


def labels(axes: Axes, cells: Sequence[Cell], worths: Sequence[Worth]) -> None:
    """Draw the accuracy of first answers over labels, and the lines of signals without any."""
    prior = worths[0].prior
    truth = cells_of_curve(cells, prior)
    points = sorted(
        (fmean(one.labels for one in cell.seeds.values()), fmean(accuracies(cell))) for cell in truth
    )
    start = fmean(one.first[0][1] for one in truth[0].seeds.values())
    curve = zip((0.0, start), *points, strict=True)
    axes.plot(*curve, marker="o", markersize=3, color=INK, label="truth on n problems")
    flat = [one for one in cells if one.prior == prior and one.signal in ("votes", "voted", "ttrl")]
    told = {one.signal: f": {one.text}" for one in worths if one.prior == prior}
    for cell, dash in zip(flat, ("-", "--", ":"), strict=False):
        axes.axhline(
            fmean(accuracies(cell)),
            color=LOSES if cell.signal == "ttrl" else WINS,
            linestyle=dash,
            label=cell.signal + told.get(cell.signal, ""),
        )
    axes.set(xlabel="labels used in training", ylabel="accuracy of first answers")
    axes.set_title("What votes are worth in labels", loc="left")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) / 2)  # room for the legend above all lines
    axes.legend(loc="upper left")


def dose(axes: Axes, cells: Sequence[Cell], _: Sequence[Worth]) -> None:
    """Draw the gain of first answers over p_v, each vote cell with its interval over the seeds, and the line
    through the cells of each prior.
    """
    axes.axhline(0, color=UNSURE, linewidth=0.6)
    axes.axvline(0.5, color=UNSURE, linewidth=0.6)
    kinds = {"none": ("o", INK), "flipped_votes": ("o", INK), "shared_errors": ("s", LOSES)}
    points: dict[str, list[Point]] = {}
    for cell in cells:
        found, votes = cell.gain, cell.p_v()
        if not of_votes(cell) or found is None or votes is None:
            continue
        points.setdefault(cell.prior, []).append(Point(cell.prior, "votes", votes, found.value))
        marker, colour = kinds[cell.control]
        reach = [[found.value - found.low], [found.high - found.value]]
        axes.errorbar(
            [votes], [found.value], yerr=reach, fmt=marker, markersize=3, linewidth=0.6, color=colour
        )
    for each in points.values():
        shares = {one.share for one in each}
        if len(shares) > 2 and (line := fitted(each)) is not None:
            intercept, slope = line
            ends = [min(shares), max(shares)]
            axes.plot(ends, [slope * end + intercept for end in ends], color=UNSURE, linewidth=0.8)
    for control, words in (("flipped_votes", "errors independent"), ("shared_errors", "errors shared")):
        axes.scatter([], [], marker=kinds[control][0], s=12, color=kinds[control][1], label=words)
    axes.set(xlabel="p_v: votes are right", ylabel="gain of first answers")
    axes.set_title("The dose of wrong votes", loc="left")
    axes.legend(loc="upper left")
