"""Judges asked twice: what saying the same is worth, by hand, and how the second ballot is held."""

from msgspec.structs import replace

from debate import Completion, DebateConfig, Problem, run_debates
from debate.policies import ScriptedPolicy
from debate.types import Swapped, TurnId, Vote
from rewards import RewardConfig, score_debate
from rewards.judge_rewards import consistencies
from transcripts import Record
from transcripts.codec import from_line, to_line

A, B, C = (TurnId(agent, 0) for agent in range(3))
JUDGE, OTHER = TurnId(2, 1), TurnId(0, 1)
SAID = Completion((), (), (), "", "stop", 0)
TRUTH = ((True,), (False,), (True,))


def twice(debate, *votes):
    """Return a debate whose two judges were asked again and voted so."""
    again = [
        Swapped(judge, (), SAID, tuple(vote for vote in votes if vote.judge == judge))
        for judge in (JUDGE, OTHER)
    ]
    return replace(debate, swapped=tuple(again))


def test_the_same_side_earns_and_the_other_costs_and_a_tie_is_neither(make_debate):
    first = make_debate([Vote(JUDGE, A, B, "left"), Vote(OTHER, B, C, "left")])
    held = twice(first, Vote(JUDGE, B, A, "right"), Vote(OTHER, B, C, "right"))
    assert consistencies(held) == {JUDGE: 1.0, OTHER: -1.0}
    assert consistencies(twice(first, Vote(JUDGE, A, B, "tie"))) == {JUDGE: 0.0}
    assert consistencies(first) == consistencies(twice(first)) == {}


def test_votes_that_do_not_count_are_not_consistent(make_debate):
    first = make_debate([Vote(JUDGE, A, B, "left"), Vote(JUDGE, A, C, "left")])  # C is its own
    void = twice(first, Vote(JUDGE, A, B, "left"), Vote(JUDGE, A, B, "right"), Vote(JUDGE, A, C, "left"))
    assert consistencies(void) == {}


def test_it_is_added_to_the_judge_reward_and_stands_alone_without_truth(make_debate):
    first = make_debate([Vote(JUDGE, A, B, "left"), Vote(OTHER, B, C, "left")])
    held = twice(first, Vote(JUDGE, A, B, "left"), Vote(OTHER, B, C, "right"))
    scheme = RewardConfig(swap_weight=0.25)
    # By truth the judge is right (1) and the other wrong (-1).
    assert score_debate(held, TRUTH, scheme).judge == ((None, -1.25), (None, None), (None, 1.25))
    assert score_debate(held, None, scheme).judge == ((None, -0.25), (None, None), (None, 0.25))
    assert score_debate(held, TRUTH, RewardConfig()) == score_debate(first, TRUTH, RewardConfig())
    assert score_debate(held, TRUTH, scheme).peer == score_debate(first, TRUTH, scheme).peer


HANDLES = ("K7", "Q2", "M4")


def prefers_the_first(request):
    """Answer, and then prefer what the prompt shows first."""
    if request.turn.round == 0:
        return r"<solution>\boxed{1}</solution>"
    shown = (word for word in request.messages[-1].content.split('"') if word in HANDLES)
    first, second, *_ = dict.fromkeys(shown)
    return f"<evaluation>-</evaluation><comparison>{first} > {second}</comparison>"


def test_the_second_ballot_shows_the_same_solutions_the_other_way_round():
    protocol = DebateConfig(num_rounds=1, handles=HANDLES, ask_swapped=True)
    policy, problem = ScriptedPolicy(prefers_the_first), Problem("p", "?", "1")
    [held] = run_debates([problem], policy, protocol, seed=3)
    ballots = [turn for turn in held.turns if turn.ballot]
    assert [one.turn for one in held.swapped] == [turn.id for turn in ballots]
    assert [one.compared for one in held.swapped] == [turn.compared[::-1] for turn in ballots]
    assert len(policy.requests) == 9
    assert len({request.seed for request in policy.requests}) == 9
    assert from_line(to_line(Record(held, 0, "p"))).debate == held
    [once] = run_debates([problem], policy, protocol.model_copy(update={"ask_swapped": False}), seed=3)
    assert replace(held, swapped=once.swapped, protocol=once.protocol) == once
