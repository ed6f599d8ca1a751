"""Advantages of each turn: streams are centred separately, then combined for the turn's tokens."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import UNSET

from debate.ramps import number
from debate.types import Turn
from learner.advantages.baselines import GroupParts, group_members, has_contrast, returns, stream_parts
from learner.advantages.config import EMA_DECAY, AdvantageConfig, Key, StreamSettings
from learner.advantages.context_effects import balanced, context_of, right_by_debate, side_counts, sides_of
from learner.types import Transition
from rewards.measured import stream_weights
from rewards.overlong import is_overlong_masked

if TYPE_CHECKING:
    from rewards import RewardConfig

StreamName: TypeAlias = Literal[
    "peer", "truth", "judge", "mixed", "shaping", "likelihood", "persuasion", "format"
]

CREDIT: tuple[StreamName, ...] = ("peer", "truth", "mixed")
"""The streams in which later rounds may count for earlier ones (``advantages.discount``)."""
BESIDE: tuple[Literal["shaping", "likelihood"], ...] = ("shaping", "likelihood")
"""The streams that are added to ``CREDIT``, if the scheme has them."""


@dataclass(frozen=True, slots=True)
class TurnAdvantage:
    """The advantage for each kind of token in a turn; None without signal. ``format`` is added to ``judge``.

    ``generator`` is the sum of ``peer``, ``truth``, ``shaping`` and ``likelihood``. The first two are None if
    the rewards were mixed before the baseline. ``critic``: the advantage of criticism.
    """

    generator: float | None
    judge: float | None
    format: float | None
    peer: float | None = None
    truth: float | None = None
    shaping: float | None = None
    likelihood: float | None = None
    critic: float | None = None


@dataclass(frozen=True, slots=True)
class StreamOf:
    """One stream over all turns: values, the keys of their baseline groups, and advantages.

    ``key``: the key setting, with "auto" resolved. ``groups``: the intermediate results of the advantages by
    group; see ``stream_parts``. ``sides``: the number of advantages by side, for the weights of ``key =
    "pair"``.
    """

    key: Key
    values: list[float | None]
    keys: list[Hashable]
    groups: dict[Hashable, GroupParts]
    sides: dict[int, int]
    advantages: list[float | None]


@dataclass(frozen=True, slots=True)
class Advantages:
    """The advantages of each turn (None without any signal), the results of each stream, and metrics.

    ``sides``: for each turn, the side of the right solutions, or 0 if it was not computed. ``weights``: the
    weights of peer and truth in the generator's credit.
    """

    turns: list[TurnAdvantage | None]
    streams: dict[StreamName, StreamOf]
    sides: list[int]
    metrics: dict[str, float]
    weights: tuple[float, float]


def turn_advantages(
    transitions: Sequence[Transition],
    rewards: RewardConfig,
    config: AdvantageConfig,
    ema: MutableMapping[str, float],
    *,
    counted: bool = True,
) -> Advantages:
    """Return the advantage of every turn of a step, with metrics if ``counted``.

    ``rewards`` and ``config`` are those of the step (``at_step``). ``ema``: the running means of baseline
    "rae".

    generator = lambda_gen * ((1 - w) A_peer + w A_truth + A_shaping + v A_likelihood) with w = truth_weight
    and v = likelihood_weight. judge = lambda_judge * A_judge. critic = lambda_critic * A_persuasion. format =
    A_format, for turns that owed a comparison. A missing part counts as 0, without reweighting. A part of
    weight 0 is missing.

    With ``mix = "rewards"``, peer and truth are mixed with these weights before they are centred. With
    ``peer_weight = "routed"`` each has weight 1, because a round has only one of them. With "measured", peer
    gets a fraction of 1 - w that depends on the earlier steps recorded in ``ema`` (``rewards.measured``).
    """
    looked = (counted and rewards.tells_right) or config.judge.key == "pair"
    sides = sides_of(transitions, rewards.truth_correct) if looked else [0] * len(transitions)
    names: tuple[StreamName, ...] = ("judge", "format", *generator_streams(rewards))
    if any(one.persuasion is not None for one in transitions):
        names = (*names, "persuasion")
    weights = stream_weights(rewards, ema)
    streams: dict[StreamName, StreamOf] = {
        name: _stream(name, transitions, sides, rewards, weights, config, ema) for name in names
    }
    turns = [
        _combined(streams, index, one, rewards, weights, config) for index, one in enumerate(transitions)
    ]
    metrics = _statistics(transitions, streams["judge"], turns) if counted else {}
    return Advantages(turns, streams, sides, metrics, weights)


def generator_streams(rewards: RewardConfig) -> tuple[StreamName, ...]:
    """Return the streams that form the generator's advantage."""
    credit: tuple[StreamName, ...] = ("mixed",) if rewards.mix == "rewards" else ("peer", "truth")
    further = {"shaping": rewards.shapes, "likelihood": rewards.reads_likelihood}
    return (*credit, *(name for name in BESIDE if further[name]))


def _stream(
    name: StreamName,
    transitions: Sequence[Transition],
    sides: Sequence[int],
    rewards: RewardConfig,
    weights: tuple[float, float],
    config: AdvantageConfig,
    ema: MutableMapping[str, float],
) -> StreamOf:
    settings: StreamSettings = getattr(config, name)
    key = resolved_key(settings.key, {one.persona.temperature for one in transitions})
    values = [_value(one, name, weights) for one in transitions]
    if name in CREDIT:
        values = returns(transitions, values, config.discount)
    rae = settings.baseline == "rae"
    keys = [_group_key(one, side, name, key, rae=rae) for one, side in zip(transitions, sides, strict=True)]
    centred, groups = stream_parts(
        values,
        keys,
        baseline=settings.baseline,
        scale=settings.scale,
        ema=ema,
        decay=EMA_DECAY,
        contexts=None if rae else _contexts(key, transitions, rewards.truth_correct),
        keep_equal=key == "context",
    )
    counts = side_counts(centred, sides)
    weighted = balanced(centred, sides, counts) if key == "pair" else centred
    return StreamOf(key, values, keys, groups, counts, weighted)


def resolved_key(key: Key, temperatures: Set[float]) -> Key:
    """Return the key of a stream whose personas have these temperatures.

    >>> resolved_key("auto", {1.0}), resolved_key("auto", {0.6, 1.0}), resolved_key("round", {0.6, 1.0})
    ('round', 'persona_effect', 'round')
    """
    if key != "auto":
        return key
    return "persona_effect" if len(temperatures) > 1 else "round"


def _value(transition: Transition, name: StreamName, weights: tuple[float, float]) -> float | None:
    if name == "mixed":
        return mixed(transition.peer, transition.truth, weights)
    if name == "format" and not owes(transition.turn):
        return None
    return getattr(transition, name)


def owes(turn: Turn) -> bool:
    """Return whether a comparison was due in a turn: its prompt showed at least one pair."""
    return len(turn.compared) >= 2


def _group_key(transition: Transition, side: int, stream: StreamName, key: Key, *, rae: bool) -> Hashable:
    """Return the name of a turn's group. Running means are per persona, across problems.

    Ballots are compared only with ballots: if one debate of a group stopped early, others may still hold
    solutions or criticism in the same round.
    """
    persona = transition.persona.name
    if rae:
        return f"{stream}/{persona}"
    parts: dict[Key, Hashable] = {"persona": persona, "pair": side, "debate": transition.debate}
    return *_round_key(transition), parts.get(key, "")


def _contexts(key: Key, transitions: Sequence[Transition], truth_correct: float) -> list[Hashable] | None:
    """Return each turn's context, or None for keys without contexts.

    The context includes the round, because rounds are fitted separately.
    """
    if key == "persona_effect":
        return [(_round_key(one)[1:], one.persona.name) for one in transitions]
    if key != "context":
        return None
    right = right_by_debate(transitions, truth_correct)
    return [(_round_key(one)[1:], context_of(one.turn, right[one.debate])) for one in transitions]


def _round_key(transition: Transition) -> tuple[int, int, bool, bool]:
    """Return a turn's group key: debate group, round, and whether it is a final ballot or a rival solution.

    A rival solution was shown another solution in round 0. It is not compared with the solution that it
    answers.
    """
    turn = transition.turn
    ballot, rival = turn.ballot and turn.parsed.criticisms is UNSET, turn.id.round == 0 and bool(turn.shown)
    return transition.group, turn.id.round, ballot, rival


def _combined(
    streams: dict[StreamName, StreamOf],
    index: int,
    transition: Transition,
    rewards: RewardConfig,
    weights: tuple[float, float],
    config: AdvantageConfig,
) -> TurnAdvantage | None:
    """Return the advantages of a turn's tokens, or None if the turn is not trained on."""
    scale, both_weights = number(config.lambda_gen), weights
    peer = truth = None
    if "mixed" in streams:
        whole = streams["mixed"].advantages[index]
    else:
        both = streams["peer"].advantages[index], streams["truth"].advantages[index]
        whole = mixed(*both, both_weights)
        peer, truth = shares(*both, both_weights)
    judge = scaled(streams["judge"].advantages[index], number(config.lambda_judge))
    other = {"shaping": 1.0, "likelihood": number(rewards.likelihood_weight)}
    beside = [
        scaled(streams[name].advantages[index], other[name]) if name in streams else None for name in BESIDE
    ]
    persuasion = streams["persuasion"].advantages[index] if "persuasion" in streams else None
    critic = scaled(persuasion, number(config.lambda_critic))
    generator, form = scaled(_sum(whole, *beside), scale), streams["format"].advantages[index]
    unrewarded = _sum(generator, judge, form, critic) is None
    if is_overlong_masked(transition.turn, rewards) or (unrewarded and not config.keep_unrewarded):
        return None
    parts = (scaled(part, scale) for part in (peer, truth, *beside))
    return TurnAdvantage(generator, judge, form, *parts, critic=critic)


def _sum(*parts: float | None) -> float | None:
    """Return the sum of the parts that are not None, or None if all are."""
    present = [part for part in parts if part is not None]
    return sum(present) if present else None


def mixed(peer: float | None, truth: float | None, weights: tuple[float, float]) -> float | None:
    """Return the weighted sum of peer and truth.

    A missing part is 0; None if both are missing or have weight 0.
    """
    return _sum(*shares(peer, truth, weights))


def shares(
    peer: float | None, truth: float | None, weights: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return peer and truth, each times its weight (``rewards.measured.stream_weights``)."""
    return scaled(peer, weights[0]), scaled(truth, weights[1])


def scaled(value: float | None, weight: float) -> float | None:
    """Return a part times its weight. A part of weight 0 is missing (None)."""
    return None if value is None or weight == 0 else weight * value


def _statistics(
    transitions: Sequence[Transition], judge: StreamOf, turns: Sequence[TurnAdvantage | None]
) -> dict[str, float]:
    """Return the metrics. A fraction with denominator 0 is omitted instead of reported as 0."""
    metrics = {"advantage/turns": float(len(turns)), "advantage/rows_dropped": float(turns.count(None))}
    due = [index for index, one in enumerate(transitions) if owes(one.turn)]
    if due:
        metrics["advantage/judge_signal_share"] = sum(
            judge.advantages[index] is not None for index in due
        ) / len(due)
    if any(judge.sides.values()):
        metrics["advantage/judge_right_first"] = judge.sides[1] / sum(judge.sides.values())
    for stream in ("peer", "truth", "judge"):
        metrics |= _zero_variance(transitions, stream)
    return metrics


def _zero_variance(
    transitions: Sequence[Transition], stream: Literal["peer", "truth", "judge"]
) -> dict[str, float]:
    """Return the fraction of a stream's (problem, round) groups with fewer than two different values."""
    values: list[float | None] = [getattr(one, stream) for one in transitions]
    members = group_members(values, list(map(_round_key, transitions)))
    if not members:
        return {}
    flat = sum(not has_contrast([values[i] or 0.0 for i in where]) for where in members.values())
    return {f"advantage/zero_variance_share/{stream}": flat / len(members)}
