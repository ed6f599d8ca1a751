from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import binom, binomtest, t

from benchmarks.report import over_seeds, over_seeds_and_problems, repeats
from debate_rl.metrics.intervals import Estimate, clustered_mean, crossed_mean, holm, mean, wilson

T_2 = 4.302652729911275  # 0.975 quantile of Student's t with 2 degrees of freedom


def test_clustered_standard_error_by_hand():
    values = [1, 1, 1, 1, 0, 0, 1, 0]
    clusters = ["a", "c", "b", "c", "b", "c", "a", "c"]
    # mean 5/8; residual sums: a (1, 1) 3/4; b (1, 0) -1/4; c (1, 1, 0, 0) -1/2; squares 14/16
    error = sqrt(3 / 2 * (9 + 1 + 4) / 16) / 8
    found = clustered_mean(values, clusters)
    ends = (0.625, 0.625 - T_2 * error, 0.625 + T_2 * error)
    assert found == Estimate(*map(pytest.approx, ends), n=8, clusters=3)


def test_one_value_a_cluster_is_the_plain_standard_error():
    found = clustered_mean([0.0, 1.0, 2.0], "abc")
    assert found.high - found.value == pytest.approx(T_2 * 1 / sqrt(3))  # sample deviation 1


def test_repeating_every_value_in_its_cluster_adds_no_certainty():
    once = clustered_mean([1, 0, 0, 1, 1], "abcde")
    thrice = clustered_mean([1, 0, 0, 1, 1] * 3, "abcde" * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert thrice.n == 15


@pytest.mark.parametrize(("rate", "n"), [(1.0, 10), (0.0, 4)])
def test_rates_without_spread_have_the_exact_interval_of_the_clusters(rate, n):
    found = clustered_mean([rate] * 2 * n, list(range(n)) * 2)
    exact = binomtest(round(rate * n), n).proportion_ci(method="exact")  # Clopper and Pearson's
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_spread_that_cancels_within_every_cluster_is_none():
    found = clustered_mean([1, 0, 1, 0], "aabb")
    share = sqrt(0.025)  # of all clusters half right; the others are all wrong, or all right
    assert (found.low, found.high) == pytest.approx((share / 2, 1 - share / 2))


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.0, -0.308, 0.308), (1.0, 0.383, 1.0), (-1.0, -1.0, -0.383)]
)
def test_differences_without_spread_may_go_either_way(value, low, high):
    found = clustered_mean([value] * 10, range(10), signed=True)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-3)
    assert found.p == pytest.approx(2 * 0.5**10 if value else 1.0)  # the sign test's
    assert (found.low <= 0 <= found.high) == (found.p > 0.05)


def test_values_of_no_known_range_without_spread_have_no_interval():
    found = clustered_mean([7.0, 7.0], "ab", signed=True)
    assert (found.value, found.low, found.high, found.p) == (7.0, -inf, inf, 1.0)


@pytest.mark.parametrize("problems", [3, 5, 10, 30])
@pytest.mark.parametrize("up", [0.5, 0.7, 0.85, 0.97])
def test_intervals_of_gains_hold_the_truth_where_a_problem_gains_or_loses_all(problems, up):
    """Gains of +1 and -1: the coverage is a sum over how many gain, each as likely as the binomial says."""
    held = 0.0
    for gained in range(problems + 1):
        found = mean([1.0] * gained + [-1.0] * (problems - gained), np.arange(problems), signed=True)
        held += float(binom.pmf(gained, problems, up)) * (found.low <= 2 * up - 1 <= found.high)
    assert held >= 0.94


def test_many_looks_are_accounted_for_as_holm_says():
    assert holm([]) == []
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])  # 3 x .01, 2 x .02, and not below it
    assert holm([0.9, 0.001]) == pytest.approx([0.9, 0.002])


def test_one_cluster_knows_nothing_and_no_value_is_refused():
    found = clustered_mean([1, 0], "aa")
    assert (found.value, found.low, found.high) == (0.5, -inf, inf)
    with pytest.raises(ValueError, match="no values"):
        clustered_mean([], [])


def test_wilson_by_hand():
    # 8 of 10: centre (0.8 + z²/20) / (1 + z²/10), reach z sqrt(.016 + z²/400) / (1 + z²/10)
    assert wilson(0.8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)


@pytest.mark.parametrize("n", [1, 7, 246, 1000])
def test_wilson_reaches_the_ends_exactly(n):
    assert wilson(0.0, n)[0] == 0.0
    assert wilson(1.0, n)[1] == 1.0


def runs(*tables):
    """One value for each problem of each run."""
    return [{problem: (value, 1.0) for problem, value in table.items()} for table in tables]


def test_an_interval_over_runs_has_the_variance_of_problems_that_they_share():
    """Effects of three runs -.15, 0, .15, of three problems -.15, -.15, .3, and no others: variance .0225 / 3
    of the runs and .0675 / 3 of the problems, .03^2 / (.0075^2 / 2 + .0225^2 / 2) = 3.2 degrees of freedom.
    """
    shared = [{p: m + of for p, of in (("a", -0.15), ("b", -0.15), ("c", 0.3))} for m in (0.05, 0.2, 0.35)]
    found = crossed_mean(runs(*shared), signed=True)
    reach = float(t.ppf(0.975, 3.2)) * sqrt(0.03)
    assert (found.value, found.clusters) == (pytest.approx(0.2), 3)
    assert found.high - found.value == pytest.approx(reach)
    student = T_2 * sqrt(0.0075)
    assert reach > student
    assert found.p == pytest.approx(2 * float(t.sf(0.2 / sqrt(0.03), 3.2)))
    # the same values on problems that no other run has: Student's over the runs
    own = [{(number, p): value for p, value in run.items()} for number, run in enumerate(shared)]
    assert crossed_mean(runs(*own), signed=True).high == pytest.approx(0.2 + student)


def test_runs_that_agree_are_as_unsure_as_their_problems_are():
    """Two runs of mean .5 that share problem b: the sums of their deviations are .25, 0 and -.25, so that the
    variance is 3/2 (.0625 + .0625) / 4 with two degrees of freedom, and not the 0 of the runs' means.
    """
    found = crossed_mean(runs({"a": 1, "b": 0}, {"b": 1, "c": 0}))
    assert found.high - found.value == pytest.approx(T_2 * sqrt(3 / 64))


def test_an_interval_over_runs_is_no_narrower_than_that_of_the_runs_alone():
    """Two runs that lie .01 apart have one degree of freedom, however many problems they share."""
    found = crossed_mean(runs(*({n: n % 2 * 0.5 + of for n in range(100)} for of in (0.0, 0.01))))
    both = sqrt(0.01**2 / 4 + 0.25**2 * 100 / 99 / 100)
    assert found.high - found.value == pytest.approx(12.7062047 * 0.005)
    assert found.high - found.value > 2 * both


def test_runs_without_any_spread_have_the_interval_of_values_that_are_alike():
    found = crossed_mean(runs(*[{"a": 0, "b": 0, "c": 0}] * 3), signed=True)
    assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 3) - 1, 1 - 0.025 ** (1 / 3)))
    lead = crossed_mean(runs(*[{"a": 2, "b": 2, "c": 2}] * 3), signed=True, most=2)
    assert lead.low == pytest.approx(2 * (2 * 0.025 ** (1 / 3) - 1))
    assert crossed_mean([]) is crossed_mean([{}]) is None


def test_a_benchmark_counts_seeds_and_says_how_far_rounding_moves_its_runs():
    """Seeds of .2 and .4 are two values; their repeats differ by .1 and .3: variances .005 and .045."""
    values = dict(zip(repeats([7, 9], 2), (0.15, 0.25, 0.25, 0.55), strict=True))
    mean, spread = over_seeds("gain", values, signed=True)
    assert (mean.value, mean.n) == (pytest.approx(0.3), 2)
    assert mean.high - mean.value == pytest.approx(12.7062047 * 0.1)
    assert (spread.name, spread.value) == ("gain, sd of jitters", pytest.approx(sqrt(0.025)))
    by_problem = {repeat: {"a": value - 0.1, "b": value + 0.1} for repeat, value in values.items()}
    found, again = over_seeds_and_problems("gain", by_problem, signed=True)
    assert (found.low, found.high) == pytest.approx((mean.low, mean.high))
    assert again.value == pytest.approx(spread.value)
    assert len([*over_seeds("gain", {(7, 0): 0.1, (9, 0): 0.2})]) == 1
