"""How well a policy judges, and how its training went: docs/judging.md, docs/report.md."""

from debate_rl.reports.figures import MEANINGS, Figure, Meaning, Study, figures_of, gather, judgment_figures

__all__ = ["MEANINGS", "Figure", "Meaning", "Study", "figures_of", "gather", "judgment_figures"]
