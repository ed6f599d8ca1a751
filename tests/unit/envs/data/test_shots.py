"""Examples before a problem: read from rows, drawn by a seed, never the problem itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import Problem, Shot
from envs.data.shots import load_shots, with_shots
from envs.errors import DataError

POOL = [Shot(f"{n} + 1?", "Easy.", str(n + 1)) for n in range(6)]


@pytest.mark.parametrize(
    ("name", "row", "solution", "answer"),
    [
        ("gsm8k", {"question": "Six of 3?", "answer": "6 * 3 = <<6*3=18>>18.\n#### 18"}, "6 * 3 = 18.", "18"),
        ("math", {"problem": "1 + 1?", "solution": r"It is $\boxed{2}$."}, r"It is $\boxed{2}$.", "2"),
        ("file", {"question": "1 + 1?", "answer": "2"}, "2", "2"),
    ],
)
def test_the_solution_is_the_working_without_marks_or_else_the_answer(
    write_rows, name, row, solution, answer
):
    [shot] = load_shots(name, path=write_rows(row))
    assert shot == Shot(row.get("question", "1 + 1?"), solution, answer)


def test_a_family_without_a_file_has_no_examples():
    with pytest.raises(DataError, match="shots: pair_sum has no written solutions"):
        load_shots("pair_sum")


def test_fixed_examples_are_the_same_for_all_but_one_of_themselves():
    problems = [Problem(f"p{n}", f"{n} + 1?", str(n + 1)) for n in range(20)]
    drawn = [problem.shots for problem in with_shots(problems, POOL, 3, each=False, seed=1)]
    assert len(set(drawn[6:])) == 1
    for problem, shots in zip(problems, drawn, strict=True):
        assert problem.question not in {shot.question for shot in shots}


@given(st.integers(0, 5), st.integers(0, 99), st.booleans())
def test_they_depend_on_seed_and_problem_alone(count, seed, each):
    problems = [Problem(f"p{n}", f"{n} + 1?", str(n + 1)) for n in range(9)]
    once = with_shots(problems, POOL, count, each=each, seed=seed)
    again = with_shots(problems[::-1], POOL[::1], count, each=each, seed=seed)[::-1]
    assert once == again
    for problem in once if count else ():
        questions = [shot.question for shot in problem.shots]
        assert len(set(questions)) == count
        assert problem.question not in questions


def test_too_few_are_an_error():
    with pytest.raises(DataError, match=r"shots.count = 6: there are 5 examples for p"):
        with_shots([Problem("p", "2 +  1?", "3")], POOL, 6, each=False, seed=0)
