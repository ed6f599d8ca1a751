"""The numbers of "Why this reward?": recomputed by what training calls, and as stored."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.formatting import figure
from debate_rl.replay.scheme import Scheme, ScoredStep, advantages_of_step, close, score_step, steps_filter
from learner.advantages import Advantages
from learner.advantages.turns import BESIDE, StreamName
from learner.types import Transition
from rewards import Credit, RewardConfig
from rewards.labels import OF_TRUTH
from rewards.types import Correct, stream_named, value_of
from transcripts import Record, RunStore

MOST_BEFORE = 2000
"""Debates before a step that are gone through for its running means: 1 to 2 seconds."""
FORGOTTEN = 1e-12
"""What a running mean's start may still count for where not all steps before were gone through."""
_FIGURE = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the chain.

    ``value``: as recomputed; None without signal, or where nothing was recomputed. ``formula``: arithmetic
    with its figures in full, whose value it is, or "". ``stored``: what the transcript has. ``matches``:
    both are the same but for rounding; None without both. ``source``: where it comes from, or why not.
    """

    value: float | None = None
    formula: str = ""
    stored: float | None = None
    matches: bool | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The formula with rounded figures, and what it gives.

        >>> Number(1 / 3, "(2.0 - 1.0) / (2 + 1 + 0)").text
        '(2 - 1) / (2 + 1 + 0) = 0.3333'
        >>> Number(-1.0, "(-1.0)").text, Number(None).text
        ('-1', 'none')
        """
        shown = figure(self.value if self.value is not None else self.stored)
        formula = _FIGURE.sub(lambda match: f"{float(match[0]):.4g}", self.formula)
        return f"{formula} = {shown}" if formula.strip("()") not in ("", shown) else shown


def written(value: float | None) -> str:
    """Return a number in full, in parentheses where it is negative; "" for None.

    >>> written(0.1), written(-1), written(None)
    ('0.1', '(-1)', '')
    """
    if value is None:
        return ""
    return repr(value) if value >= 0 else f"({value!r})"


def added(values: Sequence[float]) -> str:
    """Return a sum in full, "0" of nothing.

    >>> added([1, -1, 0.5])
    '1 + (-1) + 0.5'
    """
    return " + ".join(map(written, values)) or "0"


@dataclass(frozen=True, slots=True)
class Step:
    """A step under a scheme: its debates' ids, their rewards, and the advantages with what made them.

    ``index``: which of the turns is explained. ``means_known``: whether the running means before the step
    are known; ``means_source`` says from which steps.
    """

    scheme: Scheme
    ids: tuple[str, ...]
    scored: ScoredStep
    advantages: Advantages
    index: int
    means_known: bool
    means_source: str

    @property
    def own(self) -> Transition:
        """The turn that is explained."""
        return self.scored.transitions[self.index]

    def paid(self, debate: int) -> Correct:
        """Return the grades by which a debate of the step had its truth rewarded."""
        return self.scored.credits[debate].grades_of_truth(self.scored.records[debate].correct)

    def knows(self, stream: StreamName) -> bool:
        """Return whether a stream's advantages are known, as far as they depend on running means."""
        measured = stream in ("peer", "mixed") and self.scheme.rewards.peer_weight == "measured"
        rae = getattr(self.scheme.advantages, stream).baseline == "rae"
        return self.means_known or not (measured or rae)


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
        if self.step is not None:
            return self.step.scored.credits[self.step.own.debate]
        return self.record.credit or OF_TRUTH

    def scores(self, stream: str) -> Sequence[Sequence[float | None]]:
        """Return a recomputed reward stream of the debate; () where nothing was recomputed."""
        return (
            () if self.step is None else stream_named(self.step.scored.rewards[self.step.own.debate], stream)
        )

    def reward(self, stream: str, source: str, formula: str | None = None) -> Number:
        """Return a reward of the turn; without a formula it is what it is."""
        stored = value_of(stream_named(self.record.rewards, stream), self.turn)
        if self.step is None:
            return Number(stored=stored, source=source)
        value = value_of(self.scores(stream), self.turn)
        return _compared(value, stored, formula, source, comparable=self.record.rewards is not None)

    def total(self, part: str, source: str, formula: str | None = None, *, known: bool = True) -> Number:
        """Return an advantage of the turn; ``known`` False: it could not be recomputed."""
        stored = next(
            (getattr(of, part, None) for of in self.record.advantages if of.turn == self.turn), None
        )
        stored = None if stored is UNSET else stored
        if self.step is None or not known:
            return Number(stored=stored, source=source)
        value = getattr(self.step.advantages.turns[self.step.index], part, None)
        apart = part not in ("peer", "truth") or any(
            of.peer is not None or of.truth is not None for of in self.record.advantages
        )
        apart = apart and part not in BESIDE  # which are not stored
        return _compared(value, stored, formula, source, comparable=apart and self.record.rewards is not None)


def _compared(
    value: float | None, stored: float | None, formula: str | None, source: str, *, comparable: bool
) -> Number:
    """Return a recomputed number beside the stored one; ``comparable``: something is stored, None perhaps."""
    text = "" if value is None else written(value) if formula is None else formula
    return Number(value, text, stored, close(stored, value) if comparable else None, source)


def recompute(store: RunStore, scheme: Scheme, id: str, turn: TurnId) -> Step:
    """Return the step of a turn recomputed; an error where its debates do not allow that.

    Running means forget: any start is the same after enough steps, each of which leaves ``ema_decay`` of it.
    """
    step = int(id.partition(".")[0])
    held = dict(store.records(steps_filter(step, step)))
    ids, scored = tuple(held), score_step(list(held.values()), scheme)
    first, count = _reach(store, step) if scheme.remembers else (0, 0)
    means, moves = _means_before(store, scheme, first, step) if scheme.remembers else ({}, Counter[str]())
    advantages = advantages_of_step(scored, scheme, means)
    forgotten = scheme.rewards.peer_weight != "measured" and all(
        scheme.advantages.ema_decay ** moves[key] <= FORGOTTEN for key in _moved(advantages)
    )
    known, source = True, f"running means from the {count} debates of steps {first} to {step - 1}"
    if step == 0:
        source = "no step before: the running means begin at 0"
    elif first >= step:
        known, source = False, f"the step before has more than {MOST_BEFORE} debates"
    elif first > 0 and not forgotten:
        known, source = False, f"the running means reach back further than {MOST_BEFORE} debates"
    index = [(ids[one.debate], one.turn.id) for one in scored.transitions].index((id, turn))
    return Step(scheme.at_step(step), ids, scored, advantages, index, known, source)


def _means_before(
    store: RunStore, scheme: Scheme, first: int, step: int
) -> tuple[dict[str, float], Counter[str]]:
    """Return the running means before a step, from step ``first`` on, and how many steps moved each."""
    means, moves = dict[str, float](), Counter[str]()
    records = store.records(steps_filter(first, step - 1)) if first < step else ()
    for _, of_step in groupby((record for _, record in records), key=lambda record: record.step):
        moves.update(_moved(advantages_of_step(score_step(list(of_step), scheme), scheme, means)))
    return means, moves


def _moved(advantages: Advantages) -> set[str]:
    """Return the running means that a step moved."""
    return {key for of in advantages.streams.values() for key in of.groups if isinstance(key, str)}


def _reach(store: RunStore, step: int) -> tuple[int, int]:
    """Return the first step to go through, all of whose debates are within reach, and how many debates."""
    rows = store.debates(f"step:..{step - 1}", newest=True, limit=MOST_BEFORE + 1) if step else []
    if len(rows) <= MOST_BEFORE:
        return 0, len(rows)
    first = rows[-1].step + 1
    return first, sum(row.step >= first for row in rows)
