"""Changes to a stored debate: what they change, what they keep, and what they refuse."""

import asyncio

import pytest

from debate import DebateConfig, Persona, Problem, hold_debate
from debate.branch import (
    LONGEST,
    BranchError,
    NewPersona,
    NewText,
    NewVote,
    branch_debate,
    needs_policy,
    read_vote,
    with_change,
)
from debate.policies import ScriptedPolicy
from debate.types import TurnId

CONFIG = DebateConfig(num_agents=3, num_rounds=2, handles=("K7", "Q2", "M4"))
FINE = "<evaluation>Fine.</evaluation>"


def said(request):
    """Every judge prefers the first solution shown to the second, and then the second to the first."""
    shown = [handle for handle in ("K7", "M4", "Q2") if f"{handle}" in request.messages[-1].content]
    lines = f"{shown[0]} > {shown[1]}" if request.turn.round else ""
    return f"<solution>\\boxed{{{request.seed % 9}}}</solution>{FINE}<comparison>{lines}</comparison>"


@pytest.fixture
def debate():
    return asyncio.run(hold_debate(Problem("p", "2 + 2?", "4"), ScriptedPolicy(said), CONFIG, seed=3))


def sides(debate, judge):
    return [debate.turn(side).handle for side in debate.turn(judge).compared]


def outcomes(debate, judge):
    votes = (vote for vote in debate.votes if vote.judge == judge)
    return [(debate.turn(v.left).handle, v.outcome, debate.turn(v.right).handle) for v in votes]


def test_a_new_vote_replaces_every_vote_on_the_pair_and_nothing_else(debate):
    judge = TurnId(0, 1)
    a, b = sides(debate, judge)
    branch = with_change(debate, judge, NewVote(a.lower(), b, "tie"))
    assert outcomes(branch, judge) == [(a, "tie", b)]
    assert branch.turns == debate.turns
    others = [vote for vote in debate.votes if vote.judge != judge]
    assert [vote for vote in branch.votes if vote.judge != judge] == others
    assert not needs_policy(debate, judge, NewVote(a, b, "tie"))
    assert asyncio.run(branch_debate(debate, judge, NewVote(a, b, "tie"))) == with_change(
        debate, judge, NewVote(a, b, "tie")
    )


def test_a_new_text_is_parsed_again_with_its_votes(debate):
    judge = TurnId(1, 1)
    a, b = sides(debate, judge)
    text = f"<solution>\\boxed{{77}}</solution>{FINE}<comparison>{b} > {a}: better</comparison>"
    branch = with_change(debate, judge, NewText(text))
    turn = branch.turn(judge)
    assert (turn.completion.text, turn.parsed.answer, turn.completion.tokens) == (text, "77", ())
    assert outcomes(branch, judge) == [(b, "left", a)]
    assert branch.votes[0].span.of(branch.turn(branch.votes[0].judge).completion.text)
    assert [one for one in branch.turns if one.id != judge] == [
        one for one in debate.turns if one.id != judge
    ]
    empty = with_change(debate, judge, NewText(""))
    assert (empty.turn(judge).parsed.answer, outcomes(empty, judge)) == (None, [])


def test_only_what_reads_a_change_is_held_again(debate):
    text = NewText("<solution>\\boxed{1}</solution>")
    assert needs_policy(debate, TurnId(0, 1), text)  # the final ballot reads round 1
    assert not needs_policy(debate, TurnId(0, 2), text)
    assert needs_policy(debate, TurnId(0, 2), NewPersona(Persona("A", "x")))
    policy = ScriptedPolicy(said, version=9)
    asyncio.run(branch_debate(debate, TurnId(0, 1), text, policy))
    assert [tuple(request.turn) for request in policy.requests] == [(0, 2), (1, 2), (2, 2)]
    branch = asyncio.run(branch_debate(debate, TurnId(1, 0), text, policy))
    assert [turn.completion.policy_version for turn in branch.turns] == [0, 0, 0, *[9] * 6]
    assert branch.turns[0] is debate.turns[0]


@pytest.mark.parametrize(
    ("turn", "change", "why"),
    [
        ((7, 0), NewText("x"), "no turn 7.0; there are 0.0, 1.0, 2.0, 0.1"),
        ((0, 0), NewText("x" * (LONGEST + 1)), "the new text has 100,001 characters; at most 100,000"),
        (
            (0, 0),
            NewVote("K7", "Q2", "left"),
            "turn 0.0: was not asked to compare K7 and Q2; it could compare nothing",
        ),
        (
            (0, 1),
            NewVote("Z9", "Q2", "left"),
            "turn 0.1: was not asked to compare Z9 and Q2; it could compare",
        ),
        ((0, 1), NewText("x"), "the turns after 0.1 are regenerated, which needs a policy"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(debate, turn, change, why):
    with pytest.raises(BranchError, match=why) as error:
        asyncio.run(branch_debate(debate, TurnId(*turn), change))
    assert "\n" not in str(error.value)


def test_kept_turns_keep_votes_that_are_not_those_of_their_text(debate):
    judge = debate.votes[0].judge
    [(left, _, right)] = outcomes(debate, judge)
    stored = with_change(debate, judge, NewVote(left, right, "tie"))
    other = TurnId((judge.agent + 1) % 3, judge.round)
    branch = asyncio.run(
        branch_debate(stored, other, NewText("<solution>5</solution>"), ScriptedPolicy(said))
    )
    assert outcomes(branch, judge) == [(left, "tie", right)]


def test_the_vote_that_was_cast_is_no_change(debate):
    judge = debate.votes[0].judge
    [(left, outcome, right)] = outcomes(debate, judge)
    assert outcome == "left"
    for same in (NewVote(left, right, "left"), NewVote(right, left, "right")):
        with pytest.raises(BranchError, match=f"its vote on {same.left} and .* is already this one"):
            with_change(debate, judge, same)


@pytest.mark.parametrize("text", ["", "K7", "K7>", "K7>M4>Q2", ">", "K7 ? M4", "K7>" + "M" * 99])
def test_a_vote_that_cannot_be_read_is_refused(text):
    with pytest.raises(BranchError, match="write two handles"):
        read_vote(text)


def test_a_long_vote_is_refused_at_once():
    with pytest.raises(BranchError, match="write two handles"):
        read_vote(" " * 60_000)  # the length of an address: a pattern that backtracks takes half an hour
    assert read_vote(" K7  = Q2 ") == NewVote("K7", "Q2", "tie")
