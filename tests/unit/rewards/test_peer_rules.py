import choix
import numpy as np
import pytest

from debate.types import TurnId, Vote
from rewards import RewardConfig, score_votes
from rewards.peer import PEER_RULES, bradley_terry, copeland, margin, net_wins, win_rate

EVEN = {win_rate: 0.5}
"""What a rule gives where all is even, if it is not 0."""
A, B, C, D = (TurnId(agent, 0) for agent in range(4))


def judged(*lines: tuple[TurnId, TurnId, str]) -> list[Vote]:
    """One vote by one new judge for each line."""
    return [Vote(TurnId(10 + n, 1), left, right, outcome) for n, (left, right, outcome) in enumerate(lines)]


def test_margin_win_rate_and_net_wins_of_the_same_votes():
    votes = judged((A, B, "left"), (A, B, "left"), (A, B, "right"), (A, C, "tie"))
    assert margin(votes) == {A: 1 / 4, B: -1 / 3, C: 0.0}  # wins less losses over votes
    assert win_rate(votes) == {A: pytest.approx(2.5 / 4), B: pytest.approx(1 / 3), C: 0.5}  # a tie is half
    assert net_wins(votes) == {A: 1.0, B: -1.0, C: 0.0}
    assert net_wins(votes + votes) == {A: 2.0, B: -2.0, C: 0.0}


def test_copeland_counts_a_pair_once_however_many_judged_it():
    votes = judged((A, B, "left"), (A, B, "left"), (A, B, "right"), (A, C, "right"), (B, C, "tie"))
    assert copeland(votes) == {A: 0.0, B: -0.5, C: 0.5}
    assert margin(votes) == {A: 0.0, B: -0.25, C: 0.5}


def test_bradley_terry_of_two_has_a_closed_form():
    """choix keeps the two weights at a sum of 2, so the chain's rates are 3 / 2 + alpha and 1 / 2 + alpha."""
    votes = judged((A, B, "left"), (A, B, "left"), (A, B, "left"), (B, A, "left"))
    alpha = 0.1
    ratio = (1.5 + alpha) / (0.5 + alpha)
    scores = bradley_terry(votes, alpha=alpha)
    assert scores[A] - scores[B] == pytest.approx(np.log(ratio), abs=1e-6)
    assert scores[A] + scores[B] == pytest.approx(0.0, abs=1e-12)


def test_bradley_terry_is_choix_ilsr_pairwise_centred():
    pairs = [(0, 1), (0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3), (3, 1)]
    turns = (A, B, C, D)
    fitted = choix.ilsr_pairwise(4, pairs, alpha=0.1)
    scores = bradley_terry(judged(*((turns[w], turns[x], "left") for w, x in pairs)), alpha=0.1)
    assert [scores[turn] for turn in turns] == pytest.approx(list(fitted - fitted.mean()), abs=1e-6)


def test_bradley_terry_ties_are_half_a_win_each_way():
    one_of_each = bradley_terry(judged((A, B, "left"), (B, A, "left"), (B, C, "left")))
    two_ties = bradley_terry(judged((A, B, "tie"), (A, B, "tie"), (B, C, "left")))
    assert list(two_ties.values()) == pytest.approx(list(one_of_each.values()), abs=1e-9)


def test_bradley_terry_is_finite_and_ordered_on_a_transitive_graph():
    pairs = [(A, B), (A, C), (A, D), (B, C), (B, D), (C, D)]
    scores = bradley_terry(judged(*((w, x, "left") for w, x in pairs)), alpha=0.1)
    assert 10 > scores[A] > scores[B] > scores[C] > scores[D] > -10


def test_bradley_terry_centres_each_connected_part_by_itself():
    scores = bradley_terry(judged((A, B, "left"), (C, D, "left"), (C, D, "left")))
    assert scores[A] + scores[B] == pytest.approx(0.0, abs=1e-12)
    assert scores[C] + scores[D] == pytest.approx(0.0, abs=1e-12)
    assert scores[C] > scores[A] > 0


@pytest.mark.parametrize("rule", PEER_RULES.values(), ids=list(PEER_RULES))
def test_ties_only_give_zero_and_no_votes_give_nothing(rule):
    tied = rule(judged((A, B, "tie"), (B, C, "tie"), (A, C, "tie")), alpha=0.1)
    assert [tied[turn] for turn in (A, B, C)] == pytest.approx([EVEN.get(rule, 0.0)] * 3, abs=1e-9)
    assert rule([], alpha=0.1) == {}


def test_a_rule_of_ones_own_is_named_by_module_and_function(tmp_path, monkeypatch):
    (tmp_path / "my_rules.py").write_text(
        "def rule(votes, *, alpha):\n    return {v.left: 7.0 for v in votes}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = RewardConfig(peer="my_rules:rule")
    assert score_votes(3, 1, [(2, 1, 0, 1, "left")], None, config).peer == ((7.0,), (None,), (None,))
