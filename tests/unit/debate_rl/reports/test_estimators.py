"""Cluster-robust estimates against definitions, dense formulas, counts and simulations."""

from importlib import import_module
from math import inf, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from debate_rl.metrics import intervals
from debate_rl.reports import judgment_figures
from debate_rl.reports.estimators import NotEstimable, correlation, logistic, slope


def test_a_line_without_spread_has_no_interval():
    found = slope([0, 1, 2], [0, 1, 2], np.arange(3))
    assert (found.value, found.low, found.high) == (1.0, -inf, inf)


def test_a_ratio_leaves_out_rows_that_do_not_count():
    found = intervals.ratio([1, 0, 2], [2, 0, 3], np.array([0, 1, 2]))
    assert (found.value, found.n, found.clusters) == (3 / 5, 5, 2)
    # by hand: residuals 1 - .6 * 2 = -.2 and 2 - .6 * 3 = .2, so SE = sqrt(2 (.04 + .04)) / 5
    error = sqrt(2 * 0.08) / 5
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 1) * error)


@pytest.mark.parametrize("paired", [False, True])
def test_a_difference_is_welchs_with_a_problem_each_and_the_paired_t_within_problems(paired):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=40 if paired else 30)
    rows = np.arange(len(a) + len(b))
    found = intervals.difference(np.concatenate([a, b]), rows < 40, rows % 40 if paired else rows)
    wanted = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert (found.low, found.high) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    assert found.p == pytest.approx(wanted.pvalue)
    assert intervals.difference([1.0], [True], np.array([0])) is None


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
        more = intervals.difference([1.0] * up + [0] * down, np.arange(up + down) < up, np.arange(up + down))
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
        ([np.ones(40), X, -X], np.arange(40) % 4 < 2, "a linear combination of others"),
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


def votes_of(make_debate, cases):
    """Debates of one vote each: (judge, grades, how often the first shown won, and the second)."""
    number = 0
    for judge, grades, first, second in cases:
        sides = [agent for agent in range(3) if agent != judge]
        for place in range(first + second):
            vote = (judge, 1, *sides, "left" if place < first else "right")
            answers = [["4" if grade else "5"] for grade in grades]
            yield make_debate([vote], [[grade] for grade in grades], answers, problem=f"p{number}")
            number += 1


def regression(debates):
    found = [f for f in judgment_figures(debates) if f.name.startswith("regression/")]
    return {f.name.removeprefix("regression/"): f.estimate.value for f in found if f.estimate}


@pytest.mark.parametrize(
    ("cases", "other"),
    [
        ([(2, (True, False, False), 30, 10), (2, (False, True, False), 15, 25)], "correctness"),
        ([(1, (False,) * 3, 30, 10), (2, (False,) * 3, 15, 25)], "persona/Advocate"),  # personas sum to zero
    ],
)
def test_place_and_truth_or_persona(make_debate, cases, other):
    up, down = log(30 / 10), log(15 / 25)
    found = regression(votes_of(make_debate, cases))
    assert found == pytest.approx({"position": (up + down) / 2, other: (up - down) / 2})


def test_a_persona_whose_votes_all_went_one_way_is_left_out(make_debate):
    truth = [(1, (True, False, False), 30, 10), (1, (False, False, True), 15, 25)]
    cases = [*truth, (2, (False,) * 3, 20, 0)]
    found = {f.name: f for f in judgment_figures(votes_of(make_debate, cases))}
    persona = found["regression/persona/Advocate"]
    assert persona.estimate is None
    assert "not estimable: the votes are perfectly separated" in persona.why
    kept = found["regression/correctness"]
    assert (kept.flag, kept.why) == ("without personas", "")
    # the same as a fit of votes whose judges are one persona: 15 to 25, 30 to 10, and 20 to 0 of equal pairs
    alone = [(1, grades, first, second) for _, grades, first, second in cases]
    wanted = {f.name: f for f in judgment_figures(votes_of(make_debate, alone))}
    assert kept.estimate.value == pytest.approx(wanted["regression/correctness"].estimate.value)
    assert wanted["regression/correctness"].flag == ""


BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture
def calibration(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("judging_calibration")


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.05, 0.25])
@pytest.mark.parametrize(("accuracy", "problems"), [(0.6, 100), (0.7, 120), (0.8, 200)])
def test_intervals_cover(calibration, accuracy, problems, icc):
    setting = calibration.Setting(accuracy, icc=icc, problems=problems)
    found = calibration.coverage(setting, 2000, seed=round(100 * accuracy))
    for name in calibration.FIGURES:
        assert 0.93 <= found[name, "clustered"] <= 0.97, name
        assert found[name, "naive"] <= found[name, "clustered"] + 0.005, name
    if icc == 0.25:
        assert found["accuracy", "naive"] < 0.9


def test_a_few_replications_cover_about_as_often(calibration):
    found = calibration.coverage(calibration.Setting(icc=0.25, problems=100), 150, seed=1)
    for name in calibration.FIGURES:
        assert 0.9 <= found[name, "clustered"] <= 0.99, name
    assert found["accuracy", "naive"] < 0.9


def test_simulated_votes_are_as_said(calibration):
    setting = calibration.Setting(0.7, 0.05, icc=0.25, problems=40_000)
    votes = calibration.simulate(setting, np.random.default_rng(0))
    right = votes.won == (votes.better == 1)
    for better, share in ((1, 0.75), (-1, 0.65)):
        assert right[votes.better == better].mean() == pytest.approx(share, abs=0.01)
    assert votes.won[votes.better == 0].mean() == pytest.approx(0.55, abs=0.01)
    # the variance of a problem's sum of m votes on equal pairs is m p q (1 + (m - 1) icc)
    equal = votes.better == 0
    sizes = np.bincount(votes.problem[equal], minlength=40_000)
    sums = np.bincount(votes.problem[equal], weights=votes.won[equal] - 0.55, minlength=40_000)
    pairs = (sizes * (sizes - 1)).sum()
    within = (sums**2).sum() - ((votes.won[equal] - 0.55) ** 2).sum()
    assert within / pairs / (0.55 * 0.45) == pytest.approx(0.25, abs=0.02)
