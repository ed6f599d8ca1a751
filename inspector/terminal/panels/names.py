"""How agents and turns are called on the screen: both counted from 1."""

from __future__ import annotations

from debate.types import TurnId
from inspector.views.debate import DebateView
from learner.formatting import one_line


def who(view: DebateView, agent: int, most: int = 24) -> str:
    """Return an agent's number and persona."""
    return f"{agent + 1} {one_line(view.personas[agent].name, most)}"


def of_round(turn: TurnId, round_: int) -> str:
    """Return a turn's agent, with its round where it is another than expected.

    >>> of_round(TurnId(0, 1), 1), of_round(TurnId(0, 0), 1)
    ('1', '1 (round 1)')
    """
    return str(turn.agent + 1) if turn.round == round_ else f"{turn.agent + 1} (round {turn.round + 1})"


def spelled(turn: TurnId) -> str:
    """Return a turn in words.

    >>> spelled(TurnId(0, 1))
    'agent 1 in round 2'
    """
    return f"agent {turn.agent + 1} in round {turn.round + 1}"
