"""p_v and p_c, worked out by hand on two debates of three agents."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Debate, DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId, Vote
from debate_rl.preflight.votes import shared_errors, votes_by_round
from envs.answers.keys import plain_key
from rewards.measured import answer_counts

HANDLES = ("K7", "Q2", "M4")


def held(replies: list[list[str]], *, id: str) -> Debate:
    """Hold a debate of two rounds in which agent i says ``replies[i][r]``."""
    config = DebateConfig(num_agents=3, num_rounds=2, final_ballot=False, handles=HANDLES)
    table = {(agent, round_): text for agent, row in enumerate(replies) for round_, text in enumerate(row)}
    policy = ScriptedPolicy(lambda request: table[request.turn.agent, request.turn.round])
    [debate] = run_debates([Problem(id, "?", "4", kind="number")], policy, config, seed=0)
    return debate


def solution(answer: int) -> str:
    return f"<solution>\\boxed{{{answer}}}</solution>"


@pytest.fixture
def debates():
    """Two debates: 4, 5, 5 and 4, 5, 6 in round 0, and what agents 1 and 2 vote in round 1."""
    made: list[Debate] = []
    for id, answers, second in (("a", (4, 5, 5), "right"), ("b", (4, 5, 6), "tie")):
        debate = held([[solution(a), solution(a)] for a in answers], id=id)
        first = Vote(TurnId(1, 1), TurnId(0, 0), TurnId(2, 0), "left")
        votes = (first, Vote(TurnId(2, 1), TurnId(0, 0), TurnId(1, 0), second))
        made.append(replace(debate, votes=votes))
    return made


CORRECT = [[[True, True], [False, False], [False, False]]] * 2


def test_answers_are_counted_by_group_round_and_key(debates):
    counts = answer_counts(debates, plain_key, ["a", "b"])
    first = {group + answer: n for (group, round_, answer), n in counts.items() if round_ == 0}
    assert first == {"a4": 1, "a5": 2, "b4": 1, "b5": 1, "b6": 1}


def test_the_crowd_is_of_one_group_where_a_problem_comes_again(debates):
    """By itself the second debate has 5 and 6 as common as 4; with the first one 5 is commoner than 4."""
    again = [debates[0], replace(debates[1], problem=debates[0].problem)]
    [together] = votes_by_round(again, CORRECT, plain_key)
    [apart] = votes_by_round(again, CORRECT, plain_key, [0, 1])
    # 4 against 5, 5 and 5, 6: two 4 and three 5, one 6; apart as in the test below
    assert together.crowd.value == (0 + 0 + 1 + 0) / 4
    assert apart.crowd.value == (0 + 0 + 0.5 + 0.5) / 4


def test_votes_and_the_commoner_answer_are_compared_on_the_same_pairs(debates):
    """Votes: right, wrong | right, tie (wrong): 2 of 4. Crowd: 5 beats 4 twice | as common: (0+0+.5+.5)/4."""
    [round_0] = votes_by_round(debates, CORRECT, plain_key)
    assert (round_0.round, round_0.votes.n, round_0.votes.value) == (0, 4, 0.5)
    assert (round_0.crowd.value, round_0.difference.value) == (0.25, 0.25)
    assert round_0.difference.low < 0.25 < round_0.difference.high
    # of each problem one judge is right and the other wrong: with a wrong vote never stands another
    assert round_0.shared.value == -1


def test_a_majority_is_right_on_a_share_of_problems_and_a_tie_in_proportion(debates):
    """On a 5 leads, and is wrong; on b 4, 5 and 6 are as common, of which one is right: (0 + 1/3) / 2."""
    [round_0] = votes_by_round(debates, CORRECT, plain_key)
    assert round_0.majority.value == pytest.approx(1 / 6)
    assert (round_0.majority.n, round_0.majority.clusters) == (2, 2)
    assert round_0.over_majority.value == pytest.approx(1 / 2 - 1 / 6)
    assert round_0.over_majority.low < 1 / 3 < round_0.over_majority.high


def test_problems_on_which_nobody_is_right_count_for_the_majority_alone(debates):
    """A third problem has no decidable pair, and its majority is wrong; a fourth was not graded."""
    third = held([[solution(a), solution(a)] for a in (7, 7, 8)], id="c")
    fourth = held([[solution(4), solution(4)]] * 3, id="d")
    wrong = [["missing", False], [False, False], [False, False]]
    [round_0] = votes_by_round([*debates, third, fourth], [*CORRECT, wrong, None], plain_key)
    assert (round_0.votes.n, round_0.crowd.value) == (4, 0.25)
    assert (round_0.majority.n, round_0.majority.value) == (3, pytest.approx(1 / 9))


def test_shared_errors_by_hand():
    """Problem a: wrong, wrong, right; b: wrong, right, right; c: three right ones."""
    wrong = [True, True, False, True, False, False, False, False, False]
    judges, problems = [0, 1, 2] * 3, [*"aaabbbccc"]
    found = shared_errors(wrong, judges, problems)
    # 18 ordered pairs, 6 with a wrong first vote, of which 2 have a wrong second one: (1/3 - 1/3) / (2/3)
    assert found.value == pytest.approx(0)
    assert (found.n, found.clusters) == (9, 3)
    # without a: 12 pairs, 2, 0: -.2; without b: 12, 4, 2: .25; without c: 12, 6, 2: -1/3
    left_out = [-0.2, 0.25, -1 / 3]
    mean = sum(left_out) / 3
    error = (2 / 3 * sum((one - mean) ** 2 for one in left_out)) ** 0.5
    assert found.high == pytest.approx(4.3027 * error, abs=1e-4)  # t of 2 degrees
    for votes in (([True, False], [1, 1]), ([True, True], [1, 2]), ([False, False], [1, 2])):
        assert shared_errors(*votes, ["a", "a"]) is None  # of one judge, or of one problem


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 4)), max_size=20))
def test_shared_errors_are_at_most_1_and_do_not_depend_on_the_order(votes):
    found, turned = (shared_errors(*zip(*one, strict=True)) if one else None for one in (votes, votes[::-1]))
    assert (found is None) == (turned is None)
    if found is not None:
        assert found.value <= 1
        assert turned.value == pytest.approx(found.value)


def test_without_truth_or_decidable_pairs_there_is_nothing_to_say(debates):
    assert votes_by_round(debates, [None, None], plain_key) == []
    alike = [[[False, False]] * 3] * 2
    assert votes_by_round(debates, alike, plain_key) == []
