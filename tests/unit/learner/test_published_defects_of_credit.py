"""Defects of the public recipe this project follows that concern credit, each beside ours.

The others are in tests/unit/rewards/test_published_defects.py and
tests/unit/debate/test_published_defects_of_prompts.py.
"""

import numpy as np

from debate.parsing import parse_turn
from debate.types import Completion, Turn, TurnId
from learner.advantages.baselines import stream_advantages
from learner.token_streams import token_streams

SOLUTION = "<solution>\\boxed{4}</solution>"
COMPARISON = "<comparison>K7 > Q2</comparison>"


def test_a_judges_success_is_not_credited_to_its_solution():
    """One character is one token here. The solution earned -1, the judging +1."""
    text = SOLUTION + COMPARISON
    size = len(text)
    completion = Completion(
        (), tuple(range(size)), (0.0,) * size, text, "stop", 0, offsets=tuple(range(size))
    )
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="M4", due=True)
    streams = token_streams(Turn(TurnId(2, 1), "M4", (), completion, parsed), evaluation="judge")
    theirs = np.full(size, -1.0 + 1.0)  # one sum for every token of the turn
    ours = np.where(streams == 1, -1.0, 1.0)
    assert theirs.tolist() == [0.0] * size
    assert ours.tolist() == [-1.0] * len(SOLUTION) + [1.0] * len(COMPARISON)


def test_a_strong_persona_gets_no_credit_for_being_strong():
    """Four debates of one problem: agent 0 is always right, agent 1 always wrong. Nobody did anything new."""
    values = [1.0, 0.0] * 4
    theirs = stream_advantages(
        values, [f"debate {k}" for k in range(4) for _ in range(2)], baseline="group", scale="none"
    )
    ours = stream_advantages(
        values, ["problem, persona 0", "problem, persona 1"] * 4, baseline="group", scale="none"
    )
    assert theirs == [0.5, -0.5] * 4
    assert ours == [None] * 8


def test_what_a_persona_did_better_than_usual_is_its_credit():
    values = [1.0, 0.0, 1.0, 1.0]  # agent 0 twice right; agent 1 wrong, then right
    groups = ["problem, persona 0", "problem, persona 1"] * 2
    theirs = stream_advantages(values, ["first", "first", "second", "second"], baseline="group", scale="none")
    assert theirs == [0.5, -0.5, None, None]
    assert stream_advantages(values, groups, baseline="group", scale="none") == [None, -0.5, None, 0.5]
