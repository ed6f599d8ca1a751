"""Problems of reasoning-gym are generated and scored in the sandbox, whatever an answer does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from envs import DataError, EnvironmentSpecError, GradeStatus, load_environment
from envs.registry import environment_of, grade_by_itself
from envs.sandbox import SandboxRefused

pytest.importorskip("reasoning_gym")
TASKS = ["chain_sum", "countdown", "ransom_note"]


@pytest.fixture(scope="module")
def gym():
    try:
        return load_environment("reasoning_gym", subjects=TASKS)
    except SandboxRefused as refused:
        pytest.skip(str(refused))


@pytest.fixture(scope="module")
def problems(gym):
    return gym.problems(split="train", limit=9, seed=3)


def test_tasks_take_turns_and_a_smaller_limit_is_a_prefix(gym, problems):
    assert [one.level for one in problems] == TASKS * 3
    assert gym.problems(split="train", limit=4, seed=3) == problems[:4]
    assert len({one.question for one in problems}) == 9


@pytest.mark.slow
def test_splits_share_no_question(gym):
    drawn = {split: gym.problems(split=split, limit=24, seed=3) for split in ("train", "validation", "test")}
    questions = [{one.question for one in of} for of in drawn.values()]
    assert len(set().union(*questions)) == 3 * 24


@pytest.mark.slow
def test_another_process_with_other_hashes_generates_the_same(problems):
    code = (
        "from envs import load_environment\n"
        f"e = load_environment('reasoning_gym', subjects={TASKS})\n"
        "print([(p.id, p.question, p.answer) for p in e.problems(split='train', limit=9, seed=3)])"
    )
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert eval(there.stdout) == [(one.id, one.question, one.answer) for one in problems]


def test_gold_answers_are_right_and_others_are_not(gym, problems):
    for problem in problems:
        assert gym.grade(problem, problem.answer).score == 1.0
        assert gym.grade(problem, "zebra").status == GradeStatus.WRONG
    sum_, countdown, _ = problems[:3]
    assert 0 < gym.grade(sum_, f"It is {sum_.answer}").score < 1
    assert gym.grade(countdown, f"({countdown.answer}) + 0").status == GradeStatus.WRONG
    assert gym.grade(sum_, None).status == GradeStatus.MISSING


def test_a_stored_problem_grades_by_itself(problems):
    assert grade_by_itself(problems[0], rf"So \boxed{{{problems[0].answer}}}.", mode="boxed").verdict is True
    of_another_version = replace(problems[0], question="?")
    grade = environment_of(of_another_version).grade(of_another_version, problems[0].answer)
    assert (grade.status, grade.verdict) == (GradeStatus.CRASH, None)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("9**9**9**9**9", marks=pytest.mark.slow),  # ended after seconds
        "__import__('os')._exit(0)",
        "__import__('os').kill(__import__('os').getppid(), 9)",
        "print('1.0')",
        "(" * 5000,
        "\ud800",
        "'''\n\"\"\"\\",
    ],
)
def test_no_answer_escapes_the_scorer(gym, problems, answer):
    countdown = problems[1]
    assert gym.grade(countdown, answer).status == GradeStatus.WRONG
    assert gym.grade(countdown, countdown.answer).status == GradeStatus.CORRECT


def test_levels_are_those_of_the_curriculum(gym):
    easy, hard = (
        load_environment("reasoning_gym", subjects=["chain_sum"], levels=[level]) for level in (0, 4)
    )
    (short,), (long,) = (one.problems(split="test", limit=1, seed=0) for one in (easy, hard))
    assert (short.level, long.level) == ("chain_sum/0", "chain_sum/4")
    assert len(short.question) < len(long.question)
    assert gym.grade(long, long.answer).verdict is True


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "env.subjects"),
        ({"subjects": ["chain_sums"]}, "chain_sum"),
        ({"subjects": ["chain_sum"], "levels": [99]}, "env.levels: chain_sum has levels 0 to"),
        ({"subjects": ["chain_sum"], "levels": ["hard"]}, "'hard'"),
        ({"subjects": ["chain_sum"], "path": "x"}, "path"),
    ],
)
def test_a_wrong_choice_is_named(gym, options, named):
    with pytest.raises(EnvironmentSpecError, match=named):
        load_environment("reasoning_gym", **options)


def test_a_limit_and_a_known_split_are_needed(gym):
    with pytest.raises(DataError, match=r"env\.limit"):
        gym.problems(split="train")
    with pytest.raises(DataError, match="'dev'"):
        gym.problems(split="dev", limit=1)
