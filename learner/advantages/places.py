"""The turns of a batch in order, and what each stream makes of them: values, baseline groups, advantages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from debate.types import TurnId
from learner.advantages.config import AdvantageConfig, StreamSettings
from learner.advantages.pairs import balanced, right_side
from learner.advantages.streams import stream_advantages
from learner.types import TrajectoryGroup, Transition

if TYPE_CHECKING:
    from rewards import RewardConfig

StreamName: TypeAlias = Literal["peer", "truth", "judge", "mixed"]


class Place(NamedTuple):
    """A turn in its place: the number of its group, of its debate there, and where what is right stood."""

    group: int
    debate: int
    persona: str
    transition: Transition
    side: int


@dataclass(frozen=True, slots=True)
class StreamOf:
    """One stream over all places: values, the names of their baseline groups, and advantages.

    ``centred``: the advantages before the sides of ``key = "pair"`` are weighed, else the same.
    """

    values: list[float | None]
    keys: list[Hashable]
    centred: list[float | None]
    advantages: list[float | None]


def turn_places(groups: Sequence[TrajectoryGroup], rewards: RewardConfig, *, sides: bool) -> Iterator[Place]:
    """Yield the turns of a batch in the order of groups, agents and rounds; ``sides``: look for them."""
    for number, group in enumerate(groups):
        right = _right_turns(group, rewards) if sides else {}
        for trajectory in group.trajectories:
            for transition in trajectory.transitions:
                side = right_side(transition.turn.compared, right[trajectory.debate]) if sides else 0
                yield Place(number, trajectory.debate, trajectory.persona.name, transition, side)


def _right_turns(group: TrajectoryGroup, rewards: RewardConfig) -> dict[int, dict[TurnId, bool]]:
    """Return for each debate of a group which of its graded turns are right."""
    right: dict[int, dict[TurnId, bool]] = {trajectory.debate: {} for trajectory in group.trajectories}
    for trajectory in group.trajectories:
        for transition in trajectory.transitions:
            if transition.truth is not None:
                right[trajectory.debate][transition.turn.id] = transition.truth == rewards.truth_correct
    return right


def stream_of(
    places: Sequence[Place],
    name: StreamName,
    rewards: RewardConfig,
    config: AdvantageConfig,
    ema: MutableMapping[str, float],
) -> StreamOf:
    """Return what one stream makes of a batch; ``ema`` as in ``stream_advantages``."""
    settings: StreamSettings = getattr(config, name)
    values = [_value(place.transition, name, rewards.truth_weight) for place in places]
    keys = [group_key(place, name, settings) for place in places]
    centred = stream_advantages(
        values, keys, baseline=settings.baseline, scale=settings.scale, ema=ema, decay=config.ema_decay
    )
    weighed = balanced(centred, [place.side for place in places]) if settings.key == "pair" else centred
    return StreamOf(values, keys, centred, weighed)


def group_key(place: Place, stream: str, settings: StreamSettings) -> Hashable:
    """Return the name of a turn's group; running means belong to a persona, whatever the problem."""
    if settings.baseline == "rae":
        return f"{stream}/{place.persona}"
    part = place.persona if settings.key == "persona" else place.side if settings.key == "pair" else ""
    return place.group, place.transition.turn.id.round, part


def _value(transition: Transition, name: StreamName, truth_weight: float) -> float | None:
    if name == "mixed":
        return mixed(transition.peer, transition.truth, truth_weight)
    return getattr(transition, name)


def mixed(peer: float | None, truth: float | None, truth_weight: float) -> float | None:
    """Return (1 - w) peer + w truth, a missing part counting as 0; None without either, or any of weight."""
    parts = [scaled(peer, 1 - truth_weight), scaled(truth, truth_weight)]
    present = [part for part in parts if part is not None]
    return sum(present) if present else None


def scaled(value: float | None, weight: float) -> float | None:
    """Return a part with its weight; a part of weight 0 is missing."""
    return None if value is None or weight == 0 else weight * value
