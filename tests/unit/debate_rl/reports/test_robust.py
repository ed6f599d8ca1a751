"""Cluster-robust estimates against the scalar code, against definitions, and against dense formulas."""

from __future__ import annotations

from dataclasses import astuple
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import clustered_mean
from debate_rl.reports.estimators import NotEstimable, correlation, logistic, slope


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("signed", [False, True])
def test_the_mean_is_that_of_the_scalar_code(seed, signed):
    rng = np.random.default_rng(seed)
    values, clusters = rng.integers(0, 2, 60).astype(float), rng.integers(0, 9, 60)
    found = intervals.mean(values, clusters, signed=signed)
    wanted = clustered_mean(values.tolist(), clusters.tolist(), signed=signed)
    assert (found.p is None) == (not signed)
    assert astuple(found)[:5] == pytest.approx(astuple(wanted)[:5], rel=1e-9)
    assert found.p == pytest.approx(wanted.p, rel=1e-9) if signed else wanted.p is None


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_all_are_alike_the_interval_is_that_of_the_problems(value):
    found = intervals.mean([value] * 8, np.arange(8) // 2)
    assert found == clustered_mean([value] * 8, (np.arange(8) // 2).tolist())
    assert found.low < found.high


def test_a_line_without_spread_has_no_interval():
    found = slope([0, 1, 2], [0, 1, 2], np.arange(3))
    assert (found.value, found.low, found.high) == (1.0, -inf, inf)


def test_one_problem_tells_nothing_of_others():
    found = intervals.mean([1.0, 0.0], np.array([4, 4]))
    assert (found.value, found.low, found.high) == (0.5, -inf, inf)
    assert intervals.mean([], np.array([], dtype=int)) is None


def test_a_ratio_leaves_out_rows_that_do_not_count():
    found = intervals.ratio([1, 0, 2], [2, 0, 3], np.array([0, 1, 2]))
    assert (found.value, found.n, found.clusters) == (3 / 5, 5, 2)
    # by hand: residuals 1 - .6 * 2 = -.2 and 2 - .6 * 3 = .2, so SE = sqrt(2 (.04 + .04)) / 5
    error = sqrt(2 * 0.08) / 5
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 1) * error)


def test_a_difference_with_a_problem_each_is_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=30)
    found = intervals.difference(np.concatenate([a, b]), np.arange(70) < 40, np.arange(70))
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval(0.95)))
    assert found.p == pytest.approx(welch.pvalue)
    assert intervals.difference([1.0], [True], np.array([0])) is None


def test_a_difference_within_problems_is_the_paired_t():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=12), rng.normal(size=12)
    found = intervals.difference(np.concatenate([a, b]), np.arange(24) < 12, np.arange(24) % 12)
    paired = stats.ttest_rel(a, b)
    assert (found.low, found.high) == pytest.approx(tuple(paired.confidence_interval(0.95)))
    assert found.p == pytest.approx(paired.pvalue)


def test_a_side_with_one_problem_gives_a_difference_no_interval():
    values = np.concatenate([[0.0, 0.0, 1.0], np.tile([0.0, 1.0], 168)])
    found = intervals.difference(values, np.arange(339) < 3, np.concatenate([[0, 0, 0], np.arange(1, 337)]))
    assert found.value == pytest.approx(1 / 3 - 1 / 2)
    assert (found.low, found.high, found.p) == (-inf, inf, 1.0)


@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_a_side_without_spread_is_as_unsure_as_its_mean(alike):
    """Eight values that are alike, a problem each, against 100 of which half are right."""
    values, first = np.concatenate([[alike] * 8, np.tile([0.0, 1.0], 50)]), np.arange(108) < 8
    found = intervals.difference(values, first, np.arange(108))
    one = intervals.mean([alike] * 8, np.arange(8))
    other = intervals.mean(np.tile([0.0, 1.0], 50), np.arange(100))
    below, above = (one.value - one.low, other.high - 0.5), (one.high - one.value, 0.5 - other.low)
    assert found.value == alike - 0.5
    assert found.low == pytest.approx(found.value - np.hypot(*below))
    assert found.high == pytest.approx(found.value + np.hypot(*above))
    assert (found.low <= 0 <= found.high) == (found.p > 0.05)
    both = intervals.difference([1.0, 1.0, 0.0, 0.0], [True, True, False, False], np.arange(4))
    tokens = intervals.difference([7.0, 7.0, 9.0, 9.0], [True, True, False, False], np.arange(4))
    assert (tokens.value, tokens.low, tokens.high) == (-2.0, -inf, inf)  # no rates: no spread is known
    low = 0.025 ** (1 / 2)
    assert (both.low, both.high) == pytest.approx((1 - (1 - low) * 2**0.5, 1.0))
    assert both.p == pytest.approx(stats.fisher_exact([[2, 0], [0, 2]]).pvalue)
    for up, down in ((4, 3), (4, 4), (2, 5), (3, 3)):
        more = intervals.difference(
            [1.0] * up + [0.0] * down, np.arange(up + down) < up, np.arange(up + down)
        )
        assert more.p >= stats.fisher_exact([[up, 0], [0, down]]).pvalue - 1e-9
        assert (more.low <= 0 <= more.high) == (more.p > 0.05)


@pytest.mark.parametrize(
    ("few", "many", "rates"), [(3, 60, (0.95, 0.6)), (10, 60, (0.5, 0.5)), (40, 40, (0.9, 0.7))]
)
def test_intervals_of_differences_hold_what_is_true_as_often_as_they_say(few, many, rates):
    """400 draws of binary values, three for each problem, whose problems differ; 95% are meant."""
    rng = np.random.default_rng(few)
    held = 0
    for _ in range(400):
        problems = [rng.beta(4 * rate, 4 * (1 - rate), n) for rate, n in zip(rates, (few, many), strict=True)]
        chance = np.concatenate([np.repeat(side, 3) for side in problems])
        values = (rng.random(len(chance)) < chance).astype(float)
        found = intervals.difference(values, np.arange(len(chance)) < 3 * few, np.arange(len(chance)) // 3)
        held += found.low <= rates[0] - rates[1] <= found.high
    assert held >= 0.91 * 400


def test_a_slope_is_that_of_least_squares_with_its_sandwich():
    rng = np.random.default_rng(1)
    x, clusters = rng.normal(size=50), np.arange(50) // 5
    y = 2 * x + rng.normal(size=50)
    design = np.stack([np.ones(50), x], axis=1)
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ y
    scores = design * (y - design @ beta)[:, None]
    meat = sum(np.outer(s, s) for s in (scores[clusters == c].sum(axis=0) for c in range(10)))
    error = sqrt((bread @ meat @ bread)[1, 1] * 10 / 9)
    found = slope(x, y, clusters)
    assert found.value == pytest.approx(beta[1])
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 9) * error)
    assert slope([3, 3], [0, 1], np.array([0, 1])) is None


def test_a_correlation_is_pearsons_and_its_error_that_of_a_jackknife():
    rng = np.random.default_rng(2)
    x = rng.normal(size=400)
    y = 0.5 * x + rng.normal(size=400)
    sums = np.stack([np.ones(400), x, y, x * x, y * y, x * y])
    clusters = np.arange(400) // 4
    found = correlation(sums, clusters)
    assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    left_out = [np.corrcoef(x[clusters != c], y[clusters != c])[0, 1] for c in range(100)]
    error = sqrt(99 / 100 * sum((r - np.mean(left_out)) ** 2 for r in left_out))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 99) * error, rel=0.05)
    assert correlation(np.ones((6, 3)), np.arange(3)) is None


def test_a_regression_on_two_groups_is_their_log_odds():
    y = np.array([1] * 30 + [0] * 10 + [1] * 15 + [0] * 45)
    x = np.array([1] * 40 + [0] * 60)
    place, effect = logistic([np.ones(100), x], y, np.arange(100))
    assert place.value == pytest.approx(log(15 / 45))
    assert effect.value == pytest.approx(log(30 / 10) - log(15 / 45))
    # each row its own cluster: the robust variance of a log-odds is 1 / a + 1 / b
    reach = stats.t.ppf(0.975, 99) * sqrt(100 / 99)
    assert place.high - place.value == pytest.approx(reach * sqrt(1 / 15 + 1 / 45))
    assert effect.high - effect.value == pytest.approx(reach * sqrt(1 / 15 + 1 / 45 + 1 / 30 + 1 / 10))


def test_many_rows_are_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    columns, clusters = [np.ones(500), rng.normal(size=500)], rng.integers(0, 50, 500)
    y = rng.random(500) < 0.6
    whole = logistic(columns, y, clusters)
    monkeypatch.setattr("debate_rl.reports.estimators.BLOCK", 64)
    parts = logistic(columns, y, clusters)
    assert [e.low for e in parts] == pytest.approx([e.low for e in whole])


X = np.tile([-1.0, 1.0], 20)


@pytest.mark.parametrize(
    ("columns", "y", "message"),
    [
        ([np.ones(40), X], X > 0, "separated"),
        ([np.ones(40), X], np.where(X > 0, 1, np.arange(40) % 4 == 0), "separated"),  # on one side alone
        ([np.ones(40), X, -X], np.arange(40) % 4 < 2, "a combination of others"),
        ([np.ones(40)], np.ones(40), "the same outcome"),
        ([np.ones(0)], np.ones(0), "0 problems are too few"),
    ],
)
def test_what_the_votes_do_not_decide_is_said(columns, y, message):
    with pytest.raises(NotEstimable, match=message):
        logistic(columns, y, np.arange(len(y)))


def test_statsmodels_says_the_same():
    """Numbers of statsmodels 0.15.0: GLM, Binomial, cov_type="cluster", use_correction=False."""
    row = np.arange(120)
    x, clusters = (row * 7 % 23) / 11 - 1, row // 6
    y = (row * 11 % 17) / 17 < 1 / (1 + np.exp(-x))
    found = logistic([np.ones(120), x], y, clusters)
    reach = stats.t.ppf(0.975, 19) * sqrt(20 / 19)
    assert [e.value for e in found] == pytest.approx([0.0773151126579696, 0.9054435358708239], rel=1e-9)
    errors = [(e.high - e.value) / reach for e in found]
    assert errors == pytest.approx([0.15666918256142598, 0.2843172048525607], rel=1e-9)


def separated(design, y):
    """Whether some b has b x >= 0 for every row on its own side, and > 0 for one: a linear program."""
    sides = np.where(y, 1, -1)[:, None] * design
    best = linprog(-sides.sum(0), A_ub=-sides, b_ub=np.zeros(len(y)), bounds=[(-1, 1)] * design.shape[1])
    return -best.fun > 1e-7


def test_no_estimate_is_missed_and_none_made_of_separated_votes():
    rng, found = np.random.default_rng(6), []
    for _ in range(150):
        rows, width = rng.integers(15, 60), rng.integers(2, 5)
        design = np.column_stack(
            [np.ones(rows), rng.normal(size=(rows, width - 1)) * rng.choice([0.1, 1, 5])]
        )
        odds = design @ rng.normal(size=width) * rng.choice([0.5, 3, 8])
        y = rng.random(rows) < 1 / (1 + np.exp(-odds))
        try:
            logistic(list(design.T), y, np.arange(rows))
            found.append((separated(design, y), False))
        except NotEstimable:
            found.append((separated(design, y), True))
    assert all(wanted == refused for wanted, refused in found)
    assert 20 < sum(refused for _, refused in found) < 130
