"""How the rewards of a turn become its advantages: the arithmetic of each stream, and of their sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from debate.ramps import number
from debate_rl.inspector.views.reward_criticism import persuasion_formula, persuasion_source
from debate_rl.inspector.views.reward_step import Numbers, Step
from debate_rl.inspector.views.reward_types import Member, Number, StreamWhy, TotalWhy, added, written
from envs.registry import key_by_itself
from learner.advantages import StreamSettings
from learner.advantages.streams import BATCH_STD_FLOOR, GROUP_STD_EPS, GroupParts
from learner.advantages.turns import BESIDE, CREDIT, StreamName, StreamOf, generator_streams, mixed, shares
from learner.types import Transition
from rewards.shaping import shaping_of
from rewards.truth import grade_of
from rewards.types import value_of
from transcripts.record import PARTS


def streams_why(numbers: Numbers) -> Iterator[StreamWhy]:
    """Yield how each stream's value becomes the turn's advantage; nothing where that is not known."""
    if numbers.step is not None:
        critics: tuple[StreamName, ...] = (
            ("persuasion",) if "persuasion" in numbers.step.advantages.streams else ()
        )
        for name in (*generator_streams(numbers.step.scheme.rewards), "judge", *critics, "format"):
            yield _stream_why(numbers, numbers.step, name)


def _stream_why(numbers: Numbers, step: Step, name: StreamName) -> StreamWhy:
    settings: StreamSettings = getattr(step.scheme.advantages, name)
    stream = step.advantages.streams[name]
    group, value = stream.groups.get(stream.keys[step.index]), stream.values[step.index]
    compares = settings.baseline in ("group", "rloo") or settings.scale == "group"
    centre = spread = None
    if group is not None and value is not None:
        centre, spread = _centre(step, settings, stream, group), _spread(settings, stream, group)
    return StreamWhy(
        name=name,
        baseline=settings.baseline,
        scale=settings.scale,
        key="persona" if settings.baseline == "rae" else stream.key,
        reward=_value(numbers, step, name),
        members=tuple(_members(step, group)) if group is not None and compares else (),
        centre=centre,
        spread=spread,
        advantage=_advantage(step, name, centre, spread),
    )


def _members(step: Step, group: GroupParts) -> Iterator[Member]:
    for index, value in zip(group.members, group.values.tolist(), strict=True):
        other = step.transitions[index]
        yield Member(
            step.ids[other.debate],
            other.turn.id,
            other.persona.name,
            value,
            right=grade_of(other.turn.id, step.paid(other.debate)) is True,
            this=index == step.index,
        )


def _value(numbers: Numbers, step: Step, name: StreamName) -> Number:
    """Return the reward, or what it is mixed to."""
    if name == "shaping":
        return _shaping(numbers, step)
    if name == "likelihood":
        return _likelihood(numbers)
    if name == "persuasion":
        debate = numbers.record.debate
        correct = step.paid(step.transitions[step.index].debate)
        formula = persuasion_formula(debate, numbers.turn, correct, step.scheme.rewards)
        return numbers.reward(name, persuasion_source(step.scheme.rewards), formula)
    if step.scheme.advantages.discount and name in CREDIT:
        return _return(step, name)
    if name != "mixed":
        return numbers.reward(name, f"the {name} reward")
    own, value = step.transitions[step.index], step.advantages.streams[name].values[step.index]
    return Number(value, _mixed(step, own.peer, own.truth), source="peer and truth mixed before the baseline")


def _shaping(numbers: Numbers, step: Step) -> Number:
    """Return the shaping reward as the sum of what is new, copied, long and a better revision."""
    parts = shaping_of(numbers.record.debate, step.scheme.rewards, key_by_itself).get(numbers.turn)
    if parts is None:
        return numbers.reward("shaping", "the shaping reward")
    revises = numbers.record.debate.protocol.protocol == "critique"
    formula = " + ".join(map(written, parts if revises else parts[:3]))
    source = "new, copied, and the length of the reply" + (", and a better revision" if revises else "")
    return numbers.reward("shaping", source, formula)


def _likelihood(numbers: Numbers) -> Number:
    """Return the likelihood reward as a difference of two log-probabilities."""
    read = numbers.record.likelihoods
    value = None if not read else value_of(read.logprobs, numbers.turn)
    source = "log-probability of a token of the gold answer behind the reasoning alone, less the baseline's"
    if not read or value is None:
        return numbers.reward("likelihood", source)
    baseline = "" if read.baseline is None else f" - {written(read.baseline)}"
    return numbers.reward("likelihood", source, f"{written(value)}{baseline}")


def _return(step: Step, name: StreamName) -> Number:
    """Return the discounted sum of the rewards of a turn's agent from its round on."""
    own, discount = step.transitions[step.index], written(step.scheme.advantages.discount)
    later = [
        one
        for one in step.transitions
        if (one.debate, one.turn.id.agent) == (own.debate, own.turn.id.agent)
        and one.turn.id.round >= own.turn.id.round
    ]
    rewards = [(one.turn.id.round - own.turn.id.round, _raw(step, one, name)) for one in later]
    parts = [f"{discount} ** {rounds} * {written(value)}" for rounds, value in rewards if value is not None]
    source = "this round's reward, and those of the agent's later rounds discounted"
    return Number(step.advantages.streams[name].values[step.index], " + ".join(parts), source=source)


def _raw(step: Step, one: Transition, name: StreamName) -> float | None:
    weights = step.advantages.weights
    return mixed(one.peer, one.truth, weights) if name == "mixed" else getattr(one, name)


def _mixed(step: Step, peer: float | None, truth: float | None) -> str:
    """Return the weighted sum of peer and truth, with the parts that are there."""
    factors = zip(weights_written(step), (peer, truth), strict=True)
    texts = [f"{factor} * {written(value)}" for factor, value in factors]
    parts = zip(texts, shares(peer, truth, step.advantages.weights), strict=True)
    return " + ".join(text for text, part in parts if part is not None)


def weights_written(step: Step) -> tuple[str, str]:
    """Return the weights of peer and truth as formulas have them."""
    rewards = step.scheme.rewards
    if rewards.peer_weight == "routed":
        return "1", "1"
    if rewards.peer_weight == "measured":
        peer, truth = map(written, step.advantages.weights)
        return peer, truth
    weight = written(number(rewards.truth_weight))
    return f"(1 - {weight})", weight


def _centre(step: Step, settings: StreamSettings, stream: StreamOf, group: GroupParts) -> Number | None:
    """Return what is taken off the value, None where nothing is."""
    if group.centre is None:
        return None
    if settings.baseline == "rae" and not step.means_known:
        return Number(source=f"the persona's running mean is not shown: {step.means_source}")
    at, values = group.members.index(step.index), group.values.tolist()
    centre = float(group.centre[at])
    if settings.baseline == "rae":
        decay = step.scheme.advantages.ema_decay
        source = f"the persona's running mean before this step, decay {decay:g}; {step.means_source}"
        return Number(centre, written(centre), source=source)
    if group.effects is not None:
        return _fitted(settings, stream, group, at)
    if settings.baseline == "group":
        return Number(centre, f"({added(values)}) / {len(values)}", source="mean of the group")
    others = values[:at] + values[at + 1 :]
    if not others:
        return Number(source="no others in the group")
    formula = f"({added(others)}) / {len(others)}"
    return Number(centre, formula, source="mean of the others in the group")


def _fitted(settings: StreamSettings, stream: StreamOf, group: GroupParts, at: int) -> Number | None:
    """Return the mean of the group and what the turn's context adds, with or without the turn itself."""
    if group.centre is None or group.effects is None:
        return None
    values, offset = group.values.tolist(), float(group.effects.offset[at])
    fit, source = f"({added(values)}) / {len(values)} + {written(offset)}", "mean of the group, and the "
    context = "context: own last solution right or not, right ones shown"
    source += f"effect of the {context if stream.key == 'context' else 'persona'}"
    if settings.baseline == "rloo" and len(values) > 1:
        weight = f"(1 / {len(values)} + {written(float(group.effects.leverage[at]))})"
        fit = f"({fit} - {weight} * {written(values[at])}) / (1 - {weight})"
        source += "; the turn itself left out"
    return Number(float(group.centre[at]), fit, source=source)


def _spread(settings: StreamSettings, stream: StreamOf, group: GroupParts) -> Number | None:
    """Return the standard deviation that divides, None where nothing does."""
    if settings.scale == "batch":
        count = sum(value is not None for value in stream.values)
        source = f"standard deviation of all {count} values of the step; divides, {BATCH_STD_FLOOR} at least"
        return Number(group.std, source=source)
    if settings.scale == "none":
        return None
    mean = written(group.mean)
    squares = " + ".join(f"({written(value)} - {mean}) ** 2" for value in group.values.tolist())
    formula = f"(({squares}) / {len(group.members)}) ** 0.5"
    return Number(
        group.std, formula, source=f"standard deviation of the group; divides, {GROUP_STD_EPS:g} added"
    )


def _advantage(step: Step, name: StreamName, centre: Number | None, spread: Number | None) -> Number:
    """Return the stream's advantage, and its arithmetic with the centre and the spread put in."""
    settings: StreamSettings = getattr(step.scheme.advantages, name)
    stream = step.advantages.streams[name]
    value, advantage = stream.values[step.index], stream.advantages[step.index]
    if not step.knows(name):
        return Number(source="not computed: see the running mean")
    if value is None:
        return Number(source="no value, no signal")
    if advantage is None:
        return Number(source=_why_silent(stream.groups[stream.keys[step.index]]))
    formula = written(value) if centre is None else f"({written(value)} - {written(centre.value)})"
    if spread is not None:
        std = written(spread.value)
        divisors = {"group": f"({std} + {GROUP_STD_EPS!r})", "batch": f"max({std}, {BATCH_STD_FLOOR!r})"}
        formula += f" / {divisors[settings.scale]}"
    side = step.advantages.sides[step.index]
    if stream.key == "pair" and side:
        formula = f"({sum(stream.sides.values())} / (2 * {stream.sides[side]})) * {formula}"
    return Number(advantage, formula, source=f"baseline {settings.baseline}, scale {settings.scale}")


def _why_silent(group: GroupParts) -> str:
    count = len(group.members)
    return (
        f"no signal: {'alone in its group' if count == 1 else f'all {count} values of its group are equal'}"
    )


def total_why(numbers: Numbers) -> TotalWhy:
    """Return what the tokens of a turn get, and the arithmetic that puts the streams together."""
    step = numbers.step
    if step is None:
        return TotalWhy(*(numbers.total(part, "as stored") for part in PARTS))
    streams = step.advantages.streams.items()
    of: dict[StreamName, float | None] = {name: stream.advantages[step.index] for name, stream in streams}
    of_peer, of_truth = weights_written(step)
    judge = f"{written(number(step.scheme.advantages.lambda_judge))} * {written(of['judge'])}"
    where = "A_format, on the judge's tokens; without any, on the token that ended the reply"
    return TotalWhy(
        generator=_generator(numbers, step, of),
        judge=numbers.total("judge", "lambda_judge * A_judge", judge, known=step.knows("judge")),
        format=numbers.total("format", where, written(of["format"]), known=step.knows("format")),
        peer=_share(numbers, step, "peer", of_peer, of.get("peer")),
        truth=_share(numbers, step, "truth", of_truth, of.get("truth")),
        **{name: _share_beside(step, name, of[name]) for name in BESIDE if name in of},
        critic=_critic(numbers, step, of["persuasion"]) if of.get("persuasion") is not None else None,
    )


def _generator(numbers: Numbers, step: Step, of: Mapping[StreamName, float | None]) -> Number:
    scale = written(number(step.scheme.advantages.lambda_gen))
    known = all(step.knows(name) for name in of if name not in ("judge", "persuasion"))
    name, credit = "(1 - truth_weight) * A_peer + truth_weight * A_truth", ""
    if step.scheme.rewards.peer_weight == "routed":
        name = "A_peer or A_truth"
    if step.scheme.rewards.peer_weight == "measured":
        name = "measured weight * A_peer + truth_weight * A_truth"
    if "mixed" in of:
        name, credit = "A_mixed", "" if of["mixed"] is None else written(of["mixed"])
    elif of["peer"] is not None or of["truth"] is not None:
        credit = _mixed(step, of["peer"], of["truth"])
    factors = _factors(step)
    values = [(factors[one], value) for one in BESIDE if (value := of.get(one)) is not None]
    parts = [credit] if credit else []
    parts += [f"{factor.number}{written(value)}" for factor, value in values]
    names = " + ".join([name, *(f"{factors[one].name}A_{one}" for one in BESIDE if one in of)])
    source = f"lambda_gen * ({names}); a missing part is left out"
    return numbers.total("generator", source, f"{scale} * ({' + '.join(parts)})", known=known)


class Factor(NamedTuple):
    """What a stream is multiplied with, by its name and as a number, each with its sign; "" for 1."""

    name: str = ""
    number: str = ""


def _factors(step: Step) -> dict[str, Factor]:
    weight = written(number(step.scheme.rewards.likelihood_weight))
    return {"shaping": Factor(), "likelihood": Factor("likelihood_weight * ", f"{weight} * ")}


def _share_beside(step: Step, name: StreamName, value: float | None) -> Number:
    """Return what a stream that is added to peer and truth gives the turn's tokens."""
    own, factor = step.advantages.turns[step.index], _factors(step)[name]
    scale = written(number(step.scheme.advantages.lambda_gen))
    formula = f"{scale} * {factor.number}{written(value)}"
    given = None if own is None else getattr(own, name)
    return Number(given, formula, source=f"lambda_gen * {factor.name}A_{name}")


def _critic(numbers: Numbers, step: Step, value: float | None) -> Number:
    formula = f"{written(number(step.scheme.advantages.lambda_critic))} * {written(value)}"
    source = "lambda_critic * A_persuasion"
    return numbers.total("critic", source, formula, known=step.knows("persuasion"))


def _share(numbers: Numbers, step: Step, name: StreamName, share: str, value: float | None) -> Number:
    formula = f"{written(number(step.scheme.advantages.lambda_gen))} * {share} * {written(value)}"
    known = step.knows(name) or name not in step.advantages.streams
    return numbers.total(
        name, "lambda_gen times its share of the generator's advantage", formula, known=known
    )
