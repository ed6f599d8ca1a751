from skeleton import skeleton

from debate.types import TurnId, Vote
from rewards import RewardConfig, score_votes

A, B, C = (TurnId(agent, 0) for agent in range(3))


def test_a_solution_earns_the_share_of_its_wins():
    votes = (Vote(TurnId(2, 1), A, B, "left"), Vote(TurnId(1, 1), C, A, "tie"))
    assert skeleton(votes, alpha=0.1) == {A: 0.5, B: 0.0, C: 0.0}


def test_it_is_a_rule_of_a_recipe():
    scheme = RewardConfig(peer=skeleton)
    rewards = score_votes(3, 1, [(2, 1, 0, 1, "left")], [[True], [False], [False]], scheme)
    assert rewards.peer == ((1.0,), (0.0,), (None,))
