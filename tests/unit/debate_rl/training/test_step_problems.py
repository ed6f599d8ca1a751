from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from debate import Problem
from debate_rl.training.step_problems import problems_from


def drawn(count, steps, size, seed=0):
    problems = [Problem(str(n), "?") for n in range(count)]
    return [p.id for step in range(steps) for p in problems_from(problems, step * size, size=size, seed=seed)]


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 3))
def test_every_problem_comes_once_an_epoch(count, size, seed):
    order = drawn(count, steps=2 * count, size=size, seed=seed)
    epochs = [order[i : i + count] for i in range(0, len(order) - count + 1, count)]
    assert all(Counter(epoch) == Counter(map(str, range(count))) for epoch in epochs)


def test_epochs_and_seeds_differ_and_repeat():
    first, second = drawn(20, 1, 40)[:20], drawn(20, 1, 40)[20:]
    assert first != second
    assert drawn(20, 1, 20, seed=1) != first
    assert drawn(20, 1, 20) == first


def test_a_step_depends_on_the_position_alone():
    problems = [Problem(str(n), "?") for n in range(7)]
    late = problems_from(problems, 15, size=3, seed=2)
    assert [p.id for p in late] == drawn(7, 6, 3, seed=2)[15:]
