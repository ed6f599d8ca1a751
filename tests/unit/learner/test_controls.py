from dataclasses import replace

import pytest

from debate import Debate, DebateConfig, Problem, Vote
from debate.types import Span, TurnId
from learner.controls import flip_votes

A, B, C = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0)


def debate_of(*votes):
    return Debate(Problem("p", "?"), (), (), votes, seed=1, policy_version=0, protocol=DebateConfig())


def vote(judge, left, right, outcome="left"):
    return Vote(TurnId(judge, 1), left, right, outcome, Span(0, 3))


def test_everything_but_outcomes_stays():
    debate = debate_of(vote(0, B, C), vote(1, A, C, "right"), vote(2, A, B, "tie"))
    flipped = flip_votes(debate, seed=3)
    assert replace(flipped, votes=()) == replace(debate, votes=())
    assert [replace(v, outcome="left") for v in flipped.votes] == [
        replace(v, outcome="left") for v in debate.votes
    ]
    assert flipped.votes[2] == debate.votes[2]  # a tie stays a tie
    assert {v.outcome for v in flipped.votes[:2]} <= {"left", "right"}


def test_the_coin_is_fair_whatever_was_voted_and_seeded():
    debate = debate_of(vote(0, B, C, "left"), vote(1, A, C, "right"))
    drawn = [[v.outcome for v in flip_votes(debate, seed=seed).votes] for seed in range(2000)]
    for place in (0, 1):
        share = sum(outcomes[place] == "left" for outcomes in drawn) / 2000
        assert share == pytest.approx(0.5, abs=0.04)  # 3.6 standard errors
    together = sum(outcomes[0] == outcomes[1] for outcomes in drawn) / 2000
    assert together == pytest.approx(0.5, abs=0.04)
    assert drawn[7] == [v.outcome for v in flip_votes(debate, seed=7).votes]


@pytest.mark.parametrize("seed", range(6))
def test_repeats_stay_repeats_and_contradictions_contradictions(seed):
    repeated = vote(0, B, C), vote(0, C, B, "right")  # twice the same: B is better
    first, second = flip_votes(debate_of(*repeated), seed=seed).votes
    assert (first.outcome == "left") == (second.outcome == "right")
    contradictory = vote(0, B, C, "left"), vote(0, B, C, "right")
    first, second = flip_votes(debate_of(*contradictory), seed=seed).votes
    assert first.outcome != second.outcome
