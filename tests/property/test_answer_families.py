"""Of the generated answers of each family no different one is accepted, and no equal one is refused."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from answer_families_replies import REPLIES
from answer_forms import cases
from answers_by_hand import BY_HAND
from grading_families import ANSWERS, is_accepted

from envs import Grader

N = 24


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize("family", [*ANSWERS, *REPLIES])
def test_equal_answers_are_accepted_and_no_others(grader, family):
    families = {**ANSWERS, **REPLIES}
    drawn = cases({family: families[family]}, n=N, seed=1, whole=family in REPLIES)
    verdicts = [(case.gold, case.answer, case.same, is_accepted(grader, case)) for case in drawn]
    assert [verdict for verdict in verdicts if verdict[2] != verdict[3]] == []
    assert {same for _, _, same, _ in verdicts} == {True, False}


def test_of_replies_written_by_hand_no_wrong_one_is_accepted_and_nine_in_ten_right_ones_are(grader):
    accepted = [case for case in BY_HAND if is_accepted(grader, case)]
    assert [case for case in accepted if not case.same] == []
    assert len(accepted) >= 0.9 * sum(case.same for case in BY_HAND)


def test_a_seed_draws_the_same_answers():
    first, second, other = (list(cases(ANSWERS, n=4, seed=seed)) for seed in (1, 1, 2))
    assert first == second != other
