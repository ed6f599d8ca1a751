"""Ground truth for finished debates: ``correct[agent][round]``, shape (N, R)."""

from __future__ import annotations

from collections import Counter

from debate import Debate
from envs import Environment, GradeStatus
from rewards import Truth

Grades = tuple[tuple[Truth, ...], ...]


def grade_debate(
    environment: Environment, debate: Debate, tally: Counter[str] | None = None
) -> Grades | None:
    """Return the verdict on every solution; None for a problem of kind "open".

    True, False, "missing", or None where the grader gave no verdict (time-out, crash). ``tally`` counts what
    the table does not hold: statuses, verdicts of math-verify ("symbolic"), and "microseconds".
    """
    if debate.problem.kind == "open":
        return None
    rounds = debate.protocol.num_rounds
    table: list[list[Truth]] = [[None] * rounds for _ in debate.personas]
    for turn in debate.turns:
        if not turn.ballot:
            grade = environment.grade(debate.problem, turn.parsed.answer)
            table[turn.id.agent][turn.id.round] = grade.verdict
            if tally is not None:
                tally[GradeStatus(grade.status).value] += 1
                tally["symbolic"] += grade.method.startswith("math_verify")
                tally["microseconds"] += round(grade.seconds * 1e6)
    return tuple(tuple(row) for row in table)
