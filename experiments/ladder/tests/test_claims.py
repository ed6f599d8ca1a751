"""What becomes of claims whose differences are written down."""

from __future__ import annotations

import pytest

from debate_rl.metrics.intervals import Estimate
from debate_rl.strategies.equal_cost import BUDGETS, Comparison, Equal, Measured
from experiments.ladder.claims import CLAIMS, claims_of, difference, problems_needed
from experiments.ladder.rounds import Rounds

IDS = [f"p{n}" for n in range(40)]


def rung(name, right, *, beside=0.5, missing=0.0, comparisons=4.0, unread=0.0):
    """Return a rung that is right on the first problems, beside self-consistency that is right on a share."""
    values = {id: float(index < right) for index, id in enumerate(IDS)}
    other = {id: float(index < beside * len(IDS)) for index, id in enumerate(IDS)}
    cost = dict.fromkeys(BUDGETS, 1.0)
    compared = {budget: Equal(1.0, other) for budget in BUDGETS}
    votes = comparisons, unread
    return Measured(name, values, values, cost, 1.0, *votes, 0.0, missing, [], compared)


def card(*rungs, missing=0.0, flips=(0, 0, 0, 0)):
    climbed = {one.name: one for one in rungs}
    rounds = Rounds(dict(zip(("cc", "cw", "wc", "ww"), flips, strict=True)), 0, 0)
    steps = dict.fromkeys(climbed, dict.fromkeys(IDS, rounds))
    found = claims_of(Comparison([], climbed, {}, {}, 0, 16, None, missing), steps)
    assert [claim.claim for claim in found] == [claim for claim, _ in CLAIMS]
    return {claim.claim: claim for claim in found}


def test_a_claim_holds_where_the_difference_is_above_0():
    claim = card(rung("debate_winner", 36))["debate beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.difference.value) == ("holds", pytest.approx(0.4))
    # 16 of 40 more: .4 +- t(39) * .496 / sqrt(40) = .4 +- .159; .241 of 40 problems are 10
    assert claim.change == "10 problems of 40 more for the other side"


def test_a_claim_is_not_shown_where_nothing_can_be_told_and_fails_where_the_other_is_better():
    found = card(rung("debate_winner", 21), rung("swiss", 4))
    claim = found["debate beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.why) == ("not shown", "no clear difference")
    # one of 40 differs, and eight tell: 2 / 2^8 is below .05 / 4, as there are four such claims
    assert claim.change == "about 320 problems like these"
    claim = found["a Swiss tournament beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.why) == ("fails", "the difference is below 0")


def test_a_difference_above_0_that_may_be_chance_is_not_shown():
    """Seven of 40 problems differ, all to one side: the interval is above 0; p is 2 / 2^7 for each of six."""
    claim = card(*(rung(name, 27) for name in ("debate_winner", "swiss", "best_of_n", "genselect")))[
        "debate beats self-consistency at equal generated tokens"
    ]
    assert claim.difference.low > 0
    assert (claim.p, claim.outcome) == (6 / 64, "not shown")


def test_chances_are_adjusted_for_the_claims_that_were_tested():
    alone = card(rung("genselect", 29))
    several = card(rung("genselect", 29), rung("debate_winner", 29), rung("best_of_n", 29))
    name = "selection from a list beats self-consistency at equal generated tokens"
    assert alone[name].p == 2**-8  # nine problems differ, all to one side; by the t of .225 it is .0017
    assert several[name].p == pytest.approx(4 * alone[name].p)  # four of one difference


def test_what_was_not_climbed_or_gave_no_answers_is_not_tested():
    found = card(rung("debate_majority", 30), rung("self_correction", 10, missing=0.66))
    claim = found["the others' work helps beyond a second try"]
    assert (claim.outcome, claim.difference) == ("not tested", None)
    assert "66% of its solutions give no answer" in claim.why
    assert found["personas help beyond temperature"].why == "one_persona: it was not asked for"
    assert found["agents are corrected more often than misled"].why == (
        "debate_majority: nobody writes a second solution"
    )


def test_nobody_is_beaten_where_it_gives_no_answers():
    found = card(rung("debate_winner", 36), rung("swiss", 36), rung("majority", 20), missing=0.9)
    claim = found["debate beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.why) == (
        "not tested",
        "self-consistency: 90% of its solutions give no answer",
    )
    assert found["the judge selects better than counting, from the same solutions"].outcome == "holds"


def test_a_judge_that_nobody_can_read_is_not_tested():
    found = card(
        rung("genselect", 19, comparisons=4.8, unread=4.6),
        rung("debate_winner", 36, comparisons=0.0),
        rung("swiss", 36, comparisons=0.0),  # all solutions gave one answer: nothing was to be compared
    )
    claim = found["selection from a list beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.why) == ("not tested", "genselect: 96% of its comparisons give no vote")
    claim = found["debate beats self-consistency at equal generated tokens"]
    assert (claim.outcome, claim.why) == ("not tested", "debate_winner: nobody votes")
    claim = found["a Swiss tournament beats self-consistency at equal generated tokens"]
    assert claim.outcome == "holds"


def test_a_few_problems_that_happen_to_be_alike_tell_nothing():
    found = difference({"a": 0.5, "b": 0.5, "c": 0.51, "d": 0.0})
    assert (found.differ, found.estimate.p) == (3, 0.25)
    found = difference({"a": 0.5, "b": 0.5, "c": 0.51})
    assert found.estimate.low > 0.48  # the t interval
    assert found.estimate.p == 0.25
    assert difference({"a": 1.0}) == "it needs two problems or more"
    assert difference({"a": 0.0, "b": 0.0}).estimate.p == 1.0


def test_corrections_count_by_problem():
    claim = card(rung("debate_majority", 30), flips=(1, 0, 2, 0))[
        "agents are corrected more often than misled"
    ]
    assert (claim.outcome, claim.difference.value) == ("holds", pytest.approx(2 / 3))


def test_more_problems_make_an_interval_smaller_by_their_root():
    assert problems_needed(Estimate(0.05, -0.05, 0.15, 100, 100), 60) == 400
    assert problems_needed(Estimate(0.0, -0.1, 0.1, 100, 100), 60) > 100_000
    assert problems_needed(Estimate(0.1, float("-inf"), float("inf"), 1, 1), 1) > 100_000
    # the first of two claims needs 1.31 times as many (2.2414 / 1.96, squared)
    assert problems_needed(Estimate(0.05, -0.05, 0.15, 100, 100), 60, 2) == 524
