"""Recompute rewards and advantages of stored debates under a run's own and another scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isclose
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.rollouts.records import advantages_by_debate
from envs.registry import key_by_itself
from learner.advantages import AdvantageConfig, turn_advantages
from learner.advantages.turns import Advantages, generator_streams
from learner.types import Transition, group_indices, transitions_of
from rewards import STREAMS, Credit, RewardConfig, Rewards, score_debates
from rewards.measured import measure
from rewards.nan_rewards import drop_nan_rewards
from rewards.types import OPTIONAL_STREAMS, stream_named, value_of
from transcripts import Record, RunStore, TurnAdvantages
from transcripts.record import PARTS

if TYPE_CHECKING:
    from debate_rl.config import Config

Column: TypeAlias = list[float | None]
CRITIC = "critic"
"""The part of advantages for criticism, which critiques have in addition to ``PARTS``."""
MOST_BEFORE = 2000
"""Running means are computed from at most this many earlier debates, which takes 1 to 2 seconds."""
CLOSE = 1e-9
"""Tolerance of equality, because processors differ in rounding."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """All settings that determine advantages. ``group_size``: the number K of debates per problem.

    ``seed``: the run's seed, which selects the problems with labels. ``coins``: True if coin tosses replace
    truth (``train.control``).
    """

    rewards: RewardConfig
    advantages: AdvantageConfig
    group_size: int
    seed: int = 0
    coins: bool = False

    @property
    def remembers(self) -> bool:
        """True if advantages depend on earlier steps, through running means or measured votes."""
        names = (*generator_streams(self.rewards), "judge", "persuasion", "format")
        return self.rewards.peer_weight == "measured" or any(
            getattr(self.advantages, name).baseline == "rae" for name in names
        )

    def at_step(self, step: int) -> Scheme:
        """Return the scheme with each ramp replaced by its value at a step."""
        return replace(self, rewards=self.rewards.at_step(step), advantages=self.advantages.at_step(step))


def scheme_of(config: Config) -> Scheme:
    """Return the scheme of a configuration."""
    coins = config.train.control == "random_reward"
    return Scheme(config.rewards, config.advantages, config.train.group_size, config.seed, coins)


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """The debates of a step with rewards, credits, numbers of rewards that were not finite, and turns."""

    step: int
    records: Sequence[Record]
    rewards: Sequence[Rewards]
    credits: Sequence[Credit]
    not_finite: Sequence[int]
    transitions: Sequence[Transition]


class Replayed(NamedTuple):
    """A debate's rewards and, in order, its turns' advantages. ``not_finite`` rewards became None."""

    rewards: Rewards
    advantages: tuple[TurnAdvantages, ...]
    not_finite: int = 0


def score_step(records: Sequence[Record], scheme: Scheme) -> ScoredStep:
    """Return the rewards of a step. ``records``: all records of the step, in order."""
    step = records[0].step if records else 0
    debates = [record.debate for record in records]
    groups = group_indices([record.group for record in records], scheme.group_size)
    given, credits = score_debates(
        debates,
        [record.correct for record in records],
        groups,
        scheme.rewards.at_step(step),
        seed=scheme.seed,
        verdicts=[record.verdicts or None for record in records],
        likelihoods=[record.likelihoods or None for record in records],
        key=key_by_itself,
        coins=scheme.coins,
    )
    scored = [drop_nan_rewards(one) for one in given]
    rewards, not_finite = [reward for reward, _ in scored], [count for _, count in scored]
    return ScoredStep(step, records, rewards, credits, not_finite, transitions_of(debates, rewards, groups))


def advantages_of_step(scored: ScoredStep, scheme: Scheme, ema: MutableMapping[str, float]) -> Advantages:
    """Return the advantages of a step's turns. ``ema``: running means, which are updated."""
    now = scheme.at_step(scored.step)
    found = turn_advantages(scored.transitions, now.rewards, now.advantages, ema, counted=False)
    if now.rewards.peer_weight == "measured":  # votes on labelled problems set the weight of later votes
        pairs = zip(scored.records, scored.credits, strict=True)
        visible = [record.correct if credit.truth == "truth" else None for record, credit in pairs]
        measure(ema, [record.debate for record in scored.records], visible, key_by_itself)
    return found


def means_before(store: RunStore, scheme: Scheme, step: int) -> tuple[dict[str, float], bool, str]:
    """Return the running means before a step, whether they are known, and the steps that they come from.

    They are not computed from more than ``MOST_BEFORE`` earlier debates.
    """
    means, earlier = dict[str, float](), f"step:..{step - 1}"
    if step < 1:
        return means, True, "no earlier step: the running means start at 0"
    count = store.count(earlier) if scheme.remembers else 0
    if count > MOST_BEFORE:
        return means, False, f"the running means depend on more than {MOST_BEFORE} earlier debates"
    if count:
        for _, of_step in groupby((record for _, record in store.records(earlier)), key=lambda one: one.step):
            advantages_of_step(score_step(list(of_step), scheme), scheme, means)
    return means, True, f"running means from the {count} debates of steps 0 to {step - 1}"


def replay_step(scored: ScoredStep, scheme: Scheme, ema: MutableMapping[str, float]) -> list[Replayed]:
    """Return the rewards and advantages of each debate of a step. ``ema``: as in ``advantages_of_step``."""
    found = advantages_of_step(scored, scheme, ema)
    parts = advantages_by_debate([record.debate for record in scored.records], found.turns)
    return list(map(Replayed, scored.rewards, parts, scored.not_finite))


class Columns(NamedTuple):
    """Rewards and advantages of a debate by stream: a number per turn, or None without a signal."""

    rewards: Mapping[str, Column]
    advantages: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class DebateChange:
    """A debate under both schemes.

    ``personas``: by agent. ``rounds``: the number R of rounds; round R is the final ballot. ``change``: sum
    of |new - old| over the advantages of generator, judge, critic and format, with 0 for no signal.
    ``checked``: True if rewards were stored. ``differs``: True if the run's own scheme does not reproduce the
    stored values. ``not_finite``: number of new rewards that are infinite or not a number; they become None.
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


def replay_run(
    store: RunStore,
    own: Scheme,
    other: Scheme,
    *,
    filter: str = "",
    first: int = 0,
    last: int | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Iterator[DebateChange]:
    """Yield the changes of the debates that match a filter in steps ``first`` to ``last``.

    Advantages are computed over whole steps; with running means, the steps before ``first`` are replayed too.
    ``tell`` is called for each debate read. Raise FilterError for an invalid filter.
    """

    def counted() -> Iterator[tuple[str, Record]]:
        begin = 0 if own.remembers or other.remembers else first
        for item in store.records(f"step:{begin}..{'' if last is None else last}"):
            tell()
            yield item

    wanted, after = set[str](), None
    while filter.strip() and (page := store.debates(filter, after=after, limit=1000)):
        wanted.update(row.id for row in page)
        after = page[-1].id
    for change in compare_steps(counted(), own, other):
        if change.step >= first and (not filter.strip() or change.id in wanted):
            yield change


def compare_steps(
    records: Iterable[tuple[str, Record]], own: Scheme, other: Scheme
) -> Iterator[DebateChange]:
    """Yield the changes of each debate. ``records``: ids and records of complete steps, in order.

    Only one step is in memory at a time. Running means carry over between steps.
    """
    own_means: dict[str, float] = {}
    other_means: dict[str, float] = {}
    for _, of_step in groupby(records, key=lambda item: item[1].step):
        ids, step = zip(*of_step, strict=True)
        scored = score_step(step, own)
        old = new = replay_step(scored, own, own_means)
        if other != own:
            new = replay_step(score_step(step, other), other, other_means)
        yield from map(_change, ids, step, old, new)


def _change(id: str, one: Record, before: Replayed, after: Replayed) -> DebateChange:
    turns = tuple(turn.id for turn in one.debate.turns)
    critique = one.debate.protocol.protocol == "critique"
    old = _columns(turns, before, critique=critique)
    new = old if after is before else _columns(turns, after, critique=critique)
    learnt = (*PARTS[:3], CRITIC) if critique else PARTS[:3]
    pairs = (zip(old.advantages[name], new.advantages[name], strict=True) for name in learnt)
    return DebateChange(
        id=id,
        step=one.step,
        problem=one.debate.problem.id,
        personas=tuple(persona.name for persona in one.debate.personas),
        rounds=one.debate.protocol.num_rounds,
        turns=turns,
        old=old,
        new=new,
        change=sum(sum(abs((b or 0.0) - (a or 0.0)) for a, b in pair) for pair in pairs),
        checked=one.rewards is not None,
        differs=one.rewards is not None and not _is_stored(one, one.rewards, before),
        not_finite=after.not_finite,
    )


def _columns(turns: Sequence[TurnId], replayed: Replayed, *, critique: bool) -> Columns:
    streams = {name: stream_named(replayed.rewards, name) for name in STREAMS}
    if critique:
        streams["persuasion"] = stream_named(replayed.rewards, "persuasion")
    rewards = {name: [value_of(stream, turn) for turn in turns] for name, stream in streams.items()}
    by_turn = {part.turn: part for part in replayed.advantages}
    parts = [by_turn.get(turn) for turn in turns]
    advantages = {name: [None if part is None else getattr(part, name) for part in parts] for name in PARTS}
    if critique:
        advantages[CRITIC] = [None if part is None else _critic(part) for part in parts]
    return Columns(rewards, advantages)


def _critic(part: TurnAdvantages) -> float | None:
    return None if part.critic is UNSET else part.critic


def _is_stored(one: Record, stored: Rewards, replayed: Replayed) -> bool:
    """Return True if stored and replayed rewards and advantages are equal up to rounding."""
    for name in (*STREAMS, *OPTIONAL_STREAMS):
        a, b = stream_named(stored, name), stream_named(replayed.rewards, name)
        if [len(row) for row in a] != [len(row) for row in b]:
            return False
        if not all(map(close, [x for row in a for x in row], [y for row in b for y in row])):
            return False
    return same_advantages(one.advantages, replayed.advantages)


def same_advantages(stored: Sequence[TurnAdvantages], found: Sequence[TurnAdvantages]) -> bool:
    """Return True if advantages are equal up to rounding. Compare peer and truth only if stored.

    >>> a, b = (TurnAdvantages(TurnId(0, 0), 0.5, peer=peer) for peer in (None, 0.5))
    >>> same_advantages([a], [b]), same_advantages([b], [a]), same_advantages([a], [])
    (True, False, False)
    """
    if [part.turn for part in stored] != [part.turn for part in found]:
        return False
    for a, b in zip(stored, found, strict=True):
        names = PARTS[:3] if a.peer is None and a.truth is None else PARTS
        if not close(_critic(a), _critic(b)) or not all(close(getattr(a, n), getattr(b, n)) for n in names):
            return False
    return True


def close(a: float | None, b: float | None) -> bool:
    """Return True if two numbers are equal up to rounding. None equals only None."""
    if a is None or b is None:
        return a is b
    return isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)
