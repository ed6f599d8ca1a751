"""Turns with an answer, and a grader of numbers."""

from __future__ import annotations

import pytest

from debate import Completion, Problem
from debate.parsing import parse_turn
from debate.types import Turn, TurnId
from debate_rl.ladder.pool import Grader
from envs import load_environment

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")


@pytest.fixture
def grader():
    return Grader(load_environment("gsm8k"), "boxed")


@pytest.fixture
def turns_of():
    """Return turns_of(rows) -> the turns of answers[round][agent]; "" gives none."""

    def turns(rounds):
        return [
            turn_of(agent, round_, answer)
            for round_, answers in enumerate(rounds)
            for agent, answer in enumerate(answers)
        ]

    return turns


def turn_of(agent, round_, answer):
    text = f"<solution>\\boxed{{{answer}}}</solution>" if answer else "<solution>Hm.</solution>"
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="K7", due=False)
    return Turn(TurnId(agent, round_), "K7", (), Completion((), (), (), text, "stop", 0), parsed)
