"""docs/training_report.md and the code are the same: detectors, questions, hypotheses, rates, filters."""

from __future__ import annotations

from pathlib import Path

from debate_rl.reports.training.detectors import ANY, DETECTORS, RATES, RUNS, rate_text
from debate_rl.reports.training.hypotheses import HYPOTHESES
from debate_rl.reports.training.questions import QUESTIONS
from transcripts import compile_filter

PAGE = Path(__file__).parents[5] / "docs/training_report.md"


def rows(heading):
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return table[1 : len(table)]


def test_the_page_has_every_detector():
    found = [row for row in rows("Detectors") if row[0].startswith("`") and len(row) == 6]
    assert found == [
        [
            f"`{one.name}`",
            one.rule,
            one.source,
            rate_text(one.name),
            f"{RATES[one.name].seen:.2f}, {RATES[one.name].delay}",
            f"`{one.filter}`",
        ]
        for one in DETECTORS.values()
    ]


def test_the_page_has_every_question_and_hypothesis():
    assert rows("Questions") == [
        [f"`{one.name}`", one.text, one.rule, one.source, f"`{one.filter}`" if one.filter else "-"]
        for one in QUESTIONS
    ]
    assert rows("Hypotheses") == [[one.name, one.source, one.fix, f"`{one.filter}`"] for one in HYPOTHESES]


def test_the_page_has_the_share_of_runs_with_any_alarm():
    assert f"In {ANY / RUNS:.1%} of the healthy runs" in PAGE.read_text(encoding="utf-8").replace("\n", " ")


def test_the_filter_language_knows_every_filter():
    filters = [one.filter.format(step=7) for one in DETECTORS.values()]
    for text in (*filters, *(one.filter for one in (*QUESTIONS, *HYPOTHESES))):
        compile_filter(text)
