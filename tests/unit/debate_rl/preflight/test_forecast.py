"""The forecast sign of training without labels, from p_v and p_m with their intervals."""

import pytest

from debate_rl.metrics.intervals import Estimate
from debate_rl.preflight.votes import TESTED, RoundVotes, forecast_checks, sign_of
from rewards.config import RewardConfig


def rate(value, reach=0.05, clusters=60, p=None):
    return Estimate(value, value - reach, value + reach, 4 * clusters, clusters, p)


def of_round(votes, majority):
    """A round whose votes are as often right as the commoner answer of pairs, so that only p_m says more."""
    apart = rate(votes.value - majority.value, p=0.0)
    return RoundVotes(0, votes, votes, rate(0.0, p=1.0), None, majority, apart)


def forecast(votes, majority, problems=60, **rewards):
    checks = forecast_checks(problems, [of_round(votes, majority)], RewardConfig(**rewards))
    return {check.name: check for check in checks}


NO_SIGN = "no forecast, because the interval contains 0"
VOTES, MAJORITY = "training on votes alone", "training on majorities as pseudo-labels"
OVER = "training on votes gains"


@pytest.mark.parametrize(
    ("votes", "majority", "words"),
    [
        # the pilot's: most answers wrong in the same way
        (0.9, 0.2, (f"{VOTES} gains", f"{MAJORITY} loses", f"{OVER} more than on majorities")),
        (0.52, 0.8, (NO_SIGN, f"{MAJORITY} gains", f"{OVER} less than on majorities")),
        (0.3, 0.3, (f"{VOTES} loses", f"{MAJORITY} loses", NO_SIGN)),
    ],
)
def test_the_sign_is_that_of_the_margin_where_its_interval_is_clear(votes, majority, words):
    checks = forecast(rate(votes), rate(majority), labels=0.0, pseudo="majority")
    assert [*checks] == ["forecast, votes", "forecast, majority", "forecast, votes over majority"]
    for check, said in zip(checks.values(), words, strict=True):
        assert f"; without labels: {said}; " in check.why
        assert check.why.endswith(TESTED)
    assert checks["forecast, votes"].value == pytest.approx(votes - 0.5)
    assert checks["forecast, majority"].value == pytest.approx(majority - 0.5)
    losses = [said.endswith("loses") or " less " in said for said in words]
    assert [check.verdict for check in checks.values()] == ["warn" if loss else "ok" for loss in losses]


def test_what_the_rewards_do_not_use_is_no_warning():
    for rewards, used in (({}, [True, False, False]), ({"truth_weight": 1.0}, [False, False, False])):
        checks = forecast(rate(0.3), rate(0.4), **rewards).values()
        assert [check.verdict for check in checks] == ["warn" if one else "not used" for one in used]


def test_fewer_than_50_problems_are_no_forecast():
    [check] = forecast(rate(0.9), rate(0.2), problems=49).values()
    assert (check.verdict, check.value) == ("not measured", None)
    assert check.why == "needs votes on 50 problems with gold answers (--problems), but has 49"


def test_without_votes_there_is_no_forecast():
    [check] = forecast_checks(60, [], RewardConfig())
    assert check.why == "no vote is on a decidable pair"


def test_one_cluster_has_no_sign():
    assert sign_of(Estimate(0.4, 0.3, 0.5, 4, 1)) == 0
