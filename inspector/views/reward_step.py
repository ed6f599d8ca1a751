"""A whole step paid again, as training pays it, for the explanation of one of its turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from debate.types import TurnId
from learner.advantages import Advantages, turn_advantages
from learner.replay.reading import StoredDebate, stored_debate
from learner.replay.running import steps_filter
from learner.replay.scheme import Paid, Replayed, Scheme, pay_step, replay_step, replayed
from learner.types import Transition
from transcripts import RunStore

MOST_BEFORE = 2000
"""Debates before a step that are gone through for its running means: 1 to 2 seconds."""
FORGOTTEN = 1e-12
"""What a running mean's start may still count for where not all steps before were gone through."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step under a scheme: its turns in order, the debates' ids, and what each debate gets.

    ``means``: the running means before it, None where they are not known; ``before`` says from which steps.
    """

    scheme: Scheme
    transitions: Sequence[Transition]
    ids: tuple[str, ...]
    advantages: Advantages
    replayed: dict[str, Replayed]
    means: dict[str, float] | None
    before: str

    def index(self, id: str, turn: TurnId) -> int | None:
        """Return which of the turns is this one, None where the step has no such turn."""
        for number, one in enumerate(self.transitions):
            if one.turn.id == turn and self.ids[one.debate] == id:
                return number
        return None


def pay_again(store: RunStore, scheme: Scheme, step: int) -> Step:
    """Return a step paid again; TranscriptError or ValueError where its debates do not allow that."""
    debates = list(_read(store, step, step))
    paid = pay_step(debates, scheme)
    means, before = _means_before(store, scheme, paid, step) if scheme.remembers else ({}, "")
    found = turn_advantages(
        paid.transitions, scheme.rewards, scheme.advantages, dict(means or {}), counted=False
    )
    ids = tuple(one.id for one in debates)
    of_debates = dict(zip(ids, replayed(paid, found), strict=True))
    return Step(scheme, paid.transitions, ids, found, of_debates, means, before)


def _read(store: RunStore, first: int, last: int) -> Iterator[StoredDebate]:
    for id, data in store.raw(steps_filter(first, last)):
        yield stored_debate(id, data)


def _means_before(
    store: RunStore, scheme: Scheme, paid: Paid, step: int
) -> tuple[dict[str, float] | None, str]:
    """Return the running means before a step, and from which steps; None where they are too far to go for.

    Means forget: from two starts, 0 and 1, the same means come where the steps gone through are enough. A
    mean that ``paid``, the step itself, needs and that none of these steps moved is not known either.
    """
    if step == 0:
        return {}, "no step before: the running means begin at 0"
    first, count = _far_enough(store, step)
    if first >= step:
        return None, f"the step before has more than {MOST_BEFORE} debates"
    ends: tuple[_Means, _Means] = _Means(0.0), _Means(0.0 if first == 0 else 1.0)
    for _, of_step in groupby(_read(store, first, step - 1), key=lambda one: one.step):
        earlier = pay_step(list(of_step), scheme)
        for means in ends[: 1 if first == 0 else 2]:
            replay_step(earlier, scheme, means)
    if first > 0:
        replay_step(paid, scheme, needed := dict(ends[0]))
        if any(key not in ends[0] or abs(ends[0][key] - ends[1][key]) > FORGOTTEN for key in needed):
            return None, f"the running means reach back further than {MOST_BEFORE} debates"
    told = f"running means from the {count} debates of steps {first} to {step - 1}"
    return dict(ends[0]), told


class _Means(dict[str, float]):
    """Running means that begin at some number."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self._start = start

    def get(self, key: str, default: float | None = None) -> float:  # type: ignore[override]
        return super().get(key, self._start)


def _far_enough(store: RunStore, step: int) -> tuple[int, int]:
    """Return the first step to go through, all of whose debates are within reach, and how many debates."""
    rows = store.debates(f"step:..{step - 1}", newest=True, limit=MOST_BEFORE + 1)
    if len(rows) <= MOST_BEFORE:
        return 0, len(rows)
    first = rows[-1].step + 1
    return first, sum(row.step >= first for row in rows)
