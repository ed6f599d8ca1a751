"""How training went, from what a run left: settings, curves, final figures, questions, alarms.

Everything but metrics.jsonl or the transcripts may be missing; a report is made from what there is, and says
what is not there. docs/training_report.md has each rule with its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from debate_rl.reports.document import Section
from debate_rl.reports.training.causes import causes_section
from debate_rl.reports.training.charts import curves_section
from debate_rl.reports.training.distributions import distributions_section
from debate_rl.reports.training.finals import finals_section
from debate_rl.reports.training.findings import alarms_section, questions_section
from debate_rl.reports.training.judge_pairs import judge_pairs_section
from debate_rl.reports.training.loading import Run, load_runs
from debate_rl.reports.training.phases import overview_section, phases_section
from debate_rl.reports.training.settings import settings_section

__all__ = ["training_sections"]

SECTIONS = (
    overview_section,
    alarms_section,
    questions_section,
    finals_section,
    judge_pairs_section,
    causes_section,
    phases_section,
    settings_section,
    curves_section,
    distributions_section,
)
"""In the order of the report."""


def training_sections(runs: Sequence[Path]) -> list[Section]:
    """Return the sections of the training analysis, over the folders of one or many runs."""
    return sections_of(load_runs(runs))


def sections_of(runs: Sequence[Run]) -> list[Section]:
    """Return the sections of runs that were read."""
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        sections = [section(runs) for section in SECTIONS]
    return [one for one in sections if one.parts or one.name != "judge_pairs"]
