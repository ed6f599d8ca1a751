"""The real data sets load completely and their gold answers are themselves. Skips without the data folder."""

import json
import os
from pathlib import Path

import pytest

from envs import Grader, load_problems
from envs.data.decontamination import overlaps

DATA = os.environ.get("DEBATE_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="set DEBATE_TEST_DATA to the folder of the data files")

SETS = [
    ("gsm8k", "train", "gsm8k_train", 7473),
    ("gsm8k", "test", "gsm8k_test", 1319),
    pytest.param("math", "train", "math_train", 7500, marks=pytest.mark.slow),
    ("math500", "test", "math500", 500),
    ("aime24", "test", "aime24", 30),
    ("aime25", "test", "aime25", 30),
    ("aime22_24", "test", "aime22_24", 90),
    ("amc23", "test", "amc23", 40),
    ("olympiadbench", "test", "olympiadbench", 675),
    ("olympiadbench_numerical", "test", "olympiadbench", 572),
    ("minerva", "test", "minerva_math", 272),
    ("svamp", "test", "svamp_test", 1000),
    ("aqua", "test", "aqua_test", 254),
    ("mathqa", "test", "mathqa_test1k", 1000),
    ("mmlu", "all", "mmlu_math", 868),
    ("mmlu_math", "all", "mmlu_math", 868),
]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1) as grader:
        yield grader


def rows(name):
    with (Path(str(DATA)) / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(("name", "split", "file", "count"), SETS)
def test_loads_completely_and_every_gold_is_itself(name, split, file, count, grader):
    problems = load_problems(name, split=split, path=Path(str(DATA)) / f"{file}.jsonl")
    assert len(problems) == count
    for problem in problems:
        told = {"kind": problem.kind, "choices": problem.choices}
        assert grader.same_answer(problem.answer, problem.answer, **told).status == "correct", problem.id


@pytest.mark.slow
def test_golds_of_math_are_those_of_the_solutions():
    """The answer field has no rows of matrices left (math-6754), and one is scrambled (math-6811)."""
    problems = load_problems("math", path=Path(str(DATA)) / "math_train.jsonl")
    golds = {problem.id: str(problem.answer) for problem in problems}
    assert golds["math-6811"] == r"2007 + \frac\pi 2"
    assert golds["math-6754"] == r"\begin{pmatrix} 4 \\ -3 \end{pmatrix}"
    matrices = [gold for gold in golds.values() if r"\begin{pmatrix}" in gold]
    assert len(matrices) > 90
    assert all(r"\\" in gold for gold in matrices)


def test_golds_of_minerva_are_mathematics():
    problems = load_problems("minerva", split="test", path=Path(str(DATA)) / "minerva_math.jsonl")
    golds = {problem.id: str(problem.answer) for problem in problems}
    assert (golds["minerva-5"], golds["minerva-38"]) == (r"\arcsin(10/13)", "-1/3")
    assert "$" not in golds["minerva-72"]


@pytest.mark.slow
def test_overlaps_between_training_and_test_sets():
    """No question of GSM8K's test set and of MATH-500 is trained on as it is; runs of 13 words are shared."""
    counted = {}
    for train, test, kept in (("gsm8k", "gsm8k", "gsm8k_test"), ("math", "math500", "math500")):
        seen = load_problems(train, path=Path(str(DATA)) / f"{train}_train.jsonl")
        asked = load_problems(test, split="test", path=Path(str(DATA)) / f"{kept}.jsonl")
        kinds = [overlap.kind for overlap in overlaps(seen, asked)]
        counted[test] = (kinds.count("exact"), kinds.count("ngram"))
    assert counted == {"gsm8k": (0, 3), "math500": (0, 58)}


@pytest.mark.slow
def test_agreement_with_the_test_cases_of_other_projects_without_a_false_positive(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import grading

    rows = grading.rows_of(Path(str(DATA)), "graded_answers")
    with Grader(workers=1, limit_s=30.0) as grader:
        found = [
            (row["id"], grading.judged(row, grader).status == "correct", row["expected"]) for row in rows
        ]
    assert [number for number, right, expected in found if right and not expected] == []
    assert sum(right == expected for _, right, expected in found) >= 0.98 * len(rows)


@pytest.mark.parametrize(("file", "disagreements"), [("model_outputs_gsm8k", 0), ("model_outputs_math", 1)])
def test_real_outputs_agree_with_their_labels(file, disagreements, grader):
    differ = [
        r for r in rows(file) if (grader.grade(r["output"], r["gold"]).status == "correct") != r["expected"]
    ]
    assert len(differ) <= disagreements  # the one in MATH is labelled wrong for 10000 against 10{,}000


def test_hostile_answers_are_not_correct_and_not_slow(grader):
    grader.warm()
    for row in rows("hostile_answers"):
        grade = grader.grade(row["pred"], row["gold"])
        assert grade.status != "correct", row["name"]
        assert grade.seconds < 3.5, row["name"]
    assert not Path("/tmp/PWNED_mv2").exists()
