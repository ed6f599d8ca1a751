"""What the diagnostic questions share: a question, its answer for a run, and the words for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from debate_rl.formatting import short
from debate_rl.reports.document import Tone
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.talk_alarms import SOLVED

Word = Literal["good", "warn", "bad", "unknown"]
SOURCE = "debate training analysis"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in numbers, and its verdict; ``crossed`` counts thresholds of ``asked`` that were crossed."""

    word: Word
    text: str

    @property
    def tone(self) -> Tone:
        """How the answer is to be taken."""
        return "" if self.word == "unknown" else self.word


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``rule`` is its threshold, ``filter`` finds examples."""

    name: str
    text: str
    rule: str
    source: str
    filter: str
    answer: Callable[[Run], Answer]


UNKNOWN = "the run does not say"


def worst(*words: Word) -> Word:
    """Return the worst of the words; of "unknown" alone "unknown".

    >>> worst("good", "unknown", "warn"), worst("unknown")
    ('warn', 'unknown')
    """
    for word in ("bad", "warn", "good"):
        if word in words:
            return word
    return "unknown"


def graded(value: float | None, *, good: float, bad: float) -> Word:
    """Return the word of a value between two thresholds, whichever of them is higher; None is unknown.

    >>> graded(0.6, good=0.5, bad=0.7), graded(0.1, good=0.5, bad=0.7), graded(0.5, good=0.7, bad=0.55)
    ('warn', 'good', 'bad')
    """
    if value is None:
        return "unknown"
    if good <= bad:
        return "good" if value <= good else "bad" if value > bad else "warn"
    return "good" if value >= good else "bad" if value < bad else "warn"


def early(run: Run, name: str, width: int = 5) -> float | None:
    """Return the mean of the first values of a figure."""
    values = run.curves.of(name)[1]
    return float(values[:width].mean()) if len(values) else None


def late(run: Run, name: str, width: int = 10) -> float | None:
    """Return the mean of the last values of a figure."""
    values = run.curves.of(name)[1]
    return float(values[-width:].mean()) if len(values) else None


def solved(run: Run) -> bool:
    """Are over .9 of the last answers right? Then solutions may well be alike."""
    return (late(run, "correct") or 0.0) > SOLVED


def whole(run: Run, name: str) -> float | None:
    """Return the sum of a figure over all steps."""
    values = run.curves.of(name)[1]
    return float(values.sum()) if len(values) else None


def median(run: Run, name: str) -> float | None:
    """Return the median of a figure over all steps."""
    values = run.curves.of(name)[1]
    return float(np.median(values)) if len(values) else None


def told(*pairs: tuple[str, float | None]) -> str:
    """Return the known numbers with their names; what the run does not say where there are none.

    >>> told(("votes", 12.0), ("ties", None))
    'votes 12'
    """
    known = [f"{name} {short(value)}" for name, value in pairs if value is not None]
    return ", ".join(known) or UNKNOWN
