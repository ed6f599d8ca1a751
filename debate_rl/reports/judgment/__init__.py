"""The figures of docs/judging.md as a report shows them: findings, tables, charts, runs side by side."""

from debate_rl.reports.judgment.comparison import comparison_section
from debate_rl.reports.judgment.lead import judgment_lead
from debate_rl.reports.judgment.sections import Judged, judgment_sections, simulation_section

__all__ = [
    "Judged",
    "comparison_section",
    "judgment_lead",
    "judgment_sections",
    "simulation_section",
]
