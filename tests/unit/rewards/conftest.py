"""A debate made by hand, turn by turn, as ``hold_debate`` would leave it."""

from collections.abc import Callable, Sequence

import pytest

from debate.config import DebateConfig
from debate.types import (
    Completion,
    Debate,
    FailureReason,
    ParsedTurn,
    ParseFailure,
    Problem,
    Turn,
    TurnId,
    Vote,
)

SILENT = Completion((), (), (), "", "stop", 0)


@pytest.fixture
def make_debate() -> Callable[..., Debate]:
    return _make_debate


def _make_debate(
    votes: Sequence[Vote] = (),
    *,
    num_agents: int = 3,
    num_rounds: int = 1,
    final_ballot: bool = True,
    judge_own: bool = False,
    failures: dict[TurnId, tuple[FailureReason, ...]] | None = None,
    left_out: Sequence[TurnId] = (),
) -> Debate:
    protocol = DebateConfig(
        num_agents=num_agents, num_rounds=num_rounds, final_ballot=final_ballot, judge_own=judge_own
    )
    ids = [TurnId(a, r) for r in range(num_rounds + final_ballot) for a in range(num_agents)]
    turns = tuple(_turn(i, protocol, (failures or {}).get(i, ())) for i in ids if i not in left_out)
    return Debate(Problem("p", "?"), (), turns, tuple(votes), 0, 0, protocol)


def _turn(turn: TurnId, protocol: DebateConfig, failures: Sequence[FailureReason]) -> Turn:
    seats = range(protocol.num_agents if turn.round else 0)
    shown = tuple(TurnId(seat, turn.round - 1) for seat in seats)
    compared = tuple(other for other in shown if protocol.judge_own or other.agent != turn.agent)
    parsed = ParsedTurn(failures=tuple(ParseFailure(reason, "line") for reason in failures))
    return Turn(turn, f"H{turn.agent}", shown, SILENT, parsed, compared)
