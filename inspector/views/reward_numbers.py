"""Numbers of the explanation beside what is stored, and arithmetic written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debate.types import TurnId
from inspector.views.reward_types import Number
from learner.replay.comparing import close
from rewards import Rewards
from transcripts import Record, TurnAdvantages


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


def arithmetic(value: float | None) -> str:
    """Return the formula of a number that is what it is: itself."""
    return written(value)


def compared(value: float | None, stored: float | None, formula: str, source: str, *, kept: bool) -> Number:
    """Return a recomputed number beside the stored one; ``kept``: something is stored, None perhaps."""
    matches = close(stored, value) if kept else None
    return Number(value, formula if value is not None else "", stored, matches, source)


def only_stored(stored: float | None, source: str) -> Number:
    """Return a number that was not computed again."""
    return Number(stored=stored, source=source)


@dataclass(frozen=True, slots=True)
class Sources:
    """A debate's numbers: as stored in its record, and as recomputed; None for what there is not."""

    record: Record
    rewards: Rewards | None
    advantages: tuple[TurnAdvantages, ...] | None

    def reward(
        self, stream: str, turn: TurnId, formula: str | Callable[[float | None], str], source: str
    ) -> Number:
        """Return a reward of the turn; a formula may be made of its value."""
        stored = self.stored_reward(stream, turn)
        if self.rewards is None:
            return only_stored(stored, source)
        value = cell(getattr(self.rewards, stream), turn)
        text = formula if isinstance(formula, str) else formula(value)
        return compared(value, stored, text, source, kept=self.record.rewards is not None)

    def stored_reward(self, stream: str, turn: TurnId) -> float | None:
        """Return what is stored of a turn's reward."""
        return None if self.record.rewards is None else cell(getattr(self.record.rewards, stream), turn)

    def total(self, part: str, turn: TurnId, formula: str, source: str, *, known: bool = True) -> Number:
        """Return an advantage of the turn; ``known`` False: it was not computed again."""
        stored = _part(self.record.advantages, part, turn)
        if self.advantages is None or not known:
            return only_stored(stored, source)
        value = _part(self.advantages, part, turn)
        return compared(value, stored, formula, source, kept=self._keeps(part))

    def _keeps(self, part: str) -> bool:
        """Return whether advantages are stored; older transcripts have none of peer and truth apart."""
        stored = self.record.advantages
        if part in ("peer", "truth") and not any(_has_parts(one) for one in stored):
            return False
        return self.record.rewards is not None


def _has_parts(one: TurnAdvantages) -> bool:
    return one.peer is not None or one.truth is not None


def cell(table: Sequence[Sequence[float | None]], turn: TurnId) -> float | None:
    """Return ``table[agent][round]``, None beyond its ends.

    >>> cell(((0.5,),), TurnId(0, 0)), cell(((0.5,),), TurnId(0, 1))
    (0.5, None)
    """
    row = table[turn.agent] if 0 <= turn.agent < len(table) else ()
    return row[turn.round] if 0 <= turn.round < len(row) else None


def _part(advantages: Sequence[TurnAdvantages], part: str, turn: TurnId) -> float | None:
    return next((getattr(one, part) for one in advantages if one.turn == turn), None)
