"""A run under its own reward scheme and under another: which debates are read, and what changes in each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from math import isclose
from typing import TypeAlias

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.replay.scheme import Replayed, Scheme, ScoredStep, replay_step, score_step
from rewards import STREAMS, Rewards
from rewards.types import OPTIONAL_STREAMS, stream_named, value_of
from transcripts import Record, RunStore, TurnAdvantages
from transcripts.record import PARTS

Column: TypeAlias = list[float | None]
CRITIC = "critic"
"""The advantage of criticism, which critiques have beside ``PARTS``."""
CLOSE = 1e-9
"""Numbers nearer than this are the same: other processors round the last digits otherwise."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The rewards and the advantages of a debate by stream, a number for each turn, None without signal."""

    rewards: Mapping[str, Column]
    advantages: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class DebateChange:
    """A debate under both schemes.

    ``personas``: by agent; ``rounds``: R, and the round of that number is the final ballot. ``change``: the
    sum of |new - old| over the advantages of generator, judge and critic and the format penalties, no signal
    being 0.
    ``differs``: what was stored is not what the run's own scheme gives; ``checked`` is False where nothing
    was stored to compare with. ``not_finite``: new rewards that are infinite or not a number, and count as
    none.
    """

    id: str
    step: int
    problem: str
    personas: tuple[str, ...]
    rounds: int
    turns: tuple[TurnId, ...]
    old: Columns
    new: Columns
    change: float
    checked: bool
    differs: bool
    not_finite: int


Look: TypeAlias = Callable[[ScoredStep], None]
"""Is shown each step as the other scheme rewards it."""


def compare_steps(
    records: Iterable[tuple[str, Record]], own: Scheme, other: Scheme, look: Look = lambda scored: None
) -> Iterator[DebateChange]:
    """Yield what changes in each debate.

    ``records``, with their ids, are whole steps in order, from the first that matters. One step is held in
    memory at a time; running means are carried from step to step.
    """
    own_means: dict[str, float] = {}
    other_means: dict[str, float] = {}
    for _, of_step in groupby(records, key=lambda item: item[1].step):
        ids, step = zip(*of_step, strict=True)
        scored = score_step(step, own)
        old = new = replay_step(scored, own, own_means)
        if other != own:
            scored = scored if other.scores_as(own) else score_step(step, other)
            new = replay_step(scored, other, other_means)
        look(scored)
        for id, one, before, after in zip(ids, step, old, new, strict=True):
            yield change_of(id, one, before, after)


def change_of(id: str, one: Record, before: Replayed, after: Replayed) -> DebateChange:
    """Return what changes in a debate, and whether it had been stored as its own scheme has it."""
    turns = tuple(turn.id for turn in one.debate.turns)
    critique = one.debate.protocol.protocol == "critique"
    old = columns_of(turns, before, critique=critique)
    same = old.rewards if after.rewards is before.rewards else None
    new = old if after is before else columns_of(turns, after, rewards=same, critique=critique)
    learnt = (*PARTS[:3], CRITIC) if critique else PARTS[:3]
    return DebateChange(
        id=id,
        step=one.step,
        problem=one.debate.problem.id,
        personas=tuple(persona.name for persona in one.debate.personas),
        rounds=one.debate.protocol.num_rounds,
        turns=turns,
        old=old,
        new=new,
        change=sum(_distance(old.advantages[name], new.advantages[name]) for name in learnt),
        checked=one.rewards is not None,
        differs=one.rewards is not None and not _as_stored(one, one.rewards, before),
        not_finite=after.not_finite,
    )


def columns_of(
    turns: Sequence[TurnId],
    replayed: Replayed,
    *,
    rewards: Mapping[str, Column] | None = None,
    critique: bool = False,
) -> Columns:
    """Return the rewards and advantages of a debate's turns by stream; ``rewards`` if they are known.

    A critique has those of criticism beside.
    """
    if rewards is None:
        names = (*STREAMS, "persuasion") if critique else STREAMS
        streams = {name: stream_named(replayed.rewards, name) for name in names}
        rewards = {name: [value_of(stream, turn) for turn in turns] for name, stream in streams.items()}
    parts = list(_by_turn(turns, replayed.advantages))
    advantages = {name: [None if part is None else getattr(part, name) for part in parts] for name in PARTS}
    if critique:
        advantages[CRITIC] = [None if part is None else known_critic(part) for part in parts]
    return Columns(rewards, advantages)


def known_critic(part: TurnAdvantages) -> float | None:
    """Return the critic's advantage of a turn, None without one."""
    return None if part.critic is UNSET else part.critic


def _by_turn(
    turns: Sequence[TurnId], advantages: Sequence[TurnAdvantages]
) -> Iterator[TurnAdvantages | None]:
    """Yield the advantages of each turn, None where there are none; both are in the order of the turns."""
    rest = iter(advantages)
    part = next(rest, None)
    for turn in turns:
        if part is not None and (part.turn is turn or part.turn == turn):
            yield part
            part = next(rest, None)
        else:
            yield None


def _distance(old: Column, new: Column) -> float:
    if old == new:
        return 0.0
    return sum(abs((b or 0.0) - (a or 0.0)) for a, b in zip(old, new, strict=True))


def _as_stored(one: Record, stored: Rewards, replayed: Replayed) -> bool:
    return _same_rewards(stored, replayed.rewards) and same_advantages(one.advantages, replayed.advantages)


def _same_rewards(stored: Rewards, found: Rewards) -> bool:
    pairs = [
        (stream_named(stored, name), stream_named(found, name)) for name in (*STREAMS, *OPTIONAL_STREAMS)
    ]
    return all(a == b or _close_tables(a, b) for a, b in pairs)


def _close_tables(a: Sequence[Sequence[float | None]], b: Sequence[Sequence[float | None]]) -> bool:
    same_shape = [len(row) for row in a] == [len(row) for row in b]
    return same_shape and all(
        close(x, y) for left, right in zip(a, b, strict=True) for x, y in zip(left, right, strict=True)
    )


def same_advantages(stored: Sequence[TurnAdvantages], found: Sequence[TurnAdvantages]) -> bool:
    """Return whether advantages are the same but for rounding; peer and truth count where stored.

    >>> a, b = (TurnAdvantages(TurnId(0, 0), 0.5, peer=peer) for peer in (None, 0.5))
    >>> same_advantages([a], [b]), same_advantages([b], [a]), same_advantages([a], [])
    (True, False, False)
    """
    if stored == found:
        return True
    if [part.turn for part in stored] != [part.turn for part in found]:
        return False
    return all(_same_turn(a, b) for a, b in zip(stored, found, strict=True))


def _same_turn(stored: TurnAdvantages, found: TurnAdvantages) -> bool:
    names = PARTS
    if stored.peer is None and stored.truth is None:
        names = PARTS[:3]
    same = close(known_critic(stored), known_critic(found))
    return same and all(close(getattr(stored, name), getattr(found, name)) for name in names)


def close(a: float | None, b: float | None) -> bool:
    """Return whether two numbers are the same but for rounding; no number is only like no number."""
    if a is None or b is None:
        return a is b
    return isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)


def replay_run(
    store: RunStore,
    own: Scheme,
    other: Scheme,
    *,
    filter: str = "",
    first: int = 0,
    last: int | None = None,
    tell: Callable[[], None] = lambda: None,
    look: Look = lambda scored: None,
) -> Iterator[DebateChange]:
    """Yield what changes in the debates of a filter in steps ``first`` to ``last``; FilterError as ever.

    The filter and the steps choose what is shown. Advantages are of whole steps all the same, and with
    running means the steps before ``first`` are gone through as well. ``tell`` is called
    for each debate read, ``look`` for each step.
    """
    wanted = _ids(store, filter) if filter.strip() else None
    begin = 0 if own.remembers or other.remembers else first
    read = _read(store, begin, last, tell)
    for change in compare_steps(read, own, other, look):
        if change.step >= first and (wanted is None or change.id in wanted):
            yield change


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep Python from looking for cycles, a fifth of a replay's time: its values have none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _ids(store: RunStore, filter: str) -> set[str]:
    found: set[str] = set()
    after: str | None = None
    while page := store.debates(filter, after=after, limit=1000):
        found.update(row.id for row in page)
        after = page[-1].id
    return found


def _read(
    store: RunStore, first: int, last: int | None, tell: Callable[[], None]
) -> Iterator[tuple[str, Record]]:
    for item in store.records(steps_filter(first, last)):
        tell()
        yield item


def steps_filter(first: int, last: int | None) -> str:
    """Return the filter that finds some steps.

    >>> steps_filter(3, None), steps_filter(0, 5)
    ('step:3..', 'step:0..5')
    """
    return f"step:{first}..{'' if last is None else last}"
