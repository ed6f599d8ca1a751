"""The step of one turn recomputed, as training computes it; ``reward_arithmetic`` explains its numbers.

Every number comes from the functions that training calls; what is added here is how it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.inspector.views.reward_types import Number, written
from debate_rl.replay.scheme import Scheme, ScoredStep, advantages_of_step, close, score_step, steps_filter
from learner.advantages import Advantages, StreamSettings
from learner.advantages.turns import StreamName
from learner.types import Transition
from rewards import Credit, RewardConfig, Rewards
from rewards.labels import OF_TRUTH
from rewards.types import Correct, stream_named, value_of
from transcripts import Record, RunStore, TurnAdvantages

MOST_BEFORE = 2000
"""Debates before a step that are gone through for its running means: 1 to 2 seconds."""
FORGOTTEN = 1e-12
"""What a running mean's start may still count for where not all steps before were gone through."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step under a scheme: its debates' ids, its turns in order, their advantages and what made them.

    ``correct``: the grades of each debate; ``credits``: what rewarded it. ``index``: which of the turns is
    explained, and ``rewards`` those of its debate. ``means_known``: whether the running means before the step
    are known; ``means_source`` says from which steps.
    """

    scheme: Scheme
    ids: tuple[str, ...]
    correct: tuple[Correct, ...]
    credits: tuple[Credit, ...]
    transitions: Sequence[Transition]
    advantages: Advantages
    index: int
    rewards: Rewards
    means_known: bool
    means_source: str

    @property
    def credit(self) -> Credit:
        """What the turn's debate was rewarded by."""
        return self.credits[self.transitions[self.index].debate]

    def paid(self, debate: int) -> Correct:
        """Return the grades by which a debate of the step had its truth rewarded."""
        return self.credits[debate].grades_of_truth(self.correct[debate])

    def knows(self, stream: StreamName) -> bool:
        """Return whether a stream's advantages are known, as far as they depend on running means."""
        measured = stream in ("peer", "mixed") and self.scheme.rewards.peer_weight == "measured"
        return self.means_known or not (measured or self.baseline(stream) == "rae")

    def baseline(self, stream: StreamName) -> str:
        """Return what a stream's values are compared with."""
        settings: StreamSettings = getattr(self.scheme.advantages, stream)
        return settings.baseline


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a turn: as stored in its record, and as recomputed with its step where it was."""

    record: Record
    turn: TurnId
    step: Step | None

    @property
    def scheme(self) -> RewardConfig | None:
        """What rewarded the turn, None where that is not known."""
        return None if self.step is None else self.step.scheme.rewards

    @property
    def credit(self) -> Credit:
        """What the debate was rewarded by."""
        return self.step.credit if self.step is not None else self.record.credit or OF_TRUTH

    def reward(self, stream: str, source: str, formula: str | None = None) -> Number:
        """Return a reward of the turn; without a formula it is what it is."""
        stored = value_of(stream_named(self.record.rewards, stream), self.turn)
        if self.step is None:
            return Number(stored=stored, source=source)
        value = value_of(stream_named(self.step.rewards, stream), self.turn)
        return _compared(value, stored, formula, source, comparable=self.record.rewards is not None)

    def total(self, part: str, source: str, formula: str | None = None, *, known: bool = True) -> Number:
        """Return an advantage of the turn; ``known`` False: it could not be recomputed."""
        parts = next((parts for parts in self.record.advantages if parts.turn == self.turn), None)
        stored = getattr(parts, part, None)
        stored = None if stored is UNSET else stored
        if self.step is None or not known:
            return Number(stored=stored, source=source)
        value = getattr(self.step.advantages.turns[self.step.index], part, None)
        apart = part not in ("peer", "truth") or any(map(_has_parts, self.record.advantages))
        return _compared(value, stored, formula, source, comparable=apart and self.record.rewards is not None)


def _has_parts(advantages: TurnAdvantages) -> bool:
    """Return whether peer and truth are stored apart."""
    return advantages.peer is not None or advantages.truth is not None


def _compared(
    value: float | None, stored: float | None, formula: str | None, source: str, *, comparable: bool
) -> Number:
    """Return a recomputed number beside the stored one; ``comparable``: something is stored, None perhaps."""
    text = "" if value is None else written(value) if formula is None else formula
    return Number(value, text, stored, close(stored, value) if comparable else None, source)


def recompute(store: RunStore, scheme: Scheme, id: str, turn: TurnId) -> Step:
    """Return the step of a turn recomputed; an error where its debates do not allow that."""
    step = int(id.partition(".")[0])
    held = dict(store.records(steps_filter(step, step)))
    rewarded = score_step(list(held.values()), scheme)
    before = _before(store, scheme, step) if scheme.remembers else _Before({}, Counter(), 0, 0)
    advantages = _advantages(rewarded, scheme, before.means)
    forgotten = all(
        scheme.advantages.ema_decay ** before.moves[key] <= FORGOTTEN for key in _moves(advantages)
    )
    ids = tuple(held)
    index = [(ids[each.debate], each.turn.id) for each in rewarded.transitions].index((id, turn))
    rewards = rewarded.rewards[rewarded.transitions[index].debate]
    forgotten = forgotten and scheme.rewards.peer_weight != "measured"
    known, source = _means_source(step, before, forgotten=forgotten)
    correct = tuple(record.correct for record in held.values())
    own = scheme.at_step(step)
    return Step(
        *(own, ids, correct, tuple(rewarded.credits), rewarded.transitions, advantages, index),
        *(rewards, known, source),
    )


class _Before(NamedTuple):
    """Running means before a step, and how many steps moved each, from step ``first`` on."""

    means: dict[str, float]
    moves: Counter[str]
    first: int
    debates: int


def _before(store: RunStore, scheme: Scheme, step: int) -> _Before:
    first, count = _reach(store, step)
    before = _Before({}, Counter(), first, count)
    records = store.records(steps_filter(first, step - 1)) if first < step else ()
    for _, of_step in groupby((record for _, record in records), key=lambda record: record.step):
        before.moves.update(_moves(_advantages(score_step(list(of_step), scheme), scheme, before.means)))
    return before


def _advantages(step: ScoredStep, scheme: Scheme, means: dict[str, float]) -> Advantages:
    return advantages_of_step(step, scheme, means)


def _moves(advantages: Advantages) -> Counter[str]:
    """Return once each running mean that a step moved."""
    keys = (key for stream in advantages.streams.values() for key in stream.groups)
    return Counter(key for key in keys if isinstance(key, str))


def _reach(store: RunStore, step: int) -> tuple[int, int]:
    """Return the first step to go through, all of whose debates are within reach, and how many debates."""
    rows = store.debates(f"step:..{step - 1}", newest=True, limit=MOST_BEFORE + 1) if step else []
    if len(rows) <= MOST_BEFORE:
        return 0, len(rows)
    first = rows[-1].step + 1
    return first, sum(row.step >= first for row in rows)


def _means_source(step: int, before: _Before, *, forgotten: bool) -> tuple[bool, str]:
    """Return whether the running means before a step are known, and from which steps or why not.

    Means forget: any start is the same after enough steps, each of which leaves ``ema_decay`` of it.
    """
    if step == 0:
        return True, "no step before: the running means begin at 0"
    if before.first >= step:
        return False, f"the step before has more than {MOST_BEFORE} debates"
    if before.first > 0 and not forgotten:
        return False, f"the running means reach back further than {MOST_BEFORE} debates"
    return True, f"running means from the {before.debates} debates of steps {before.first} to {step - 1}"
