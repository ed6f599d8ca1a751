"""Checks of plain data where it comes in: one line with the field, what was expected and what came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard, cast, get_args

from debate.types import Outcome, TurnId, Vote
from rewards.types import Correct

PlainVote: TypeAlias = tuple[int, int, int, int, Outcome]
"""``(judge, judge_round, left, right, outcome)``: agents in [0, N), round in [0, R], about the one before."""

_FIELDS = ("judge", "judge_round", "left", "right", "outcome")


def check_size(num_agents: int, num_rounds: int) -> None:
    """Raise ValueError unless there is at least one agent and one round."""
    for name, value in (("num_agents", num_agents), ("num_rounds", num_rounds)):
        if value < 1:
            raise ValueError(f"{name}: needs to be 1 or more, got {value}")


def check_correct(correct: Correct, num_agents: int, num_rounds: int) -> None:
    """Raise ValueError unless ``correct`` is None or (N, R) of True, False, None and "missing"."""
    if correct is None:
        return
    _check_length("correct", correct, num_agents, "agents")
    for agent, row in enumerate(correct):
        _check_length(f"correct[{agent}]", row, num_rounds, "rounds")
        for round_, grade in enumerate(row):
            if not (grade is True or grade is False or grade is None or grade == "missing"):
                field = f"correct[{agent}][{round_}]"
                raise ValueError(f'{field}: expected True, False, None or "missing", got {grade!r}')


def _check_length(field: str, value: object, length: int, unit: str) -> None:
    if not _is_row(value):
        raise ValueError(f"{field}: expected a sequence of {length} {unit}, got {value!r}")
    if len(value) != length:
        raise ValueError(f"{field}: expected {length} {unit}, got {len(value)}")


def _is_row(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def read_vote(index: int, vote: object, *, num_agents: int, last_round: int) -> Vote:
    """Return the plain vote as a Vote about the round before its judge's; ValueError names the field."""
    if not _is_row(vote) or len(vote) != len(_FIELDS):
        raise ValueError(f"votes[{index}]: expected ({', '.join(_FIELDS)}), got {vote!r}")
    judge, round_, left, right, outcome = cast("PlainVote", vote)
    for name, agent in (("judge", judge), ("left", left), ("right", right)):
        _check_index(f"votes[{index}].{name}", agent, num_agents - 1)
    _check_index(f"votes[{index}].judge_round", round_, last_round)
    if outcome not in get_args(Outcome):
        raise ValueError(f'votes[{index}].outcome: expected "left", "right" or "tie", got {outcome!r}')
    return Vote(TurnId(judge, round_), TurnId(left, round_ - 1), TurnId(right, round_ - 1), outcome)


def _check_index(field: str, value: object, last: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= last:
        raise ValueError(f"{field}: expected a whole number from 0 to {last}, got {value!r}")
