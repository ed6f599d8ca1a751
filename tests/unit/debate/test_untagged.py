import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate import DebateConfig, Problem, hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate.reply import Untagged, read_reply
from debate.stops import clipped
from debate.types import Completion, FailureReason

PROBLEM = Problem("p", "9 + 9?", "18")
PLAIN = "The answer is \\boxed{18}."


def read(text, *, rule=None, reason="stop", kind="number", thinking=False):
    completion = Completion((), (), (), text, reason, 0)
    return read_reply(
        completion,
        handles=("K7",),
        own="K7",
        due=False,
        in_thinking=thinking,
        ballot=False,
        kind=kind,
        untagged=rule,
    )


def held(reply, **config):
    policy = ScriptedPolicy({}, default=reply)
    return asyncio.run(hold_debate(PROBLEM, policy, DebateConfig(**config), seed=0))


def test_one_agent_alone_needs_no_tags():
    [turn] = held(PLAIN, num_agents=1, num_rounds=1).turns
    assert (turn.parsed.answer, turn.parsed.untagged) == ("18", True)
    assert [f.reason for f in turn.parsed.failures] == [FailureReason.UNTAGGED]


def test_a_family_asks_for_no_tags_and_misses_none():
    [turn] = held(PLAIN, num_agents=1, num_rounds=1, prompts="qa").turns
    assert turn.parsed.answer == "18"
    assert turn.parsed.failures == ()


def test_in_a_debate_tags_stay_the_rule_unless_round_0_is_let_off():
    turns = held(PLAIN, num_agents=3, num_rounds=2).turns
    assert [turn.parsed.answer for turn in turns] == [None] * 9
    turns = held(PLAIN, num_agents=3, num_rounds=2, untagged=True).turns
    assert [turn.parsed.answer for turn in turns if turn.id.round == 0] == ["18"] * 3
    assert [turn.parsed.answer for turn in turns if turn.id.round > 0] == [None] * 6


@pytest.mark.parametrize(
    ("text", "rule", "solution"),
    [
        ("<think>5?</think> It is 18.", Untagged(), " It is 18."),
        ("It is 18.\nQuestion:", Untagged(("Question:",)), "It is 18.\n"),
        ("It is 18.\nQuestion: no", Untagged(("Question:",)), "It is 18.\nQuestion: no"),
        ("<evaluation>fine</evaluation> 18", Untagged(), "<evaluation>fine</evaluation> 18"),
    ],
)
def test_the_solution_is_what_stands_behind_thinking_and_before_the_stop(text, rule, solution):
    parsed = read(text, rule=rule)
    assert parsed.solution is not None
    assert parsed.solution.of(text) == solution


def test_thinking_that_never_ends_is_no_solution():
    parsed = read("so 9 + 9 is \\boxed{18}", rule=Untagged(), reason="length", thinking=True)
    assert parsed.solution is None
    assert FailureReason.MISSING_SECTION in {f.reason for f in parsed.failures}


@given(st.text(max_size=60), st.sampled_from([None, "Q:", "\n\n"]), st.booleans())
def test_any_reply_is_read_and_its_span_lies_within(text, stop, cut):
    rule = Untagged((stop,) if stop else ())
    parsed = read(text, rule=rule, reason="length" if cut else "stop")
    if parsed.solution is not None:
        assert 0 <= parsed.solution.start <= parsed.solution.end <= len(text)
        assert parsed.solution.of(text).strip() or parsed.untagged is UNSET
    elif "<" not in text and "&" not in text:
        ended = bool(stop) and not cut and text.endswith(stop)
        assert not (text.removesuffix(stop) if ended else text).strip()


TEXTS = st.text("Qa:\n", max_size=30)
STOPS = st.lists(st.text("Qa:\n", min_size=1, max_size=3), max_size=3)


def test_the_first_stop_string_cuts_and_is_cut_off_itself():
    text = "It is 18.\n\n\nQuestion: 4? Q: 5?"
    assert clipped(text, ("Q:", "Question:")) == "It is 18.\n\n\n"
    assert clipped(text, ("Q:", "Question:", "\n\n\n")) == "It is 18."
    assert clipped(text, ("Problem:",)) == clipped(text, ()) == text


def test_nothing_is_cut_within_thinking_and_all_of_it_may_be_thinking():
    text = "<think>Q: is it 4?</think>4 Q: 5"
    assert clipped(text, ("Q:",), start=26) == "<think>Q: is it 4?</think>4 "
    assert clipped(text, ("Q:",), start=len(text)) == text


@given(TEXTS, STOPS, st.integers(0, 30))
def test_what_is_left_is_a_beginning_without_any_of_them(text, stops, start):
    cut = clipped(text, stops, start=start)
    assert text.startswith(cut)
    assert all(stop not in cut[start:] for stop in stops)
    assert len(cut) >= min(start, len(text))
    assert clipped(cut, stops, start=start) == cut
