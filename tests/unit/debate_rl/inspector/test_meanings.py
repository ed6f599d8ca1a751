"""Every column of the faces has a meaning that their help tells, and so has every field of filters."""

from __future__ import annotations

import re

from debate_rl.inspector.meanings import COLUMNS, filter_fields, flags_of
from debate_rl.inspector.plain import listing
from debate_rl.inspector.terminal import debates, runs
from debate_rl.inspector.terminal.screen import help_lines
from debate_rl.inspector.web.addresses import Links
from debate_rl.inspector.web.rendering import render
from transcripts import RunStore, write_step
from transcripts.filters.fields import FIELDS

PLAIN = {
    "",
    "id",
    "step",
    "debate",
    "debates",
    "problem",
    "question",
    "flags",
    "tokens",
    "accuracy, round 0",
    "accuracy, last round",
}
"""Names that say what they are."""


def test_every_column_has_a_meaning():
    named = {name for names, _ in COLUMNS for name in names.split(", ")} | PLAIN
    shown = {column.name.partition(",")[0] for column in (*runs.STEP_COLUMNS, *debates.COLUMNS)}
    assert shown | {*listing.HEADINGS, *listing.COLUMNS} <= named


def test_the_terminals_help_tells_columns_and_fields():
    text = " ".join(" ".join(line.plain for line in help_lines([])).split())
    for name, about in (*COLUMNS, *filter_fields()):
        assert f"{name} " in text
        assert about in text
    assert len(filter_fields()) == len(FIELDS)


def test_every_list_shows_the_same_flags(circle, tmp_path):
    write_step(tmp_path / "run/transcripts", 5, [circle])
    with RunStore.open(tmp_path / "run") as store:
        [row] = store.debates()
    flags = " ".join(flag for flag, _ in flags_of(row))
    assert flags == "cycle WC:2"
    assert listing.cells_of(row)[-1] == flags
    [column] = [column for column in debates.COLUMNS if column.name == "flags"]
    assert column.cell(row) == flags
    shown = render("_rows.html", rows=[row], links=Links("run"))
    assert re.findall(r'class="flag"[^>]*>([^<]*)<', shown) == flags.split()
