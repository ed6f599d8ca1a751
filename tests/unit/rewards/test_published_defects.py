"""Defects of the public recipe this project follows, each rebuilt as a foil: its number beside ours.

Here are those about votes and rewards. What reaches a prompt is in
tests/unit/debate/test_published_defects_of_prompts.py; token streams and baselines in
tests/unit/learner/test_published_defects_of_credit.py.
"""

import asyncio
import re
from collections import Counter
from itertools import combinations

import pytest

from debate.config import DebateConfig
from debate.hold import hold_debate
from debate.parsing import parse_turn
from debate.types import Completion, Problem, SampleRequest, TurnId
from rewards import RewardConfig, score_debate, score_votes

CONFIG = RewardConfig()
HANDLES = ("K7", "M4", "Q2")


class EveryonePrefersTheFirst:
    """Solves to its seat and round, and orders the handles alphabetically in every comparison."""

    version = 0

    async def sample(self, request: SampleRequest) -> Completion:
        seat, round_ = request.turn.agent, request.turn.round
        text = f"<solution>\\boxed{{{10 * seat + round_}}}</solution>"
        if round_:
            text += "<evaluation>Read.</evaluation><comparison>K7 > M4\nK7 > Q2\nM4 > Q2</comparison>"
        return Completion((), (), (), text, "stop", 0)

    async def update(self, weights: object, version: int) -> None:
        raise NotImplementedError


def held(**protocol):
    config = DebateConfig(handles=HANDLES, **protocol)
    return asyncio.run(hold_debate(Problem("p", "Two and two?"), EveryonePrefersTheFirst(), config, seed=3))


# The credited turn


def credited_as_if_in_turns(judge: TurnId, target: int) -> TurnId:
    """The foil: the target's latest text, had agents spoken one after the other."""
    return TurnId(target, judge.round if target < judge.agent else judge.round - 1)


def test_votes_credit_the_turn_that_the_judge_was_shown():
    debate = held(num_agents=3, num_rounds=3, final_ballot=False)
    references = [(vote.judge, target) for vote in debate.votes for target in (vote.left, vote.right)]
    theirs = [
        credited_as_if_in_turns(judge, target.agent) in debate.turn(judge).shown
        for judge, target in references
    ]
    ours = [target in debate.turn(judge).shown for judge, target in references]
    assert len(references) == 12
    assert sum(theirs) / len(theirs) == 0.5
    assert sum(ours) / len(ours) == 1.0


def test_the_reward_lands_on_the_mistake_and_not_on_its_correction():
    """Agent 0 was wrong in round 0 and right in round 1; agent 2, shown round 0, votes against it."""
    judge = TurnId(2, 1)
    assert credited_as_if_in_turns(judge, 0) == TurnId(0, 1)  # the correction would get the -1
    peer = score_votes(3, 2, [(2, 1, 1, 0, "left")], None, CONFIG).peer
    assert peer[0] == (-1.0, None)
    assert peer[1] == (1.0, None)


# Agreement with a consensus that holds one's own vote


# The opening round


def test_invented_votes_of_the_opening_round_do_not_count():
    text = "<solution>4</solution><comparison>K7 > M4</comparison>"
    theirs = margin_of_lines(["K7 > M4"], "K7")
    assert theirs == 1.0
    assert parse_turn(text, handles=HANDLES, own="Q2", due=False).ballots == ()
    rewards = score_votes(3, 1, [(2, 0, 0, 1, "left")], None, CONFIG)
    assert rewards.peer[0] == (None,)
    assert rewards.count("votes/not_shown") == 1


# The last round


def test_the_last_round_is_judged():
    theirs = score_debate(held(num_agents=3, num_rounds=3, final_ballot=False), None, CONFIG).peer
    ours = score_debate(held(num_agents=3, num_rounds=3), None, CONFIG).peer
    assert [row[2] for row in theirs] == [None] * 3
    assert sorted(row[2] for row in ours) == [-1.0, 0.0, 1.0]


# The truth


def test_the_truth_is_a_reward_and_not_a_log_line():
    """Both judges prefer the wrong answer of agent 0 to the right one of agent 1."""
    votes = [(2, 1, 0, 1, "left"), (3, 1, 0, 1, "left")]
    rewards = score_votes(4, 1, votes, [[False], [True], [None], [None]], CONFIG)
    theirs = {agent: rewards.peer[agent][0] for agent in (0, 1)}
    assert theirs == {0: 1.0, 1: -1.0}
    ours = {agent: 0.2 * rewards.peer[agent][0] + 0.8 * rewards.truth[agent][0] for agent in (0, 1)}
    assert ours == pytest.approx({0: 0.2, 1: 0.6})  # as truth_weight = 0.8 mixes them
    assert [row[1] for row in rewards.judge[2:]] == [-1.0, -1.0]


# Stuffed boxes, contradictions, names within names


def margin_of_lines(lines: list[str], name: str) -> float:
    """The foil: every line counts, and a name is whoever's label is found first within the text."""
    points = Counter()
    for line in lines:
        winner, loser = line.split(" > ")
        points["W"] += name in winner
        points["L"] += name in loser
    return (points["W"] - points["L"]) / points.total()


def test_a_name_within_another_is_not_that_name():
    line = "A10 > A2"
    theirs = margin_of_lines([line], "A1")
    text = f"<solution>4</solution><evaluation>-</evaluation><comparison>{line}</comparison>"
    (ballot,) = parse_turn(text, handles=("A1", "A10", "A2", "A3"), own="A3", due=True).ballots
    assert theirs == 1.0  # A1 is rewarded for a vote on A10
    assert (ballot.left, ballot.right, ballot.outcome) == ("A10", "A2", "left")


# The direction


@pytest.mark.parametrize(("first", "second"), list(combinations(HANDLES, 2)))
@pytest.mark.parametrize("operator", [">", "<"])
def test_the_operator_points_at_the_loser(first, second, operator):
    seats = {handle: seat for seat, handle in enumerate((*HANDLES, "Z9"))}
    line = f"{first} {operator} {second}"

    def read_backwards(line: str) -> str:
        left, found, right = re.fullmatch(r"(\w+) ([<>]) (\w+)", line).groups()
        return right if found == ">" else left

    text = f"<solution>4</solution><evaluation>-</evaluation><comparison>{line}</comparison>"
    (ballot,) = parse_turn(text, handles=seats, own="Z9", due=True).ballots
    vote = (3, 1, seats[ballot.left], seats[ballot.right], ballot.outcome)
    peer = score_votes(4, 1, [vote], None, CONFIG).peer
    better, worse = (first, second) if operator == ">" else (second, first)
    assert read_backwards(line) == worse
    assert (peer[seats[better]], peer[seats[worse]]) == ((1.0,), (-1.0,))
