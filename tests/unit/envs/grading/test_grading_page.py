"""Every row of docs/grading.md and of the tables in tests/data is what the grader does."""

import json
import re
from pathlib import Path

import pytest

from envs import Grader
from envs.answers.words import letter_of
from envs.instructions.constraints import TYPES, write_constraints
from envs.instructions.ifeval import DETECTED
from envs.types import MODES

HOME = Path(__file__).parents[4]
PAGE = (HOME / "docs/grading.md").read_text(encoding="utf-8")
CELL = re.compile(r"\| (.+?) (?=\|)")


def read_table(name: str) -> list[list[str]]:
    """Return the rows of a file of tests/data: lines with tabs."""
    lines = (HOME / "tests/data" / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if "\t" in line]


ROWS = read_table("grading.tsv") + [[c.strip("`") for c in CELL.findall(line)] for line in PAGE.splitlines()]
INSTRUCTIONS = read_table("instructions.tsv")


def graded_rows(columns: int) -> list[list[str]]:
    return [row for row in ROWS if len(row) == columns and row[-1] in ("correct", "wrong", "missing")]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(("answer", "gold", "grade"), graded_rows(3))
def test_answers(grader, answer, gold, grade):
    assert grader.same_answer(answer, gold).status == grade


@pytest.mark.parametrize(("reply", "gold", "mode", "grade"), graded_rows(4))
def test_replies(grader, reply, gold, mode, grade):
    assert grader.grade(reply.replace("⏎", "\n"), gold, mode=mode).status == grade


@pytest.mark.parametrize(("kind", "answer", "accepted", "why", "grade"), graded_rows(5))
def test_texts(grader, kind, answer, accepted, why, grade):
    assert grader.same_answer(answer, accepted.replace("; ", "\n"), kind=kind).status == grade


def test_there_are_rows_and_the_page_names_every_mode():
    assert [len(graded_rows(columns)) > n for columns, n in ((3, 240), (4, 70), (5, 20))] == [True] * 3
    assert [mode for mode in MODES if f"\n| `{mode}` |" not in PAGE] == []


@pytest.mark.parametrize(("id_", "arguments", "good", "bad"), INSTRUCTIONS)
def test_instructions(grader, id_, arguments, good, bad):
    if id_ in DETECTED:
        pytest.importorskip("py3langid")
    gold = write_constraints([id_], [json.loads(arguments)])
    for response, status in ((good, "correct"), (bad, "wrong")):
        text = response.replace("\\n", "\n").replace("\\t", "\t")
        assert grader.same_answer(text, gold, kind="instructions").status == status


def test_every_instruction_has_a_row_and_is_on_the_page():
    assert [row[0] for row in INSTRUCTIONS] == list(TYPES)
    page = (HOME / "docs/instructions.md").read_text(encoding="utf-8").partition("## IFEval")[2]
    listed = dict(re.findall(r"^\| `([\w:-]+)(?:\(([\w, ]*)\))?` \|", page, re.MULTILINE))
    assert listed == {id_: ", ".join(kind.readers) for id_, kind in TYPES.items()}


def test_choices(grader):
    options = ("10 cm", "12 cm", "14 cm", "16 cm")
    for reply in (r"\boxed{B}", "The answer is (B).", "I pick B.", r"\boxed{12 cm}", r"\boxed{B) 12 cm}"):
        assert grader.grade(reply, "B", choices=options).status == "correct"
    for reply in (r"\boxed{C}", "The answer is E.", r"\boxed{18 cm}", r"\boxed{B or C}"):
        assert grader.grade(reply, "B", choices=options).status == "wrong"
    assert grader.grade("Because it Depends", "B", choices=options).status == "missing"


CHOICES = [row for row in ROWS if len(row) == 2 and row[1] in ("A", "B", "C", "D", "none")]


@pytest.mark.parametrize(("answer", "means"), CHOICES)
def test_what_a_choice_means(answer, means):
    options = ("magnet", "thermometer", "ruler", "balance")
    assert (letter_of(answer, options) or "none") == means
    assert len(CHOICES) >= 14


def test_first_letter_is_as_naive_as_its_name(grader):
    options = ("1", "2", "3", "4")
    assert grader.grade("Answer: B", "B", mode="first_letter", choices=options).status == "wrong"
    assert grader.grade("Answer: B", "A", mode="first_letter", choices=options).status == "correct"
    assert grader.grade("it is B", "B", mode="first_letter", choices=options).status == "correct"
    assert grader.grade("none", "B", mode="first_letter", choices=options).status == "missing"
