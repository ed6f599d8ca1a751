"""The kinds of turns without valid form: each by hand, and their sum for any replies."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Debate, DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import Kind
from debate_rl.metrics.debates import FORM_FAILURES, form_failures, format_metrics

SOLVED, CHECKED = "<solution>\\boxed{4}</solution>", "<evaluation>fine</evaluation>"
# What agent i writes in round 1; A and B are the labels of two other agents.
ROUND_1 = {
    "": f"{SOLVED}{CHECKED}<comparison>A > B</comparison>",
    "cut": f"{SOLVED}{CHECKED}<comparison>A > B\n{'A > Z9 because ' * 20}",
    "no_solution": f"{CHECKED}<comparison>Z9 > B</comparison>",
    "no_evaluation": f"{SOLVED}<comparison>A > B</comparison>",
    "unknown_label": f"{SOLVED}{CHECKED}<comparison>A > B\nZ9 > B</comparison>",
    "no_comparison": f"{SOLVED}{CHECKED}<comparison>N/A</comparison>",
    "other": f"<solution>4</solution>{CHECKED}<comparison>A > B\nA >= B</comparison>",
    "no_answer": f"<solution>4</solution>{CHECKED}<comparison>A > B</comparison>",
}


def held(later: list[str], first: str = SOLVED, *, kind: Kind = "number") -> Debate:
    """Return a debate of two rounds with the replies ``later`` in round 1. Replies end at 200 characters."""
    own = names(len(later))
    others = [[name for name in own if name != label][:2] for label in own]
    replies = [r.replace("A", a).replace("B", b) for r, (a, b) in zip(later, others, strict=True)]
    return hold(replies, first, kind)


def hold(replies: list[str], first: str, kind: Kind = "number") -> Debate:
    labels = tuple(f"{letter}2" for letter in "CDEFGHJK"[: len(replies)])
    config = DebateConfig(
        num_agents=len(replies), num_rounds=2, final_ballot=False, handles=labels, max_tokens=200
    )
    table = {
        (agent, round_): text for agent, r in enumerate(replies) for round_, text in enumerate((first, r))
    }
    policy = ScriptedPolicy(table, tokens=True)
    return run_debates([Problem("p", "?", "4", kind=kind)], policy, config, seed=0)[0]


@cache
def names(count: int) -> list[str]:
    return [turn.handle for turn in hold([""] * count, SOLVED).turns[:count]]


def test_each_kind_by_hand():
    debate = held([*ROUND_1.values()])
    assert form_failures(debate) == [""] * 8 + [*ROUND_1]
    figures = format_metrics([debate])
    assert figures["format/valid"] == 9 / 16
    assert {name: figures[f"format/{name}"] for name in FORM_FAILURES} == dict.fromkeys(FORM_FAILURES, 1 / 16)


def test_a_limit_reached_after_the_last_section_is_not_the_failure():
    debate = held([*ROUND_1.values()])
    at_limit = [
        replace(turn, completion=replace(turn.completion, stop_reason="length")) for turn in debate.turns
    ]
    kinds = form_failures(replace(debate, turns=tuple(at_limit)))
    assert kinds[8:] == ["", *["cut"] * 3, "unknown_label", "no_comparison", "other", "no_answer"]


def test_open_problems_need_no_answer():
    assert form_failures(held([ROUND_1["no_answer"]] * 3, kind="open")) == [""] * 6


PIECES = st.sampled_from(
    (
        *("<solution>", "</solution>", "<evaluation>", "</evaluation>", "<comparison>", "</comparison>"),
        *("A > B\n", "Z9 > B\n", "A >= B\n", "\\boxed{4}", " and so on" * 9, "<think>", *ROUND_1.values()),
    )
)
REPLY = st.lists(PIECES, max_size=7).map("".join)


@settings(max_examples=30)
@given(st.lists(REPLY, min_size=3, max_size=3), REPLY)
def test_the_kinds_and_the_valid_share_sum_to_one(later: list[str], first: str):
    debate = held(later, first)
    figures = format_metrics([debate])
    assert sum(figures[f"format/{name}"] for name in FORM_FAILURES) == pytest.approx(
        1 - figures["format/valid"]
    )
    for turn, kind in zip(debate.turns, form_failures(debate), strict=True):
        assert not kind or turn.parsed.failures or kind in ("no_comparison", "unknown_label", "no_answer")
        assert kind or not turn.parsed.failures
        assert kind != "cut" or turn.completion.stop_reason == "length"
