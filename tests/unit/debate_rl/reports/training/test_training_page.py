"""docs/training_report.md and the code are the same: questions, hypotheses, filters."""

from __future__ import annotations

from pathlib import Path

from debate_rl.alarms import DETECTORS
from debate_rl.reports.training.hypotheses import HYPOTHESES
from debate_rl.reports.training.questions import QUESTIONS
from transcripts import compile_filter

PAGE = Path(__file__).parents[5] / "docs/training_report.md"


def rows(heading):
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return table[1 : len(table)]


def test_the_page_has_every_question_and_hypothesis():
    assert rows("Questions") == [
        [f"`{one.name}`", one.text, one.rule, one.source, f"`{one.filter}`" if one.filter else "-"]
        for one in QUESTIONS
    ]
    assert rows("Hypotheses") == [[one.name, one.source, one.fix, f"`{one.filter}`"] for one in HYPOTHESES]


def test_the_filter_language_knows_every_filter():
    filters = [one.debates.format(step=7) for one in DETECTORS.values()]
    for text in (*filters, *(one.filter for one in (*QUESTIONS, *HYPOTHESES))):
        compile_filter(text)
