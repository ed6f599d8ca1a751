"""Every column of a list has a meaning that the help tells, and so has every field of filters."""

from debate_rl.inspector.lists import DEBATES, MEANINGS, RUNS, STEPS, filter_fields
from debate_rl.inspector.terminal.screens import help_lines
from transcripts.filters.fields import FIELDS

PLAIN = {"", "run", "step", "steps", "debate", "debates", "problem", "question", "flags", "level", "tokens"}
"""Names that say what they are."""


def test_every_column_has_a_meaning():
    shown = {column.name for column in (*RUNS, *STEPS, *DEBATES)}
    assert shown <= {name for name, _ in MEANINGS} | PLAIN


def test_the_terminals_help_tells_columns_and_fields():
    text = " ".join(" ".join(line.plain for line in help_lines([])).split())
    for name, about in (*MEANINGS, *filter_fields()):
        assert f"{name} " in text
        assert about in text
    assert len(filter_fields()) == len(FIELDS)
