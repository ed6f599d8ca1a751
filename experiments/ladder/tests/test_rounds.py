"""Steps of agents from round to round, counted by hand."""

from __future__ import annotations

import pytest

from debate import Completion, Problem
from debate.parsing import parse_turn
from debate.types import Turn, TurnId
from debate_rl.strategies.equal_cost import Grader
from envs import load_environment
from experiments.ladder.rounds import rounds_of

NUMBERS = load_environment("gsm8k")
PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")


def turn_of(agent, round_, answer):
    text = f"<solution>\\boxed{{{answer}}}</solution>" if answer else "<solution>Hm.</solution>"
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="K7", due=False)
    return Turn(TurnId(agent, round_), "K7", (), Completion((), (), (), text, "stop", 0), parsed)


@pytest.mark.parametrize(
    ("rounds", "flips", "followed"),
    [
        # agent 0 stands alone against two 5s and gives in; the other two see no majority against them
        ([["4", "5", "5"], ["5", "5", "4"]], (0, 1, 1, 1), (1, 1)),
        ([["4", "5", "5.0"], ["4", "5", ""]], (1, 0, 0, 2), (1, 0)),  # 5 and 5.0 are one answer
        ([["4", "5", "6"], ["5", "5", "5"]], (0, 1, 0, 2), (0, 0)),  # two that disagree press nobody
        ([["", "", ""], ["4", "4", "4"]], (0, 0, 3, 0), (0, 0)),  # no answer is no majority
        ([["", "5", "5"], ["5", "5", "5"]], (0, 0, 0, 3), (0, 0)),  # nor another answer
        ([["5", "4", "4"], ["4", "4", "4"], ["4", "5", "4"]], (4, 1, 1, 0), (1, 1)),
        ([["4", "5", "5"]], (0, 0, 0, 0), (0, 0)),
    ],
)
def test_steps_of_agents_are_counted(rounds, flips, followed):
    grader = Grader(NUMBERS, "boxed")
    turns = [turn_of(agent, at, one) for at, said in enumerate(rounds) for agent, one in enumerate(said)]
    found = rounds_of(PROBLEM, turns, [grader.grade(PROBLEM, turn) for turn in turns], grader)
    assert tuple(found.flips[way] for way in ("cc", "cw", "wc", "ww")) == flips
    assert (found.pressed, found.followed) == followed
