"""Debates written by hand: three agents, two rounds, a final ballot."""

from __future__ import annotations

import pytest

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn, Vote
from debate.types import ParsedTurn, Span, TurnId
from transcripts import Record

WHO = ("Analyst", "Advocate", "Solver", "Fourth")


def make(
    votes, correct, answers, *, problem="p", step=0, own=False, order=None, sizes=None, question="?", **about
):
    """A debate; a vote is (judge, its round, left, right, outcome), about the newest solutions."""
    agents, rounds = len(correct), len(correct[0])

    def turn(agent, round_):
        seats = order(agent) if order else range(agents)
        shown = tuple(TurnId(a, round_ - 1) for a in seats if round_ and (own or a != agent))
        size = sizes[agent] if sizes else 10
        ballot = round_ == rounds
        parsed = ParsedTurn() if ballot else ParsedTurn(Span(0, size), answer=answers[agent][round_])
        said = Completion((), (), (), "x" * size, "stop", 0)
        return Turn(TurnId(agent, round_), "K7", shown, said, parsed, shown, ballot=ballot)

    debate = Debate(
        Problem(problem, question, **about),
        tuple(Persona(name, "") for name in WHO[:agents]),
        tuple(turn(a, r) for r in range(rounds + 1) for a in range(agents)),
        tuple(
            Vote(TurnId(j, r), TurnId(a, r - 1), TurnId(b, r - 1), outcome) for j, r, a, b, outcome in votes
        ),
        3,
        0,
        DebateConfig(num_agents=agents, num_rounds=rounds, judge_own=own),
    )
    return Record(debate, step, problem, tuple(map(tuple, correct)))


@pytest.fixture(scope="session")
def make_debate():
    return make


@pytest.fixture
def ordered():
    """1 beats 0 beats 2 in round 0; one wrong vote, one right, a tie and a vote left out."""
    votes = [
        (0, 1, 1, 2, "left"),  # both wrong, the first shown wins
        (1, 1, 0, 2, "left"),  # right
        (2, 1, 1, 0, "left"),  # wrong
        (0, 2, 1, 2, "tie"),  # one side is right
        (2, 2, 0, 1, "right"),  # both right, the second shown wins
    ]
    correct = [[True, True], [False, True], [False, False]]
    answers = [["4", "4"], ["5", "4"], ["6", "5"]]
    return make(votes, correct, answers, problem="p1", level="Level 1", source="MATH/algebra")


@pytest.fixture
def circular():
    """All right and in a circle, then one falls; nobody votes in the final ballot."""
    votes = [(0, 1, 1, 2, "left"), (1, 1, 0, 2, "right"), (2, 1, 0, 1, "left")]
    correct = [[True, False], [True, True], [True, True]]
    answers = [["4", "7"], ["4", "4"], ["4", "4"]]
    return make(votes, correct, answers, problem="p2", step=100, level="Level 2", source="MATH/geometry")
