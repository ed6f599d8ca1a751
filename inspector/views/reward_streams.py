"""From rewards to advantages, explained: the baseline group, what is taken off, what divides, the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from debate.types import TurnId
from inspector.views.reward_numbers import Sources, added, compared, written
from inspector.views.reward_step import Step
from inspector.views.reward_types import Member, Number, StreamWhy, TotalWhy
from learner.advantages import StreamSettings, stream_advantages
from learner.advantages.pairs import side_counts
from learner.advantages.streams import BATCH_STD_FLOOR, GROUP_STD_EPS, has_contrast
from learner.advantages.turns import StreamName, StreamOf, generator_streams


def stream_names(step: Step) -> tuple[StreamName, ...]:
    """Return the streams that a scheme has advantages of."""
    return (*generator_streams(step.scheme.rewards), "judge")


def stream_why(step: Step, name: StreamName, id: str, turn: TurnId, numbers: Sources) -> StreamWhy | None:
    """Return how one stream's value becomes the turn's advantage; None where the step lacks the turn."""
    place = step.index(id, turn)
    if place is None:
        return None
    settings: StreamSettings = getattr(step.scheme.advantages, name)
    stream = step.advantages.streams[name]
    places = _members(stream, place)
    value = stream.values[place]
    centre = _centre(step, name, stream, place, places) if value is not None else None
    spread = _spread(settings, stream, places) if value is not None else None
    return StreamWhy(
        name=name,
        baseline=settings.baseline,
        scale=settings.scale,
        key="persona" if settings.baseline == "rae" else settings.key,
        reward=_reward(step, name, stream, place, turn, numbers),
        members=_told_members(step, stream, place, places) if _compares(settings) else (),
        centre=centre,
        spread=spread,
        advantage=_advantage(step, settings, stream, place, (centre, spread)),
    )


def _compares(settings: StreamSettings) -> bool:
    """Return whether the turns of a group matter for each other."""
    return settings.baseline in ("group", "rloo") or settings.scale == "group"


def _members(stream: StreamOf, place: int) -> list[int]:
    """Return the places of the group that have a value."""
    pairs = enumerate(zip(stream.keys, stream.values, strict=True))
    return [at for at, (key, value) in pairs if key == stream.keys[place] and value is not None]


def _told_members(step: Step, stream: StreamOf, place: int, places: Sequence[int]) -> tuple[Member, ...]:
    found = [(at, step.transitions[at], stream.values[at] or 0.0) for at in places]
    return tuple(
        Member(step.ids[one.debate], one.turn.id, one.persona.name, value, at == place)
        for at, one, value in found
    )


def _reward(
    step: Step, name: StreamName, stream: StreamOf, place: int, turn: TurnId, numbers: Sources
) -> Number:
    value = stream.values[place]
    if name != "mixed":
        return numbers.reward(name, turn, written(value), f"the {name} reward")
    weight, paid = step.scheme.rewards.truth_weight, step.transitions[place]
    parts = _parts(weight, (paid.peer, paid.truth))
    return Number(value, " + ".join(parts), source="peer and truth mixed before the baseline")


def _parts(weight: float, values: tuple[float | None, float | None]) -> list[str]:
    """Return the weighed parts of peer and truth that are there; a part of weight 0 is not."""
    peer, truth = values
    parts = [f"(1 - {written(weight)}) * {written(peer)}"] if peer is not None and weight != 1 else []
    return parts + ([f"{written(weight)} * {written(truth)}"] if truth is not None and weight != 0 else [])


def _centre(step: Step, name: str, stream: StreamOf, place: int, places: Sequence[int]) -> Number | None:
    """Return what is taken off the value, None where nothing is."""
    baseline = getattr(step.scheme.advantages, name).baseline
    values = [stream.values[at] or 0.0 for at in places]
    if baseline == "none":
        return None
    if baseline == "rae":
        return _running_mean(step, stream, place)
    if baseline == "group":
        mean = float(np.mean(values))
        return Number(mean, f"({added(values)}) / {len(values)}", source="mean of the group")
    others = [stream.values[at] or 0.0 for at in places if at != place]
    if not others:
        return Number(source="no others in the group")
    mean = float(np.mean(others))
    return Number(mean, f"({added(others)}) / {len(others)}", source="mean of the others in the group")


def _running_mean(step: Step, stream: StreamOf, place: int) -> Number:
    if step.means is None:
        return Number(source=f"the persona's running mean is not shown: {step.before}")
    bare = stream_advantages(
        stream.values,
        stream.keys,
        baseline="rae",
        scale="none",
        ema=dict(step.means),
        decay=step.scheme.advantages.ema_decay,
    )
    value, centred = stream.values[place], bare[place]
    mean = None if value is None or centred is None else value - centred
    source = f"the persona's running mean before this turn, decay {step.scheme.advantages.ema_decay:g}"
    return Number(mean, written(mean), source=f"{source}; {step.before}")


def _spread(settings: StreamSettings, stream: StreamOf, places: Sequence[int]) -> Number | None:
    """Return the standard deviation that divides, None where nothing does."""
    if settings.scale == "none":
        return None
    if settings.scale == "batch":
        values = [value for value in stream.values if value is not None]
        source = (
            f"standard deviation of all {len(values)} values of the step; divides, {BATCH_STD_FLOOR} at least"
        )
        return Number(float(np.std(values)), source=source)
    values = [stream.values[at] or 0.0 for at in places]
    mean = written(float(np.mean(values)))
    squares = " + ".join(f"({written(value)} - {mean}) ** 2" for value in values)
    source = f"standard deviation of the group; divides, {GROUP_STD_EPS:g} added"
    return Number(float(np.std(values)), f"(({squares}) / {len(values)}) ** 0.5", source=source)


def _advantage(
    step: Step,
    settings: StreamSettings,
    stream: StreamOf,
    place: int,
    made_of: tuple[Number | None, Number | None],
) -> Number:
    """Return the stream's advantage, and its arithmetic with the centre and the spread put in."""
    centre, spread = made_of
    value, advantage = stream.values[place], stream.advantages[place]
    if settings.baseline == "rae" and step.means is None:
        return Number(source="not computed: see the running mean")
    if value is None or advantage is None:
        return Number(source="no value, no signal" if value is None else _why_silent(stream, place))
    formula = written(value)
    if centre is not None:
        formula = f"({formula} - {written(centre.value)})"
    if spread is not None:
        std = written(spread.value)
        divisor = f"({std} + {GROUP_STD_EPS!r})"
        formula += f" / {divisor if settings.scale == 'group' else f'max({std}, {BATCH_STD_FLOOR!r})'}"
    if settings.key == "pair" and step.advantages.sides[place]:
        formula = f"{_pair_weight(step, stream, place)} * {formula}"
    return Number(advantage, formula, source=f"baseline {settings.baseline}, scale {settings.scale}")


def _why_silent(stream: StreamOf, place: int) -> str:
    values = [stream.values[at] or 0.0 for at in _members(stream, place)]
    if has_contrast(values):
        return "no signal"
    told = "alone in its group" if len(values) == 1 else f"all {len(values)} values of its group are equal"
    return f"no signal: {told}"


def _pair_weight(step: Step, stream: StreamOf, place: int) -> str:
    """Return m / (2 n): n of the m judge turns had the right solution on this side."""
    counts = side_counts(stream.centred, step.advantages.sides)
    return f"({sum(counts.values())} / (2 * {counts[step.advantages.sides[place]]}))"


def total_why(step: Step | None, streams: Sequence[StreamWhy], turn: TurnId, numbers: Sources) -> TotalWhy:
    """Return what the tokens of a turn get, and the arithmetic that puts the streams together."""
    if step is None or not streams:
        stored = [numbers.total(part, turn, "", "as stored", known=False) for part in PARTS]
        return TotalWhy(*stored)
    known = {stream.name: _is_known(step, stream) for stream in streams}
    values = {stream.name: stream.advantage.value for stream in streams}
    generator = all(known[name] for name in known if name != "judge")
    weights = step.scheme.advantages
    made, told = _generator(step, values)
    judge = values["judge"]
    formula = f"{written(weights.lambda_judge)} * {written(judge)}" if judge is not None else ""
    parts = {name: _part(step, name, values.get(name)) for name in ("peer", "truth")}
    source = "lambda_gen times its share of the generator's advantage"
    return TotalWhy(
        generator=numbers.total("generator", turn, made, told, known=generator),
        judge=numbers.total("judge", turn, formula, "lambda_judge * A_judge", known=known["judge"]),
        format=_fine(numbers, turn),
        peer=numbers.total("peer", turn, parts["peer"], source, known=known.get("peer", True)),
        truth=numbers.total("truth", turn, parts["truth"], source, known=known.get("truth", True)),
    )


PARTS = ("generator", "judge", "format", "peer", "truth")


def _is_known(step: Step, stream: StreamWhy) -> bool:
    return stream.baseline != "rae" or step.means is not None


def _generator(step: Step, values: dict[str, float | None]) -> tuple[str, str]:
    weight, scale = step.scheme.rewards.truth_weight, written(step.scheme.advantages.lambda_gen)
    if "mixed" in values:
        mixed = values["mixed"]
        return ("" if mixed is None else f"{scale} * {written(mixed)}"), "lambda_gen * A_mixed"
    parts = _parts(weight, (values["peer"], values["truth"]))
    told = "lambda_gen * ((1 - truth_weight) * A_peer + truth_weight * A_truth); a missing part is left out"
    return (f"{scale} * ({' + '.join(parts)})" if parts else ""), told


def _part(step: Step, name: str, value: float | None) -> str:
    weight, scale = step.scheme.rewards.truth_weight, written(step.scheme.advantages.lambda_gen)
    if value is None:
        return ""
    share = f"(1 - {written(weight)})" if name == "peer" else written(weight)
    return f"{scale} * {share} * {written(value)}"


def _fine(numbers: Sources, turn: TurnId) -> Number:
    found = numbers.total("format", turn, "", "the fine itself, on every token of the turn")
    value = found.value
    return compared(value, found.stored, written(value), found.source, kept=found.matches is not None)
