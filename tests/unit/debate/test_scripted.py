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


def decided(debates):
    """Return for each vote on a decidable pair whether it was for the right one, with the judge's seat."""
    for debate in debates:
        right = {turn.id: turn.parsed.answer == "42" for turn in debate.turns}
        for vote in debate.votes:
            if right[vote.left] != right[vote.right]:
                yield vote.judge.agent, (vote.outcome == "left") == right[vote.left]


def test_solvers_and_judges_have_the_accuracy_they_were_given():
    policy = scripted_debaters(ANSWERS, solve=(0.3, 0.6, 0.9), judge=(0.95, 0.5, 0.8), prompts="tiny")
    config = DebateConfig(num_rounds=1, prompts="tiny", handles=("K7", "Q2", "M4"))
    debates = run_debates([PROBLEM] * 600, policy, config, seed=2)
    for seat, chance in enumerate((0.3, 0.6, 0.9)):
        rate = sum(debate.turns[seat].parsed.answer == "42" for debate in debates) / 600
        assert rate == pytest.approx(chance, abs=0.06)  # three standard errors
    votes = list(decided(debates))
    for seat, chance in enumerate((0.95, 0.5, 0.8)):
        own = [right for judge, right in votes if judge == seat]
        assert sum(own) / len(own) == pytest.approx(chance, abs=0.11)


def test_debates_of_scripted_debaters_repeat_with_their_seed():
    def run(seed):
        return run_debates([PROBLEM] * 5, scripted_debaters(ANSWERS), DebateConfig(), seed=seed)

    assert run(1) == run(1)
    assert run(1) != run(2)
