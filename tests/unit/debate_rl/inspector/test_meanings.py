"""Every column of a list has a meaning that the help tells, and so has every field of filters."""

from debate_rl.inspector.lists import DEBATES, MEANINGS, RUNS, STEPS, filter_fields, flags_of
from debate_rl.inspector.terminal.screens import help_lines
from transcripts import RunStore, write_step
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


def test_flags_of_a_debate(circle, tmp_path):
    write_step(tmp_path / "run/transcripts", 5, [circle])
    with RunStore.open(tmp_path / "run") as store:
        [row] = store.debates()
    assert " ".join(flag for flag, _ in flags_of(row)) == "cycle WC:2"
    [column] = [column for column in DEBATES if column.name == "flags"]
    assert column.cell(row) == "cycle WC:2"
