"""The scripted policy answers like an engine, and scripted debaters have the accuracy they were given."""

import asyncio

import pytest

from debate import DebateConfig, Problem, SampleRequest, run_debates
from debate.policies import Answers, ScriptedPolicy, scripted_debaters
from debate.policies.scripted import END_TOKEN
from debate.types import TurnId

ANSWERS = {"p": Answers("42", ("41", "43"))}
PROBLEM = Problem("p", "What is 6 * 7?", "42", kind="number")


def ask(policy, *, agent=0, round_=0, max_tokens=100, stop=("</solution>",), debate="000000:p", seed=1):
    request = SampleRequest((), 1.0, max_tokens, stop, seed, debate, TurnId(agent, round_))
    return asyncio.run(policy.sample(request))


def test_a_table_is_read_by_debate_then_by_seat_then_by_default():
    table = {("000000:p", 0, 0): "this debate", (0, 0): "any debate"}
    policy = ScriptedPolicy(table, default="default")
    assert ask(policy).text == "this debate"
    assert ask(policy, debate="000001:p").text == "any debate"
    assert ask(policy, agent=1).text == "default"
    with pytest.raises(KeyError, match="no reply for agent 1 in round 0 and no default"):
        ask(ScriptedPolicy({}), agent=1)


def test_nothing_is_said_behind_the_first_stop_string_which_is_kept():
    policy = ScriptedPolicy({}, default="a</solution>b</comparison>c")
    assert ask(policy, stop=("</comparison>", "</solution>")).text == "a</solution>"
    assert ask(policy, stop=()).text == "a</solution>b</comparison>c"
    assert ask(policy).tokens == ()


def test_character_tokens_have_offsets_and_an_end_token_unless_stopped():
    ended = ask(ScriptedPolicy({}, default="äb", tokens=True))
    assert ended.tokens == (228, 98, END_TOKEN)
    assert ended.offsets == (0, 1, 2)
    assert ended.logprobs == (0.0, 0.0, 0.0)
    assert ended.stop_reason == "stop"
    stopped = ask(ScriptedPolicy({}, default="x</solution>y", tokens=True))
    assert "".join(map(chr, stopped.tokens)) == "x</solution>" == stopped.text


def test_the_budget_holds_and_cut_off_is_told_from_stopped():
    cut = ask(ScriptedPolicy({}, default="abcdef", tokens=True), max_tokens=4)
    assert (cut.text, cut.tokens, cut.stop_reason) == ("abcd", tuple(map(ord, "abcd")), "length")
    exact = ask(ScriptedPolicy({}, default="abc", tokens=True), max_tokens=4)
    assert (exact.text, len(exact.tokens), exact.stop_reason) == ("abc", 4, "stop")
    without_end = ask(ScriptedPolicy({}, default="abc", tokens=True), max_tokens=3)
    assert (without_end.text, len(without_end.tokens), without_end.stop_reason) == ("abc", 3, "length")


def test_update_counts_the_version():
    policy = ScriptedPolicy({}, default="x", version=2)
    assert ask(policy).policy_version == 2
    asyncio.run(policy.update({"w": 1}, 3))
    assert (ask(policy).policy_version, policy.weights) == (3, {"w": 1})


def decided(debates):
    """Return for each vote on a decidable pair whether it was for the right one, with the judge's seat."""
    for debate in debates:
        right = {turn.id: turn.parsed.answer == "42" for turn in debate.turns}
        for vote in debate.votes:
            if right[vote.left] != right[vote.right]:
                yield vote.judge.agent, (vote.outcome == "left") == right[vote.left]


@pytest.mark.parametrize("prompts", ["default", "tiny"])
def test_solvers_and_judges_have_the_accuracy_they_were_given(prompts):
    policy = scripted_debaters(ANSWERS, solve=(0.3, 0.6, 0.9), judge=(0.95, 0.5, 0.8), prompts=prompts)
    config = DebateConfig(num_rounds=1, prompts=prompts, handles=("K7", "Q2", "M4"))
    debates = run_debates([PROBLEM] * 600, policy, config, seed=2)
    for seat, chance in enumerate((0.3, 0.6, 0.9)):
        rate = sum(debate.turns[seat].parsed.answer == "42" for debate in debates) / 600
        assert rate == pytest.approx(chance, abs=0.06)  # three standard errors
    votes = list(decided(debates))
    for seat, chance in enumerate((0.95, 0.5, 0.8)):
        own = [right for judge, right in votes if judge == seat]
        assert sum(own) / len(own) == pytest.approx(chance, abs=0.11)


def test_every_pair_is_compared_once_and_a_coin_decides_among_equals():
    policy = scripted_debaters(ANSWERS, solve=1.0, judge=1.0)
    debates = run_debates([PROBLEM] * 100, policy, DebateConfig(num_agents=4, num_rounds=1), seed=2)
    votes = [vote for debate in debates for vote in debate.votes]
    assert len(votes) == 100 * 4 * 3
    assert sum(vote.outcome == "left" for vote in votes) / 1200 == pytest.approx(0.5, abs=0.05)


def test_chances_may_depend_on_the_turn():
    policy = scripted_debaters(ANSWERS, solve=lambda turn: float(turn.round == 1), judge=1.0)
    debates = run_debates([PROBLEM] * 20, policy, DebateConfig(num_rounds=2), seed=2)
    answers = {(t.id.round, t.parsed.answer == "42") for d in debates for t in d.turns if not t.ballot}
    assert answers == {(0, False), (1, True)}


def test_malformed_replies_have_no_sections_and_cast_no_vote():
    policy = scripted_debaters(ANSWERS, malformed=lambda turn: float(turn.agent == 0))
    debates = run_debates([PROBLEM] * 20, policy, DebateConfig(num_rounds=1), seed=2)
    assert {(t.id.agent, t.parsed.solution is None) for d in debates for t in d.turns if not t.ballot} == {
        (0, True),
        (1, False),
        (2, False),
    }
    assert {vote.judge.agent for debate in debates for vote in debate.votes} == {1, 2}


def test_debates_of_scripted_debaters_repeat_with_their_seed():
    def run(seed):
        return run_debates([PROBLEM] * 5, scripted_debaters(ANSWERS), DebateConfig(), seed=seed)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_answers_that_look_like_tags_are_recognised():
    odd = {"p": Answers("x<y z", ("<b>",))}
    policy = scripted_debaters(odd, solve=(1.0, 0.0, 1.0), judge=1.0)
    debates = run_debates([PROBLEM] * 10, policy, DebateConfig(num_rounds=1), seed=2)
    right = {TurnId(0, 0), TurnId(2, 0)}
    votes = [vote for debate in debates for vote in debate.votes if {vote.left, vote.right} != right]
    assert len(votes) == 20
    assert all((vote.left if vote.outcome == "left" else vote.right) in right for vote in votes)


def test_a_problem_without_answers_is_named():
    with pytest.raises(KeyError, match="no answers for problem 'q'"):
        run_debates([Problem("q", "?")], scripted_debaters(ANSWERS), DebateConfig(), seed=1)
