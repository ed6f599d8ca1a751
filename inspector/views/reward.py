"""Why this reward? The chain votes, rewards, baselines, advantage of one turn, each number with its source.

Whatever is computed is computed by the package's own rewards and advantages, over the whole step; the
formulas only explain what these gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from debate.types import TurnId
from inspector.views.checked import is_ballot, named, open_debate
from inspector.views.reward_judging import judge_why
from inspector.views.reward_lines import outline
from inspector.views.reward_numbers import Sources
from inspector.views.reward_step import Step, pay_again
from inspector.views.reward_streams import stream_names, stream_why, total_why
from inspector.views.reward_types import Line, Number, StreamWhy, Why
from inspector.views.reward_votes import format_why, peer_why, truth_why, votes_of
from learner.recipes import ConfigError
from learner.replay.scheme import scheme_of
from learner.runs.reading import read_run_config, refuse_own_rule
from transcripts import Record, RunStore, TranscriptError

if TYPE_CHECKING:
    from learner.config import Config

__all__ = ["Line", "Number", "Why", "config_of", "outline", "why"]


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration; None, and why in one line, where there is none that can be read.

    A peer rule of one's own is not loaded: ``refuse_own_rule``.
    """
    try:
        refuse_own_rule(run)
        return read_run_config(run), ""
    except ConfigError as error:
        return None, f"no configuration, so only what is stored is shown: {error}"


def why(store: RunStore, config: Config | None, id: str, turn: TurnId, *, note: str = "") -> Why:
    """Return the explanation of a turn; without a configuration it has stored numbers alone.

    ``note``: why there is no configuration, if there is none. TranscriptError where there is no such debate
    or turn, or where its turns are none that its protocol has.
    """
    record = open_debate(store, id)
    id = _plain(id)
    _require(record, id, turn)
    notes = (
        [note] if note else [] if config is not None else ["no configuration: only what is stored is shown"]
    )
    step, problem = _step(store, config, record.step)
    notes += [problem] if problem else []
    replayed = step.replayed.get(id) if step is not None else None
    numbers = Sources(
        record,
        replayed.rewards if replayed is not None else None,
        replayed.advantages if replayed is not None else None,
    )
    notes += _notes(store, record, config, step)
    return _explained(record, config, id, turn, numbers, step, notes)


def _plain(id: str) -> str:
    """Return an id as the run writes it.

    >>> _plain("012.03")
    '12.3'
    """
    step, _, place = id.partition(".")
    return f"{int(step)}.{int(place)}"


def _require(record: Record, id: str, turn: TurnId) -> None:
    known = [one.id for one in record.debate.turns]
    if turn not in known:
        told = ", ".join(f"{named(one)}" for one in known) or "none"
        raise TranscriptError(f"debate {id}: no turn {named(turn)}; there are {told}")


def _step(store: RunStore, config: Config | None, step: int) -> tuple[Step | None, str]:
    """Return the step paid again, or why it cannot be."""
    if config is None:
        return None, ""
    try:
        return pay_again(store, scheme_of(config), step), ""
    except Exception as error:  # a rule of one's own may raise anything, and so may what is not ours
        told = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return None, f"step {step} cannot be paid again, so only what is stored is shown: {told}"


def _notes(store: RunStore, record: Record, config: Config | None, step: Step | None) -> Iterator[str]:
    if config is not None and config.train.control != "none":
        yield f"train.control = {config.train.control}: votes are not what the judges' lines say"
    if record.rewards is None:
        yield "no rewards are stored with this debate"
    damaged = [line for line in store.damage if line.startswith(f"step {record.step},")]
    if damaged and step is not None:
        yield f"lines of this step that cannot be read: {len(damaged)}; baseline groups lack their debates"


def _explained(
    record: Record,
    config: Config | None,
    id: str,
    turn: TurnId,
    numbers: Sources,
    step: Step | None,
    notes: Sequence[str],
) -> Why:
    rewards = None if config is None or step is None else config.rewards
    votes, ballot = votes_of(record.debate, rewards), is_ballot(record, record.debate.turn(turn))
    streams = _streams(step, id, turn, numbers)
    parts = (
        peer_why(votes, turn, rewards, numbers) if not ballot else None,
        truth_why(record, turn, rewards, numbers) if not ballot else None,
        judge_why(record, votes, turn, rewards, numbers),
        format_why(record, votes, turn, numbers),
    )
    total = total_why(step, streams, turn, numbers)
    streams = tuple(one for one in streams if one.name == "judge" or not ballot)
    badges = [one.matches for one in numbers_in((parts, streams, total)) if one.matches is not None]
    return Why(
        id=id,
        turn=turn,
        persona=record.debate.personas[turn.agent].name,
        problem=record.debate.problem.id,
        ballot=ballot,
        peer=parts[0],
        truth=parts[1],
        judge=parts[2],
        format=parts[3],
        streams=streams,
        total=total,
        notes=tuple(notes),
        matches=all(badges) if badges else None,
    )


def _streams(step: Step | None, id: str, turn: TurnId, numbers: Sources) -> tuple[StreamWhy, ...]:
    if step is None:
        return ()
    found = [stream_why(step, name, id, turn, numbers) for name in stream_names(step)]
    return tuple(one for one in found if one is not None)


def numbers_in(part: object) -> Iterator[Number]:
    """Yield every number of an explanation, or of a part of one."""
    if isinstance(part, Number):
        yield part
    elif isinstance(part, (tuple, list)):
        for one in part:
            yield from numbers_in(one)
    elif is_dataclass(part):
        for field in fields(part):
            yield from numbers_in(getattr(part, field.name))
