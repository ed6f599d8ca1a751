"""The figures of programs, by hand: four turns on one problem, two on another, and a debate without tools."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from debate import DebateConfig, Problem
from debate.types import Call, Completion, Debate, ParsedTurn, Span, Turn, TurnId
from debate_rl.metrics.features import tool_figures, tool_metrics


def turn(agent, *statuses, round_=0, ballot=False, tools=True):
    calls = tuple(Call(Span(0, 0), Span(0, 0), Span(0, 0), status) for status in statuses)
    reply = Completion((), (), (), "", "stop", 0, calls=calls if tools else UNSET)
    return Turn(TurnId(agent, round_), "K7", (), reply, ParsedTurn(), ballot=ballot)


def debate(problem, *turns):
    config = DebateConfig(num_agents=2, num_rounds=1)
    return Debate(Problem(problem, "?", "4"), (), turns, (), 0, 0, config)


def test_figures_by_hand():
    first = debate("a", turn(0, "ok", "timeout", "refused"), turn(1), turn(0, "error", round_=1, ballot=True))
    second = debate("b", turn(0), turn(1, "ok"))
    correct = [[[True], [False]], [[True], [True]]]
    assert tool_metrics([first, second], correct) == pytest.approx(
        {
            "tools/calls": (2 + 0 + 1 + 0 + 1) / 5,
            "tools/failed": 2 / 4,
            "tools/timeouts": 1 / 4,
            "tools/share": 2 / 4,
            "tools/only_with_code": 1 / 2,  # of "a" alone: "b" was right without, too
        }
    )


def test_what_was_not_graded_is_no_answer():
    turns = [(turn(0, "ok"), None), (turn(1), False)]
    assert tool_figures(turns)["share"] == [0.0]
    assert tool_figures([(turn(0, "ok"), None)])["only_with_code"] == []


def test_a_program_that_was_refused_did_not_run():
    assert tool_figures([(turn(0, "refused"), True)]) == {
        "calls": [0.0],
        "failed": [],
        "timeouts": [],
        "share": [0.0],
        "only_with_code": [0.0],
    }


def test_without_tools_there_are_no_figures():
    assert tool_metrics([debate("a", turn(0, tools=False))], [None]) == {}
