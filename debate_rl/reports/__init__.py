"""How well a policy judges, and how its training went: docs/judging.md, docs/report.md."""

from debate_rl.reports.figures import Figure, judgment_figures

__all__ = ["Figure", "judgment_figures"]
