"""Advantages of each turn: the streams centred apart, then put together for its tokens."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import UNSET

from debate.ramps import number
from debate.types import Turn
from learner.advantages.config import EMA_DECAY, AdvantageConfig, Key, StreamSettings
from learner.advantages.contexts import balanced, context_of, right_by_debate, side_counts, sides_of
from learner.advantages.streams import GroupParts, group_members, has_contrast, returns, stream_parts
from learner.types import Transition
from rewards.measured import stream_weights
from rewards.shaping import is_masked

if TYPE_CHECKING:
    from rewards import RewardConfig

StreamName: TypeAlias = Literal[
    "peer", "truth", "judge", "mixed", "shaping", "likelihood", "persuasion", "format"
]

CREDIT: tuple[StreamName, ...] = ("peer", "truth", "mixed")
"""The streams whose later rounds may count for earlier ones (``advantages.discount``)."""
BESIDE: tuple[Literal["shaping", "likelihood"], ...] = ("shaping", "likelihood")
"""The streams that are added to these, where a scheme has them."""


@dataclass(frozen=True, slots=True)
class TurnAdvantage:
    """What each kind of token of a turn gets, None without signal; ``format`` is added to ``judge``.

    ``peer``, ``truth``, ``shaping`` and ``likelihood`` are what ``generator`` is the sum of; the first two
    are None where the rewards were mixed before. ``critic``: of criticism.
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

    ``key``: the setting of that name, and what "auto" came to. ``groups`` has the parts of the advantages by
    key: ``stream_parts``. ``sides`` counts the advantages by side, for the weights of ``key = "pair"``.
    """

    key: Key
    values: list[float | None]
    keys: list[Hashable]
    groups: dict[Hashable, GroupParts]
    sides: dict[int, int]
    advantages: list[float | None]


@dataclass(frozen=True, slots=True)
class Advantages:
    """Of each turn, None for one with no signal at all; what each stream gave; and the counts.

    ``sides``: for each turn on which side the right solutions stood, where that was looked for.
    ``weights``: of peer and truth in the generator's credit.
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
    """Return the advantage of every turn of a step, and metrics if ``counted``; ``ema``: means of "rae".

    ``rewards`` and ``config`` are those of the step (``at_step``).

    generator = lambda_gen * ((1 - w) A_peer + w A_truth + A_shaping + v A_likelihood) with w = truth_weight
    and v = likelihood_weight, judge = lambda_judge * A_judge, critic = lambda_critic * A_persuasion, format =
    A_format, of the turns that owed a comparison. A missing part counts as 0, without reweighting; a part of
    weight 0 is missing.
    With ``mix = "rewards"`` peer and truth are mixed so before they are centred; with ``peer_weight =
    "routed"`` each has weight 1, for of the two there is only one; with "measured" peer has a share of 1 - w,
    by what ``ema`` has of the steps before (``rewards.measured``).
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
    """Return the streams that the generator's advantage is made of."""
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
    """Return the name of a turn's group; running means belong to a persona, whatever the problem.

    A ballot is compared with ballots: where a debate of a group stopped, others still debate or criticise
    in its round.
    """
    persona = transition.persona.name
    if rae:
        return f"{stream}/{persona}"
    parts: dict[Key, Hashable] = {"persona": persona, "pair": side, "debate": transition.debate}
    return *_round_key(transition), parts.get(key, "")


def _contexts(key: Key, transitions: Sequence[Transition], truth_correct: float) -> list[Hashable] | None:
    """Return each turn's context, of its round, for rounds are fitted apart; None for keys without any."""
    if key == "persona_effect":
        return [(_round_key(one)[1:], one.persona.name) for one in transitions]
    if key != "context":
        return None
    right = right_by_debate(transitions, truth_correct)
    return [(_round_key(one)[1:], context_of(one.turn, right[one.debate])) for one in transitions]


def _round_key(transition: Transition) -> tuple[int, int, bool, bool]:
    """Return the group of a turn's debate, its round, whether it is of a final ballot, and of a rival.

    A rival solution, which was shown another in round 0, is not compared with the one that it answers to.
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
    """Return what the tokens of a turn get."""
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
    if is_masked(transition.turn, rewards) or (unrewarded and not config.keep_unrewarded):
        return None
    parts = (scaled(part, scale) for part in (peer, truth, *beside))
    return TurnAdvantage(generator, judge, form, *parts, critic=critic)


def _sum(*parts: float | None) -> float | None:
    """Return the sum of the parts that are there, None without any."""
    present = [part for part in parts if part is not None]
    return sum(present) if present else None


def mixed(peer: float | None, truth: float | None, weights: tuple[float, float]) -> float | None:
    """Return peer + truth by their weights, a missing part being 0; None without either, or any of weight."""
    return _sum(*shares(peer, truth, weights))


def shares(
    peer: float | None, truth: float | None, weights: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return peer and truth, each with its weight (``rewards.measured.stream_weights``)."""
    return scaled(peer, weights[0]), scaled(truth, weights[1])


def scaled(value: float | None, weight: float) -> float | None:
    """Return a part with its weight; a part of weight 0 is missing."""
    return None if value is None or weight == 0 else weight * value


def _statistics(
    transitions: Sequence[Transition], judge: StreamOf, turns: Sequence[TurnAdvantage | None]
) -> dict[str, float]:
    """Return the counts; a share of nothing is left out rather than written as 0."""
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
    """Return the share of a stream's (problem, round) groups that hold fewer than two different values."""
    values: list[float | None] = [getattr(one, stream) for one in transitions]
    members = group_members(values, list(map(_round_key, transitions)))
    if not members:
        return {}
    flat = sum(not has_contrast([values[i] or 0.0 for i in where]) for where in members.values())
    return {f"advantage/zero_variance_share/{stream}": flat / len(members)}
