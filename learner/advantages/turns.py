"""Advantages of each turn: the streams centred apart, then put together for its tokens."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from learner.advantages.config import AdvantageConfig
from learner.advantages.pairs import side_counts
from learner.advantages.places import Place, mixed, scaled, stream_of, turn_places
from learner.advantages.streams import group_members, has_contrast
from learner.types import TrajectoryGroup, Transition

if TYPE_CHECKING:
    from rewards import RewardConfig


@dataclass(frozen=True, slots=True)
class TurnAdvantage:
    """What each kind of token of a turn gets, None without signal; ``format`` goes to all of them.

    ``peer`` and ``truth`` are what ``generator`` is the sum of; None where the rewards were mixed before.
    """

    generator: float | None
    judge: float | None
    format: float | None
    peer: float | None = None
    truth: float | None = None


@dataclass(frozen=True, slots=True)
class Advantages:
    """``turns[group][trajectory][transition]``, None for a turn with no signal at all, and the counts."""

    turns: tuple[tuple[tuple[TurnAdvantage | None, ...], ...], ...]
    metrics: dict[str, float]


_Parts: TypeAlias = tuple[float | None, float | None, float | None]


def turn_advantages(
    groups: Sequence[TrajectoryGroup],
    rewards: RewardConfig,
    config: AdvantageConfig,
    ema: MutableMapping[str, float],
    *,
    counted: bool = True,
) -> Advantages:
    """Return the advantage of every turn of the batch, and metrics if ``counted``; ``ema``: means of "rae".

    generator = lambda_gen * ((1 - w) A_peer + w A_truth) with w = truth_weight, judge = lambda_judge *
    A_judge, format = the fine itself. A missing part counts as 0, without reweighting; a part of weight
    0 is missing. With ``mix = "rewards"`` peer and truth are mixed so before they are centred.
    """
    places = list(turn_places(groups, rewards, sides=counted or config.judge.key == "pair"))
    judge = stream_of(places, "judge", rewards, config, ema).advantages
    parts = [
        _combine(
            _weighed(a_generator, config.lambda_gen),
            scaled(a_judge, config.lambda_judge),
            place.transition,
        )
        for a_generator, a_judge, place in zip(
            _generator(places, rewards, config, ema), judge, places, strict=True
        )
    ]
    return Advantages(_nested(groups, parts), _statistics(places, judge, parts) if counted else {})


def _generator(
    places: Sequence[Place], rewards: RewardConfig, config: AdvantageConfig, ema: MutableMapping[str, float]
) -> list[_Parts]:
    """Return for each turn the generator's advantage, and of it the peer's and the truth's share."""
    weight = rewards.truth_weight
    if rewards.mix == "rewards":
        whole = stream_of(places, "mixed", rewards, config, ema).advantages
        return [(one, None, None) for one in whole]
    peer = stream_of(places, "peer", rewards, config, ema).advantages
    truth = stream_of(places, "truth", rewards, config, ema).advantages
    return [
        (mixed(a_peer, a_truth, weight), scaled(a_peer, 1 - weight), scaled(a_truth, weight))
        for a_peer, a_truth in zip(peer, truth, strict=True)
    ]


def _weighed(parts: _Parts, weight: float) -> _Parts:
    whole, peer, truth = parts
    return scaled(whole, weight), scaled(peer, weight), scaled(truth, weight)


def _combine(parts: _Parts, judge: float | None, transition: Transition) -> TurnAdvantage | None:
    generator, peer, truth = parts
    fine = transition.format or None
    if generator is None and judge is None and fine is None:
        return None
    return TurnAdvantage(generator, judge, fine, peer, truth)


def _nested(
    groups: Sequence[TrajectoryGroup], parts: Sequence[TurnAdvantage | None]
) -> tuple[tuple[tuple[TurnAdvantage | None, ...], ...], ...]:
    rest = iter(parts)
    return tuple(
        tuple(tuple(next(rest) for _ in trajectory.transitions) for trajectory in group.trajectories)
        for group in groups
    )


def _statistics(
    places: Sequence[Place], judge: Sequence[float | None], parts: Sequence[TurnAdvantage | None]
) -> dict[str, float]:
    """Return the counts; a share of nothing is left out rather than written as 0."""
    metrics = {"advantage/turns": float(len(parts)), "advantage/rows_dropped": float(parts.count(None))}
    due = [place for place, _ in enumerate(places) if len(places[place].transition.turn.compared) >= 2]
    if due:
        rewarded = sum(places[place].transition.judge is not None for place in due)
        metrics["advantage/judge_reward_share"] = rewarded / len(due)
        metrics["advantage/judge_signal_share"] = sum(judge[place] is not None for place in due) / len(due)
    sides = side_counts(judge, [place.side for place in places])
    if any(sides.values()):
        metrics["advantage/judge_right_first"] = sides[1] / sum(sides.values())
    for stream in ("peer", "truth", "judge"):
        metrics |= _zero_variance(places, stream)
    return metrics


def _zero_variance(places: Sequence[Place], stream: Literal["peer", "truth", "judge"]) -> dict[str, float]:
    """Return the share of a stream's (problem, round) groups that hold fewer than two different values."""
    values: list[float | None] = [getattr(place.transition, stream) for place in places]
    members = group_members(values, [(place.group, place.transition.turn.id.round) for place in places])
    if not members:
        return {}
    flat = sum(not has_contrast([values[i] or 0.0 for i in where]) for where in members.values())
    return {f"advantage/zero_variance_share/{stream}": flat / len(members)}
