"""docs/judging.md and the figures that the code makes are the same, filters included."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from debate_rl.reports import judgment_figures
from debate_rl.reports.figures import MEANINGS
from debate_rl.reports.figures.figure import pattern_of
from transcripts import compile_filter

PAGE = Path(__file__).parents[4] / "docs/judging.md"


@pytest.fixture
def rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return {name.strip("`"): (text, source, where) for name, text, source, where in found}


def test_the_page_has_the_meanings_in_their_order(rows):
    assert {name: row[:2] for name, row in rows.items()} == MEANINGS
    assert list(rows) == list(MEANINGS)


def test_every_figure_has_a_row_and_its_filter(rows, ordered, circular):
    figures = judgment_figures([ordered, circular])
    assert {pattern_of(figure.name) for figure in figures} | {"regression/persona/<label>"} == set(rows)
    for figure in figures:
        assert figure.meaning.text
        if "<" not in pattern_of(figure.name):
            where = "-" if figure.filter is None else f"`{figure.filter}`"
            assert rows[figure.name][2] == where, figure.name


def test_the_filter_language_knows_every_filter(ordered, circular):
    problem = replace(ordered.debate.problem, source='MATH/"odd" names')
    ordered = replace(ordered, debate=replace(ordered.debate, problem=problem))
    for figure in judgment_figures([ordered, circular]):
        if figure.filter is not None:
            compile_filter(figure.filter)


def test_a_label_with_odd_characters_has_a_row():
    assert pattern_of("judge/accuracy/persona/a/b\nc") in MEANINGS
    assert re.fullmatch(r"regression/persona/<label>", pattern_of("regression/persona/x/y"))
