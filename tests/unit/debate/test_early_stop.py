import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate import DebateConfig, Problem, hold_debate
from debate.early_stop import solutions_saved
from debate.policies import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate.types import TurnId
from rewards import RewardConfig, ballot_box, score_debate
from transcripts import Record
from transcripts.codec import from_line, to_line

PROBLEM = Problem("p", "What is 2 + 2?", "4")
CONFIG = DebateConfig(num_agents=3, num_rounds=4, min_rounds=1)


def writes(answers):
    """A policy whose agents give these answers by round, None for none, and the last ones from then on."""

    def reply(request):
        row = answers[min(request.turn.round, len(answers) - 1)]
        answer = row[request.turn.agent]
        box = "no idea" if answer is None else f"\\boxed{{{answer}}}"
        return f"<solution>{box}</solution><evaluation>e</evaluation><comparison></comparison>"

    return ScriptedPolicy(reply)


def hold(answers, config=CONFIG, **options):
    return asyncio.run(hold_debate(PROBLEM, writes(answers), config, seed=3, **options))


def sizes(debate):
    """Rounds held, rounds saved, and the rounds of the ballots."""
    ballots = {turn.id.round for turn in debate.turns if turn.ballot}
    return debate.protocol.num_rounds, debate.rounds_saved, ballots


@pytest.mark.parametrize(
    ("answers", "config", "expected"),
    [
        ([("4", "4", "4")], CONFIG, (1, 3, {1})),
        ([("4", "5", "4"), ("4", "4", "4")], CONFIG, (2, 2, {2})),
        ([("4", "4", "4")], CONFIG.model_copy(update={"min_rounds": 3}), (3, 1, {3})),
        ([("4", "5", "4")], CONFIG, (4, UNSET, {4})),
        ([("4", None, "4")], CONFIG, (4, UNSET, {4})),
        ([(None, None, None)], CONFIG, (4, UNSET, {4})),
        ([("4", "5", "4")] * 3 + [("4", "4", "4")], CONFIG, (4, UNSET, {4})),
        ([("4", "4", "4")], CONFIG.model_copy(update={"final_ballot": False}), (1, 3, set())),
        ([("4", "4", "4")], CONFIG.model_copy(update={"min_rounds": None}), (4, UNSET, {4})),
    ],
)
def test_a_debate_ends_with_the_first_round_in_which_all_agree(answers, config, expected):
    debate = hold(answers, config)
    assert sizes(debate) == expected
    last = expected[0] + bool(expected[2])
    assert [turn.id for turn in debate.turns] == [TurnId(a, r) for r in range(last) for a in range(3)]
    assert solutions_saved(debate) == list(range(expected[0], 4))


def test_the_ballot_of_a_stopped_debate_asks_for_votes_on_its_last_round():
    debate = hold([("4", "5", "4"), ("4", "4", "4")])
    ballots = [turn for turn in debate.turns if turn.ballot]
    assert [{one.round for one in turn.compared} for turn in ballots] == [{1}] * 3
    assert all(turn.parsed.solution is not None for turn in debate.turns if not turn.ballot)
    held = held_debate(debate)
    assert held.prompt(TurnId(0, 2)).task == "ballot"
    assert held.prompt(TurnId(0, 1)).task == "debate"
    assert ballot_box(debate).due() == tuple(TurnId(a, r) for r in (1, 2) for a in range(3))


@pytest.mark.parametrize(
    ("least", "agree_in", "expected"),
    [(3, 2, (3, 4, [4, 6])), (3, 4, (5, 2, [6])), (4, 2, (5, 2, [6])), (3, 6, (7, UNSET, []))],
)
def test_a_critique_stops_behind_revisions_alone(least, agree_in, expected):
    config = DebateConfig(protocol="critique", num_agents=3, num_rounds=7, min_rounds=least)
    answers = [("4", "5", "4")] * agree_in + [("4", "4", "4")]
    debate = hold(answers, config)
    assert (debate.protocol.num_rounds, debate.rounds_saved, solutions_saved(debate)) == expected
    assert from_line(to_line(Record(debate, 0, "g"))).debate == debate


def test_a_stopped_debate_is_stored_and_rewarded_as_it_was_held():
    debate = hold([("4", "5", "4"), ("4", "4", "4")])
    table = ((True, True), (False, True), (True, True))
    rewards = score_debate(debate, table, RewardConfig())
    assert [len(row) for row in rewards.truth] == [2, 2, 2]
    assert [len(row) for row in rewards.judge] == [3, 3, 3]
    record = Record(debate, 0, "g", table, rewards)
    assert from_line(to_line(record)) == record
    whole = hold([("4", "5", "4")])
    assert b"rounds_saved" not in to_line(Record(whole, 0, "g"))


ANSWER = st.sampled_from(["1", "2", None])


@given(
    st.lists(st.tuples(ANSWER, ANSWER, ANSWER), min_size=1, max_size=5), st.integers(1, 4), st.integers(2, 5)
)
def test_no_round_is_saved_before_agreement_and_none_held_behind_it(answers, least, most):
    config = DebateConfig(num_agents=3, num_rounds=most, min_rounds=min(least, most - 1))
    debate = hold(answers, config)
    rows = [answers[min(round_, len(answers) - 1)] for round_ in range(most)]
    agree = [len(set(row)) == 1 and None not in row for row in rows]
    allowed = [r + 1 for r in range(most) if agree[r] and r + 1 >= config.min_rounds]
    expected = min([*allowed, most])
    assert debate.protocol.num_rounds == expected
    assert debate.rounds_saved == (most - expected or UNSET)
