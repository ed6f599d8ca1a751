from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import DebateConfig, Problem, parse_turn, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate.types import FailureReason, ParsedTurn, ParseFailure, Span, TurnId
from debate_rl.inspector.views import parse_forensics, reparsed
from debate_rl.inspector.views.parsing import RULES, failure_view
from transcripts import Record

from .conftest import judged, make, solved, with_turn


def test_every_reason_has_a_rule_of_one_sentence():
    assert set(RULES) == set(FailureReason)
    assert all(rule.endswith(".") and rule.count(". ") == 0 and "\n" not in rule for rule in RULES.values())


def test_a_failure_points_at_its_character(circle):
    second, third = parse_forensics(circle)
    assert (second.id, second.handle, second.persona) == (TurnId(1, 2), "Q2", "Advocate")
    [failure] = second.failures
    text = circle.debate.turn(TurnId(1, 2)).completion.text
    assert (failure.reason, failure.detail) == (FailureReason.NOT_A_COMPARISON, "K7 ? M4")
    assert text[failure.offset :].startswith("K7 ? M4")
    assert (failure.line, failure.column) == (3, 1)
    excerpt = failure.excerpt
    assert (excerpt.before[-16:], excerpt.piece) == ("K7 > M4\nM4 < K7\n", "K7 ? M4")
    assert excerpt.after == "</comparison>"
    assert [one.reason for one in third.failures] == [FailureReason.UNKNOWN_HANDLE]


def test_what_is_missing_has_no_place():
    [turn] = parse_forensics(make([[solved(4), solved(4), "I think 4."]]))
    [failure] = turn.failures
    assert (failure.reason, failure.detail) == ("missing_section", "solution")
    assert failure.offset is failure.excerpt is None


def test_of_a_long_piece_the_middle_is_left_out():
    text = "<solution>" + "a" * 300 + "b" * 300
    [turn] = parse_forensics(make([[solved(4), solved(4), text]], reason="length"))
    [failure] = turn.failures
    assert (turn.stop_reason, failure.reason, failure.offset) == ("length", "unclosed_section", 10)
    excerpt = failure.excerpt
    assert (excerpt.piece, excerpt.left_out, excerpt.rest) == ("a" * 80, 440, "b" * 80)


@given(st.text(), st.integers(-5, 50), st.integers(-5, 50))
def test_any_stored_place_is_shown(text, start, end):
    found = failure_view(ParseFailure(FailureReason.NOT_A_COMPARISON, "x", Span(start, end)), text)
    assert 0 <= found.offset <= len(text)
    before = text[: found.offset].split("\n")
    assert (found.line, found.column) == (len(before), len(before[-1]) + 1)
    shown = found.excerpt.before + found.excerpt.piece + found.excerpt.after
    assert shown in text


@pytest.mark.parametrize("own", [False, True])
def test_held_debates_are_parsed_again_alike(own):
    """Malformed replies too: labels, own work, what was due, and the ballot are those of the debate."""
    problem = Problem("p", "2 + 2?", "4", kind="number")
    config = DebateConfig(num_agents=4, num_rounds=2, judge_own=own)
    policy = scripted_debaters({"p": Answers("4", ("5",))}, malformed=0.4)
    for debate in run_debates([problem] * 8, policy, config, seed=3):
        record = Record(debate, 0, "p")
        assert all(reparsed(record, turn) == () for turn in debate.turns)


def test_what_another_parser_read_is_told_field_by_field(circle):
    failure = ParseFailure(FailureReason.MISSING_SECTION, "x")
    other = ParsedTurn(solution=Span(0, 3), answer="7", failures=(failure,))
    changed = with_turn(circle, TurnId(0, 1), parsed=other)
    found = {one.field: (one.stored, one.now) for one in reparsed(changed, changed.debate.turn(TurnId(0, 1)))}
    assert {"solution", "evaluation", "comparison", "answer", "ballots", "failures"} < set(found)
    assert (found["answer"], found["failures"]) == (("7", "4"), ("missing_section x", "none"))
    assert (found["evaluation"][0], found["ballots"][0]) == ("none", "none")
    assert found["ballots"][1].startswith("Q2 > M4 at ")
    assert found["solution"][0] == "characters 0 to 3: <so"


def test_a_reply_that_began_within_its_thinking_is_known_by_what_was_stored(circle):
    text = "so it must be 4"
    parsed = parse_turn(text, handles=(), own=None, due=False, in_thinking=True)
    old = circle.debate.turn(TurnId(0, 0))
    changed = with_turn(circle, old.id, parsed=parsed, completion=replace(old.completion, text=text))
    assert parsed.thinking == Span(0, len(text))
    assert reparsed(changed, changed.debate.turn(old.id)) == ()


def test_with_instructions_the_whole_solution_is_the_answer():
    problem = Problem("i", "Say hello.", '{"instruction_id_list": []}', kind="instructions")
    record = make([["<solution>hello there</solution>"] * 3, [judged("K7 > Q2")] * 3], problem=problem)
    turn = record.debate.turns[0]
    assert turn.parsed.answer == "hello there"
    assert reparsed(record, turn) == ()
