"""How well a policy judges, from the debates it left: figures with intervals clustered by problem."""

from __future__ import annotations

from collections.abc import Iterable

from debate_rl.reports.figures.bias import bias_figures
from debate_rl.reports.figures.figure import MEANINGS, Figure, Meaning
from debate_rl.reports.figures.judging import accuracy_figures
from debate_rl.reports.figures.outcomes import (
    cascade_figures,
    collusion_figures,
    graph_figures,
    winner_figures,
)
from debate_rl.reports.figures.study import Study, gather
from transcripts import Record

__all__ = ["MEANINGS", "Figure", "Meaning", "Study", "figures_of", "gather", "judgment_figures"]


def judgment_figures(records: Iterable[Record]) -> list[Figure]:
    """Return every figure of docs/judging.md, in its order, from records that are read once."""
    return figures_of(gather(records))


def figures_of(rows: Study) -> list[Figure]:
    """Return every figure of the rows read so far."""
    measures = (
        accuracy_figures,
        bias_figures,
        winner_figures,
        cascade_figures,
        graph_figures,
        collusion_figures,
    )
    return [figure for measure in measures for figure in measure(rows)]
