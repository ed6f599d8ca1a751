"""Gains by the base model's pass rate, from numbers by hand and where nothing was learnt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.metrics.held_out import DIRECT, HeldOut
from debate_rl.reports.training import splits, strata


def held_out(step, **counts):
    """An evaluation with so many of so many samples right of each problem."""
    return HeldOut(step, dict.fromkeys(counts, "same"), {DIRECT: counts})


def test_halves_of_four_samples_of_which_two_are_right():
    """The problem is in stratum 0 in 1 of 6 splits, in "to .5" in 4, in 1 in 1; the other half mirrors it."""
    found = strata(held_out(0, p=(2, 4)), held_out(9, p=(3, 4)))
    shown = [(one.name, one.problems, one.before, one.after, one.gain.value) for one in found]
    expected = [("0", 1 / 6, 1, 0.75, -0.25), ("to .5", 4 / 6, 0.5, 0.75, 0.25), ("1", 1 / 6, 0, 0.75, 0.75)]
    for row, wanted in zip(shown, expected, strict=True):
        assert (row[0], row[1:]) == (wanted[0], pytest.approx(wanted[1:]))


def test_problems_that_are_never_and_always_solved_are_at_the_ends():
    found = strata(held_out(0, a=(0, 8), b=(0, 8), c=(8, 8)), held_out(9, a=(4, 8), b=(0, 8), c=(7, 8)))
    assert [(one.name, one.problems, one.before, one.after) for one in found] == [
        ("0", pytest.approx(2), 0.0, 0.25),
        ("1", pytest.approx(1), 1.0, 0.875),
    ]
    # the gains of a and b are 1/2 and 0: mean 1/4, SE 1/4, t(1) = 12.706
    assert found[0].gain.high == pytest.approx(0.25 + 12.7062 * 0.25, rel=1e-4)


def test_a_problem_counts_where_it_is_the_same_and_has_samples_to_split():
    first, last = held_out(0, a=(0, 1), b=(1, 2), c=(1, 2)), held_out(9, a=(1, 1), b=(2, 2))
    assert sum(one.problems for one in strata(first, last)) == pytest.approx(1)
    assert strata(held_out(0, a=(0, 1)), held_out(9, a=(1, 1))) == []
    other = HeldOut(9, {"b": "another"}, {DIRECT: {"b": (2, 2)}})
    assert strata(first, other) == []
    assert strata(HeldOut(0, {"b": "same"}, {DIRECT: {"b": (0.5, 2)}}), last) == []  # no count of right ones


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_chances_of_splits_sum_to_one_and_keep_the_rate(counts):
    right, count = counts
    found = splits(right, count)
    half = count // 2
    assert sum(weight for weight, _, _ in found) == pytest.approx(1)
    assert sum(weight * one for weight, one, _ in found) == pytest.approx(right / count)
    for _, one, other in found:
        assert one * half + other * (count - half) == pytest.approx(right)


def test_where_nothing_was_learnt_no_stratum_gains_though_strata_of_the_same_samples_do():
    rng = np.random.default_rng(5)
    chance = rng.beta(0.7, 0.7, 3000)
    before, after = (rng.binomial(8, chance) for _ in range(2))
    rights = ({f"p{n}": (int(right), 8) for n, right in enumerate(each)} for each in (before, after))
    found = strata(*(held_out(step, **right) for step, right in zip((0, 9), rights, strict=True)))
    assert [one.name for one in found] == ["0", "to .25", "to .5", "to .75", "1"]
    assert all(abs(one.gain.value) < 0.03 for one in found)
    assert sum(one.gain.low <= 0 <= one.gain.high for one in found) >= 4
    naive = ((after - before) / 8)[before == 0].mean(), ((after - before) / 8)[before == 8].mean()
    assert naive[0] > 0.04
    assert naive[1] < -0.04
