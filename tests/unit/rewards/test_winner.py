from collections import Counter

from debate.types import TurnId
from rewards import RewardConfig, score_votes, voted_winner
from rewards.winner import best_voted


def peers(*rows: tuple[float | None, ...]) -> tuple[tuple[float | None, ...], ...]:
    return rows


def test_the_best_of_the_last_judged_round_wins():
    peer = peers((1.0, -1.0, None), (-1.0, 1.0, None), (None, None, None))
    assert voted_winner(peer, seed=0) == TurnId(1, 1)
    assert voted_winner(peer, seed=0, round=0) == TurnId(0, 0)


def test_without_votes_there_is_no_winner():
    assert voted_winner(peers((None,), (None,)), seed=0) is None
    assert voted_winner(peers((1.0, None), (-1.0, None)), seed=0, round=1) is None


def test_a_turn_without_votes_does_not_win_over_a_negative_score():
    assert voted_winner(peers((None,), (-0.5,), (-1.0,)), seed=0) == TurnId(1, 0)


def test_ties_are_drawn_evenly_and_repeatably():
    peer = peers((0.5,), (-1.0,), (0.5,), (0.5,))
    drawn = Counter(voted_winner(peer, seed=seed) for seed in range(3000))
    assert set(drawn) == {TurnId(agent, 0) for agent in (0, 2, 3)}
    assert all(900 < count < 1100 for count in drawn.values())
    assert voted_winner(peer, seed=5) == voted_winner(peer, seed=5)


def test_those_that_a_winner_is_drawn_among_are_told():
    peer = peers((0.5,), (-1.0,), (0.5,), (None,))
    assert best_voted(peer) == (TurnId(0, 0), TurnId(2, 0))
    assert best_voted(peers((0.5, None), (0.2, 0.1)), 0) == (TurnId(0, 0),)
    assert best_voted(peers((None,), (None,))) == ()


def test_fitted_scores_that_differ_in_the_last_digits_are_tied():
    votes = [(2, 1, 0, 1, "left"), (1, 1, 2, 0, "left"), (0, 1, 1, 2, "left")]  # a cycle
    rewards = score_votes(3, 1, votes, None, RewardConfig(peer="bradley_terry"))
    assert {voted_winner(rewards.peer, seed=seed) for seed in range(50)} == {TurnId(a, 0) for a in range(3)}
