"""What the learner works on: turns with their rewards, and the engine-neutral training row.

Transition, Trajectory and TrajectoryGroup mean what they mean in tinker-cookbook's ``rl/types.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from debate.personas import Persona
from debate.types import Debate, Turn, TurnId

if TYPE_CHECKING:
    from rewards.types import Rewards


@dataclass(frozen=True, slots=True)
class Transition:
    """One turn and its rewards, one for each stream; None means no signal, never 0."""

    turn: Turn
    peer: float | None = None
    truth: float | None = None
    judge: float | None = None
    format: float | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One agent's turns in one debate, in order of rounds; ``debate`` is the debate's place in its group."""

    persona: Persona
    transitions: tuple[Transition, ...]
    debate: int = 0


@dataclass(frozen=True, slots=True)
class TrajectoryGroup:
    """The K * N trajectories of one problem: debate 0's agents first, then debate 1's, and so on."""

    problem_id: str
    trajectories: tuple[Trajectory, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One turn to learn from: prompt, then completion, L tokens. Position i of an array is about token i.

    ``input_ids`` (L,) int64, ``action_mask`` (L,) bool (True on what was sampled), ``sampling_logprobs``
    (L,) float32 nats at ``temperature``, ``advantages`` (L,) float32, ``stream`` (L,) int8 with 0 for
    nobody (the prompt, forced tokens), 1 for the generator, 2 for the judge.
    """

    input_ids: NDArray[np.int64]
    action_mask: NDArray[np.bool_]
    sampling_logprobs: NDArray[np.float32]
    advantages: NDArray[np.float32]
    stream: NDArray[np.int8]
    group_id: str
    policy_version: int
    turn: TurnId
    temperature: float = 1.0
    debate: int = 0


def group_debates(debates: Sequence[Debate], rewards: Sequence[Rewards]) -> TrajectoryGroup:
    """Return the group of the K debates of one problem with their rewards; ValueError for mixed problems."""
    problem_ids = {debate.problem.id for debate in debates}
    if len(problem_ids) != 1:
        raise ValueError(f"a group holds debates of exactly one problem, got {sorted(problem_ids)}")
    trajectories = [
        trajectory
        for place, (debate, reward) in enumerate(zip(debates, rewards, strict=True))
        for trajectory in _trajectories(debate, reward, place)
    ]
    return TrajectoryGroup(problem_ids.pop(), tuple(trajectories))


def _trajectories(debate: Debate, rewards: Rewards, place: int) -> list[Trajectory]:
    of_agents: list[list[Transition]] = [[] for _ in debate.personas]
    for turn in sorted(debate.turns, key=lambda turn: turn.id.round):
        if 0 <= turn.id.agent < len(of_agents):
            of_agents[turn.id.agent].append(_transition(turn, rewards))
    return [
        Trajectory(persona, tuple(own), place)
        for persona, own in zip(debate.personas, of_agents, strict=True)
    ]


def _transition(turn: Turn, rewards: Rewards) -> Transition:
    agent, round_ = turn.id.agent, turn.id.round
    solved = not turn.ballot and round_ < len(rewards.peer[agent])
    return Transition(
        turn,
        peer=rewards.peer[agent][round_] if solved else None,
        truth=rewards.truth[agent][round_] if solved else None,
        judge=rewards.judge[agent][round_],
        format=rewards.format[agent][round_],
    )
