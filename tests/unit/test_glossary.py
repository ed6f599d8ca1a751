"""docs/glossary.md and the names of metrics, filters, columns, figures and titles are the same words."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest

from envs.rubrics.diagnosis import CAUSES

HOME = Path(__file__).parents[2]
DOCS = HOME / "docs"
PAGE = (DOCS / "glossary.md").read_text(encoding="utf-8")
PLACES = {"metric", "held-out", "filter", "debate", "step", "turn", "vote", "report"}
SHORT = {"winner", "judge", "peer", "truth", "format", "accuracy"}
"""Titles of narrow columns."""
QUALIFIERS = {"held", "out", "training", "on", "pairs", "fixed", "greedy", "sampled", "t", "1"}
"""What a label may say beside the name: of which problems, and how it was sampled."""


def table_rows(part: str) -> list[list[str]]:
    """Return the cells of the rows of all tables of a part of the page, heads left out."""
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row, line in zip(rows, lines, strict=True) if not is_head(part, line)]


def is_head(part: str, line: str) -> bool:
    return f"{line}\n|---" in part


def part_of(heading: str) -> str:
    return re.split(r"\n## ", PAGE.split(f"\n## {heading}\n")[1])[0]


def expanded(name: str) -> list[str]:
    """Return the names that one with braces stands for."""
    parts = [part.strip("{}").split(",") for part in re.split(r"(\{.*?\})", name)]
    return ["".join(choice) for choice in product(*parts)]


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name or a title, in one order, without what stands between them."""
    return tuple(sorted(re.findall(r"[a-z0-9@<>]+", name.lower())))


def names_at(*places: str) -> set[str]:
    """Return the names that the page has at one of the places."""
    found = (row for row in table_rows(part_of("Quantities")) if set(row[2].split(", ")) & set(places))
    return {one for row in found for name in re.findall(r"`([^`]+)`", row[0]) for one in expanded(name)}


def nouns() -> set[tuple[str, ...]]:
    return {words_of(noun) for row in table_rows(part_of("Nouns")) for noun in row[0].split(", ")}


def is_pattern_of(pattern: str, name: str) -> bool:
    """Is it the same name, whatever stands between its words?"""
    form = re.sub(r"[/._]", "[/._]", re.escape(pattern).replace(r"\.", "."))
    form = re.sub("<group>|<mode>|<source>|<set>|<gate>|<seat>", r"\\w+", form).replace("<label>", ".+")
    form = re.sub(r"<[rk]>", r"\\d+", form)
    return re.fullmatch(form, name, re.IGNORECASE | re.DOTALL) is not None


def unknown(names: set[str], *places: str) -> list[str]:
    """Return the names that have no row at the places."""
    page = names_at(*places)
    return sorted(name for name in names if not any(is_pattern_of(one, name) for one in page))


def stale(names: set[str], place: str) -> list[str]:
    """Return the names that the page has at a place, and the code has not."""
    return sorted(one for one in names_at(place) if not any(is_pattern_of(one, name) for name in names))


def metrics_on_the_page() -> set[str]:
    """Return the names of docs/metrics.md, which another test holds against what runs log."""
    rows = table_rows((DOCS / "metrics.md").read_text(encoding="utf-8"))
    names = {one for row in rows for name in re.findall(r"`([^`]+)`", row[0]) for one in expanded(name)}
    filled = {"<r>": "0", "<k>": "4", "<mode>": "boxed", "<source>": "gsm8k"} | {
        "<set>": "math",
        "<gate>": "levels",
        "<seat>": "frozen",
    }
    return {re.sub("<[a-z]+>", lambda gap: filled[gap[0]], name) for name in names}


def test_every_row_is_complete_and_stands_once():
    rows = table_rows(part_of("Quantities"))
    assert len(rows) > 80
    for row in rows:
        assert len(row) == 3, row
        assert all(row), row
        assert set(row[2].split(", ")) <= PLACES, row
        assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", row[0]), row
    for place in PLACES:
        found = [row for row in rows if place in row[2].split(", ")]
        names = [e for row in found for name in re.findall(r"`([^`]+)`", row[0]) for e in expanded(name)]
        assert sorted(set(names)) == sorted(names), place


def test_every_noun_stands_once_and_every_grade_has_a_sign():
    rows = table_rows(part_of("Nouns"))
    found = [noun for row in rows for noun in row[0].split(", ")]
    assert sorted(set(found)) == sorted(found)
    assert {row[0] for row in table_rows(part_of("Grades"))} == {"right", "wrong", "missing", "ungraded"}


def test_names_are_compared_by_their_words():
    assert is_pattern_of("accuracy/round_<r>", "accuracy.round_0")
    assert is_pattern_of("accuracy/round_<r>", "accuracy_round_12")
    assert is_pattern_of("judge/accuracy/<group>/<label>", "judge/accuracy/level/Level 5")
    assert not is_pattern_of("accuracy/round_<r>", "accuracy.first")
    assert words_of("Peer reward") == words_of("reward/peer")
    assert words_of("accuracy, round 0") == words_of("accuracy/round_0")


def test_metrics():
    names = metrics_on_the_page()
    held = {name for name in names if name.startswith("eval/")}
    bare = {re.sub(r"^eval/(direct/|debate/)?|/(low|high)$", "", name) for name in held}
    assert unknown(names - held, "metric") == []
    assert unknown(bare, "held-out") == []
    assert stale(names - held, "metric") == []
    assert set(stale(bare, "held-out")) <= {
        "greedy_accuracy",
        "instructions",
        "score",
        "score@<k>",
        "verifier/direct/approach",
        *(f"verifier/direct/cause/{cause}" for cause in CAUSES),
    }  # not in every run


def test_filters():
    from transcripts.filters.fields import FIELDS

    assert unknown(set(FIELDS), "filter") == []
    assert stale(set(FIELDS), "filter") == []


def test_columns_of_parquet_and_python():
    from debate_rl.tracking.step_lines import SAMPLE
    from transcripts import StepRow
    from transcripts.index.facts import Facts
    from transcripts.parquet import DEBATE, TURN, VOTE

    steps = {field.name for field in fields(StepRow)}
    turns = {*TURN, *SAMPLE} - {"step", "problem", "gold"}
    assert unknown({*DEBATE, *Facts._fields}, "filter", "debate") == []
    assert unknown(steps, "step") == []
    assert unknown(turns, "turn") == []
    assert unknown(set(VOTE), "vote") == []
    for place, names in (("debate", set(DEBATE)), ("step", steps), ("turn", turns), ("vote", set(VOTE))):
        assert stale(names, place) == [], place


def test_figures_of_reports():
    from debate_rl.reports.figures import MEANINGS

    names = {name.replace("<group>", "persona").replace("<label>", "Skeptic") for name in MEANINGS}
    assert unknown(names, "report") == []
    assert stale(names, "report") == ["wrong_consensus"]  # a curve of the training report


def test_titles_of_lists_and_tables():
    from debate_rl.inspector.plain import listing
    from debate_rl.inspector.terminal import debates, runs

    templates = HOME / "debate_rl/inspector/web/templates"
    pages = "".join((templates / name).read_text() for name in ("steps.html", "_list.html"))
    titles = {
        *(column.name for column in (*debates.COLUMNS, *runs.STEP_COLUMNS) if column.name),
        *(*listing.HEADINGS, *listing.COLUMNS),
        *re.findall(r"<th[^>]*>([^<{]+)</th>", pages),
    }
    known = {words_of(name.replace("<r>", "0")) for name in names_at(*PLACES)} | nouns()
    known |= {words_of(short) for short in SHORT}
    assert sorted(title for title in titles if words_of(title) not in known) == []


def test_labels_of_figures_have_the_words_of_their_names():
    from debate_rl.formatting import title
    from debate_rl.reports.training import charts, files, phases
    from debate_rl.tracking import progress

    lines = ((name, spec.label(name)) for spec in charts.SPECS for name in spec.figures)
    names = (*files.HELD_OUT, *phases.FIGURES, *progress.HEADLINES, *progress.HELD_OUT)
    for name, label in (*lines, *((name, title(name)) for name in names)):
        other = set(words_of(label.replace("{}", "0"))) - set(words_of(name)) - QUALIFIERS
        assert not other, (name, label)


OLD = (
    r"\bcorrect/(n|round|all)|winner/correct|correct[._](first|last)\b|winner_right|\bjudging:|"
    r"truth/\{?correct|answers/missing|format/(failed|fined)|votes/(tie|own)\b|judge/decidable(_due)?`|"
    r"direct/sample\b|debate/(round_|winner(?![_/]))|(?<!\.)\bjudge:[<>=0-9]|\bcorrect:[<>=0-9]|"
    r"count(ed|s)? from 1\b|\bfine[ds]?\b|cut off (at|by) (the|its|their)\b|first[- ]round accuracy"
)
"""Names and ways to count that were, so that none comes back."""


@pytest.mark.parametrize("path", [*sorted(DOCS.glob("*.md")), HOME / "README.md"], ids=lambda path: path.name)
def test_documents_use_no_old_name(path):
    text = path.read_text(encoding="utf-8")
    assert [match[0] for match in re.finditer(OLD, text)] == []
