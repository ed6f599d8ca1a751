"""p_v and p_c, worked out by hand on two debates of three agents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from debate import Debate, DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId, Vote
from debate_rl.doctor.votes import answer_counts, votes_by_round
from envs.answers.keys import plain_key

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
        votes = (
            Vote(TurnId(1, 1), TurnId(0, 0), TurnId(2, 0), "left"),
            Vote(TurnId(2, 1), TurnId(0, 0), TurnId(1, 0), second),
        )
        made.append(replace(debate, votes=votes))
    return made


CORRECT = [[[True, True], [False, False], [False, False]]] * 2


def test_answers_are_counted_by_problem_round_and_key(debates):
    counts = answer_counts(debates, plain_key)
    assert {key: n for key, n in counts.items() if key[1] == 0} == {
        ("a", 0, "4"): 1,
        ("a", 0, "5"): 2,
        ("b", 0, "4"): 1,
        ("b", 0, "5"): 1,
        ("b", 0, "6"): 1,
    }


def test_votes_and_the_commoner_answer_are_compared_on_the_same_pairs(debates):
    """Votes: right, wrong | right, tie (wrong): 2 of 4. Crowd: 5 beats 4 twice | as common: (0+0+.5+.5)/4."""
    [round_0] = votes_by_round(debates, CORRECT, plain_key)
    assert (round_0.round, round_0.votes.n) == (0, 4)
    assert round_0.votes.value == 0.5
    assert round_0.crowd.value == 0.25
    assert round_0.difference.value == 0.25
    assert round_0.difference.low < 0.25 < round_0.difference.high


def test_without_truth_or_decidable_pairs_there_is_nothing_to_say(debates):
    assert votes_by_round(debates, [None, None], plain_key) == []
    alike = [[[False, False]] * 3] * 2
    assert votes_by_round(debates, alike, plain_key) == []
