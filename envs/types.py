"""Types for grading: the answer found in a reply, and its grade."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from debate.types import Span

Mode: TypeAlias = Literal[
    "boxed",
    "gsm8k_strict",
    "answer_is",
    "lenient",
    "gsm8k_strict_match",
    "gsm8k_flexible_extract",
    "minerva_exact",
    "math_verify",
    "first_number",
    "first_letter",
    "hendrycks",
    "prm800k",
]
"""How an answer is found and compared: our own four modes, then the modes of other harnesses."""
GradeKind: TypeAlias = Literal[
    "auto", "number", "expression", "choice", "text", "verbatim", "overlap", "instructions", "code"
]
Verdict: TypeAlias = bool | Literal["missing"] | None
FAULTS = ("failed", "timeout", "truncated", "no_verdict", "several", "out_of_range")
"""Why a verifier model gave no verdict. "out_of_range": neither a score from 0 to 1 nor one of the labels."""

MODES: tuple[Mode, ...] = get_args(Mode)
GRADE_KINDS: tuple[GradeKind, ...] = get_args(GradeKind)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer found in a reply, as written; ``answer`` is None if the mode found none.

    ``method`` is the rule that found the answer ("boxed", "####", "answer_is", "bare", "last_number",
    "last_letter", "none", or a rule of another harness); an empty box is the answer "".
    """

    answer: str | None
    method: str
    span: Span | None = None


class GradeStatus(StrEnum):
    """The outcome of grading. Only the first two say whether the answer is right."""

    CORRECT = "correct"
    WRONG = "wrong"
    MISSING = "missing"  # no answer could be extracted
    TIMEOUT = "timeout"  # the comparison hit the hard limit and was killed
    CRASH = "crash"  # the comparison failed: memory, a bug in a library, a dead worker


@dataclass(frozen=True, slots=True)
class Grade:
    """A graded answer: ``method`` is the rule that decided, ``seconds`` the wall time of the whole call.

    ``parts``: the instructions of a response by id, or a program's tests, and whether each holds; the answer
    is right if all do. ``share``: the right fraction of the answer, for kinds that measure it without parts.
    """

    status: GradeStatus
    method: str
    extracted: str | None = None
    seconds: float = 0.0
    parts: tuple[tuple[str, bool], ...] = ()
    share: float | None = None

    @property
    def score(self) -> float | None:
        """The fraction that is right: ``share``, else of the parts, else 1 or 0; None if nothing was graded.

        >>> parts = (("punctuation:no_comma", True), ("startend:quotation", False))
        >>> Grade(GradeStatus.WRONG, "", parts=parts).score
        0.5
        """
        if self.verdict is None:
            return None
        if self.share is not None:
            return self.share
        if not self.parts:
            return float(self.verdict is True)
        return sum(right for _, right in self.parts) / len(self.parts)

    @property
    def verdict(self) -> Verdict:
        """The grade in the form that rewards use: True, False, "missing", or None if nothing was graded.

        >>> [Grade(status, "").verdict for status in GradeStatus]
        [True, False, 'missing', None, None]
        """
        known: dict[str, Verdict] = {"correct": True, "wrong": False, "missing": "missing"}
        return known.get(self.status)
