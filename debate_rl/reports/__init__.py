"""Reports on runs: how well the policy judges, how training went, and what to do next."""

from debate_rl.reports.figures import Figure, judgment_figures

__all__ = ["Figure", "judgment_figures"]
