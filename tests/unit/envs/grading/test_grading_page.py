"""Every row of the tables in docs/grading.md is what the grader does."""

import json
import re
from pathlib import Path

import pytest

from envs import Grader
from envs.answers.choices import letter_of
from envs.instructions.constraints import TYPES, write_constraints
from envs.instructions.ifeval import DETECTED
from envs.types import MODES

PAGE = Path(__file__).parents[4] / "docs" / "grading.md"
INSTRUCTIONS = PAGE.with_name("instructions.md")
CELL = re.compile(r"\| (.+?) (?=\|)")


def table_rows(columns: int) -> list[list[str]]:
    """Return the cells of all rows that end with a grade and have so many columns."""
    rows = [CELL.findall(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    graded = [row for row in rows if len(row) == columns and row[-1] in ("correct", "wrong", "missing")]
    return [[cell[1:-1] if cell.startswith("`") else cell for cell in row] for row in graded]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(("answer", "gold", "grade"), table_rows(3))
def test_answers(grader, answer, gold, grade):
    assert grader.same_answer(answer, gold).status == grade


@pytest.mark.parametrize(("reply", "gold", "mode", "grade"), table_rows(4))
def test_replies(grader, reply, gold, mode, grade):
    assert grader.grade(reply.replace("⏎", "\n"), gold, mode=mode).status == grade


def test_the_page_has_rows_and_names_every_mode():
    assert len(table_rows(3)) >= 80
    assert len(table_rows(4)) >= 20
    text = PAGE.read_text(encoding="utf-8")
    assert [mode for mode in MODES if f"\n| `{mode}` |" not in text] == []


@pytest.mark.parametrize(("kind", "answer", "accepted", "why", "grade"), table_rows(5))
def test_texts(grader, kind, answer, accepted, why, grade):
    assert grader.same_answer(answer, accepted.replace("; ", "\n"), kind=kind).status == grade


def instruction_rows() -> list[list[str]]:
    """Return the cells of the rows that name an instruction: id, arguments, what counts, two responses."""
    rows = [CELL.findall(line) for line in INSTRUCTIONS.read_text(encoding="utf-8").splitlines()]
    named = [[cell.strip("`") for cell in row] for row in rows if row]
    return [row for row in named if len(row) == 5 and row[0] in TYPES]


@pytest.mark.parametrize(("id_", "arguments", "what", "good", "bad"), instruction_rows())
def test_instructions(grader, id_, arguments, what, good, bad):
    if id_ in DETECTED:
        pytest.importorskip("py3langid")
    gold = write_constraints([id_], [json.loads(arguments)])
    for response, status in ((good, "correct"), (bad, "wrong")):
        text = response.replace("\\n", "\n").replace("\\t", "\t")
        assert grader.same_answer(text, gold, kind="instructions").status == status


def test_the_page_has_every_instruction():
    assert [row[0] for row in instruction_rows()] == list(TYPES)
    assert len(table_rows(5)) >= 7


def test_choices(grader):
    options = ("10 cm", "12 cm", "14 cm", "16 cm")
    for reply in (r"\boxed{B}", "The answer is (B).", "I pick B.", r"\boxed{12 cm}", r"\boxed{B) 12 cm}"):
        assert grader.grade(reply, "B", choices=options).status == "correct"
    for reply in (r"\boxed{C}", "The answer is E.", r"\boxed{18 cm}", r"\boxed{B or C}"):
        assert grader.grade(reply, "B", choices=options).status == "wrong"
    assert grader.grade("Because it Depends", "B", choices=options).status == "missing"


def choice_rows() -> list[list[str]]:
    rows = [CELL.findall(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if len(row) == 2 and row[1] in ("A", "B", "C", "D", "none")]


@pytest.mark.parametrize(("answer", "means"), choice_rows())
def test_what_a_choice_means(answer, means):
    options = ("magnet", "thermometer", "ruler", "balance")
    assert (letter_of(answer[1:-1], options) or "none") == means
    assert len(choice_rows()) >= 14


def test_first_letter_is_as_naive_as_its_name(grader):
    options = ("1", "2", "3", "4")
    assert grader.grade("Answer: B", "B", mode="first_letter", choices=options).status == "wrong"
    assert grader.grade("Answer: B", "A", mode="first_letter", choices=options).status == "correct"
    assert grader.grade("it is B", "B", mode="first_letter", choices=options).status == "correct"
    assert grader.grade("none", "B", mode="first_letter", choices=options).status == "missing"
