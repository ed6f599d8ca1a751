"""Debates whose judges are as good, and as biased, as a setting says: what a report of them must find.

Solutions are real ones of a file, or made ones; judges are simulated. All else is as in training: texts with
tags, the parser, the grader, rewards, records, shards.
"""

from debate_rl.reports.simulation.runs import Judges, Setting, read_setting, simulate_run
from debate_rl.reports.simulation.solutions import Solved, made_solutions, read_solutions

__all__ = [
    "Judges",
    "Setting",
    "Solved",
    "made_solutions",
    "read_setting",
    "read_solutions",
    "simulate_run",
]
