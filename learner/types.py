"""The learner's data: turns with their rewards, and the engine-neutral training row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from debate.personas import Persona
from debate.types import Debate, Turn, TurnId

if TYPE_CHECKING:
    from rewards.types import Rewards


@dataclass(frozen=True, slots=True)
class Transition:
    """One turn of a step and its rewards, one for each stream. None means no signal, never 0.

    ``debate`` is the index of the turn's debate in the step. ``group`` is the index of its group: debates of
    the problem ``problem_id`` that are compared with each other. ``others``: the truth rewards of graded
    solutions in the same debate by seats that do not learn.
    """

    turn: Turn
    persona: Persona
    problem_id: str
    group: int = 0
    debate: int = 0
    peer: float | None = None
    truth: float | None = None
    judge: float | None = None
    format: float | None = None
    shaping: float | None = None
    likelihood: float | None = None
    persuasion: float | None = None
    others: tuple[tuple[TurnId, float], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One turn to learn from, L tokens: the prompt, then the completion.

    Position i of an array is about token i.

    ``input_ids`` (L,) int64. ``action_mask`` (L,) bool is True for sampled tokens. ``sampling_logprobs`` (L,)
    float32 are in nats at ``temperature``. ``advantages`` (L,) float32. ``stream`` (L,) int8 is 0 for the
    prompt and forced tokens, 1 for the generator, and 2 for the judge or the critic.
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


def group_indices(names: Sequence[str], size: int | None = None) -> list[int]:
    """Return each debate's group index. A group is up to ``size`` adjacent debates with the same name.

    >>> group_indices(["p", "p", "p", "q"]), group_indices(["p", "p", "p", "q"], 2)
    ([0, 0, 0, 1], [0, 0, 1, 2])
    """
    size = size or max(len(names), 1)
    starts = [index % size == 0 for _, run in groupby(names) for index, _ in enumerate(run)]
    return [count - 1 for count in accumulate(starts)]


def transitions_of(
    debates: Sequence[Debate], rewards: Sequence[Rewards], groups: Sequence[int]
) -> list[Transition]:
    """Return the turns to learn from, debate by debate, sorted as in ``agent_order``.

    ``groups``: the group of each debate. Turns of frozen and remote seats are left out. ValueError for a
    group with several problems, or a turn of an agent that does not exist.
    """
    problems: dict[int, set[str]] = {}
    for debate, group in zip(debates, groups, strict=True):
        problems.setdefault(group, set()).add(debate.problem.id)
    if mixed := next((ids for ids in problems.values() if len(ids) > 1), None):
        raise ValueError(f"a group must have debates of exactly one problem, got {sorted(mixed)}")
    found: list[Transition] = []
    for number, (debate, own, group) in enumerate(zip(debates, rewards, groups, strict=True)):
        others = tuple(
            (TurnId(agent, round_), value)
            for agent, row in enumerate(own.truth)
            if not debate.protocol.learns(agent)
            for round_, value in enumerate(row)
            if value is not None
        )
        turns = [debate.turns[index] for index in agent_order(debate)]
        place: dict[str, Any] = {"group": group, "debate": number, "others": others}
        found += [_transition(debate, turn, own, **place) for turn in turns]
    return found


def agent_order(debate: Debate) -> list[int]:
    """Return the indices of a debate's turns of learning agents, sorted by agent, then by round."""
    ids = [turn.id for turn in debate.turns]
    return sorted((i for i, id in enumerate(ids) if debate.protocol.learns(id.agent)), key=ids.__getitem__)


def _transition(of: Debate, turn: Turn, rewards: Rewards, **place: Any) -> Transition:
    agent, round_ = turn.id
    if not 0 <= agent < len(of.personas):
        raise ValueError(f"{turn.id}: the debate has {len(of.personas)} personas, so there is no such agent")
    solved = not turn.ballot and round_ < len(rewards.peer[agent])
    persuasion = () if rewards.persuasion is UNSET else rewards.persuasion[agent]
    return Transition(
        turn,
        of.personas[agent],
        of.problem.id,
        peer=rewards.peer[agent][round_] if solved else None,
        truth=rewards.truth[agent][round_] if solved else None,
        judge=rewards.judge[agent][round_],
        format=rewards.format[agent][round_],
        shaping=rewards.shaping[agent][round_] if solved and rewards.shaping is not UNSET else None,
        likelihood=rewards.likelihood[agent][round_] if solved and rewards.likelihood is not UNSET else None,
        persuasion=persuasion[round_] if round_ < len(persuasion) else None,
        **place,
    )
