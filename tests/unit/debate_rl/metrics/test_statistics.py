from math import inf, sqrt

import pytest

from debate_rl.statistics import Estimate, clustered_mean, wilson

T_2 = 4.302652729911275  # 0.975 quantile of Student's t with 2 degrees of freedom
Z = 1.959963984540054


def test_clustered_standard_error_by_hand():
    values = [1, 1, 1, 1, 0, 0, 1, 0]
    clusters = ["a", "c", "b", "c", "b", "c", "a", "c"]
    # mean 5/8; residual sums: a (1, 1) 3/4; b (1, 0) -1/4; c (1, 1, 0, 0) -1/2; squares 14/16
    error = sqrt(3 / 2 * (9 + 1 + 4) / 16) / 8
    found = clustered_mean(values, clusters)
    assert found == Estimate(
        pytest.approx(0.625),
        pytest.approx(0.625 - T_2 * error),
        pytest.approx(0.625 + T_2 * error),
        n=8,
        clusters=3,
    )


def test_one_value_a_cluster_is_the_plain_standard_error():
    found = clustered_mean([0.0, 1.0, 2.0], "abc")
    assert found.high - found.value == pytest.approx(T_2 * 1 / sqrt(3))  # sample deviation 1


def test_repeating_every_value_in_its_cluster_adds_no_certainty():
    once = clustered_mean([1, 0, 0, 1, 1], "abcde")
    thrice = clustered_mean([1, 0, 0, 1, 1] * 3, "abcde" * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert thrice.n == 15


@pytest.mark.parametrize(("rate", "n"), [(1.0, 10), (0.0, 4)])
def test_rates_without_spread_fall_back_on_wilson_over_the_clusters(rate, n):
    found = clustered_mean([rate] * 2 * n, list(range(n)) * 2)
    edge = Z**2 / (n + Z**2)  # Wilson's other end at 0 or n successes
    expected = (1 - edge, 1.0) if rate else (0.0, edge)
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.low, found.high) == pytest.approx(wilson(rate, n))


def test_spread_that_cancels_within_every_cluster_is_wilson_too():
    found = clustered_mean([1, 0, 1, 0], "aabb")
    assert (found.low, found.high) == pytest.approx(wilson(0.5, 2))


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.0, -0.278, 0.278), (1.0, 0.722, 1.0), (-1.0, -1.0, -0.722)]
)
def test_differences_without_spread_may_go_either_way(value, low, high):
    found = clustered_mean([value] * 10, range(10), signed=True)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-4)


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
