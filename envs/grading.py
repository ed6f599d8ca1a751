r"""Say whether an answer is right, in three layers, each faster than the next.

1. A pre-filter refuses what no sane answer contains (``envs.limits``): wrong.
2. An exact path decides equal spelling, words, letters and all plain numbers (``envs.numbers``).
3. math-verify, on the extracted answer alone, in a process that can be killed (``envs.pool``).

A time-out or a crash of the third is a status of its own: nothing was graded, and it is never read as wrong.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import TracebackType
from typing import Self

from envs.boxes import last_box
from envs.choices import LETTERS, letter_of
from envs.extraction import extract
from envs.limits import HEAVY, refusal
from envs.notation import clean, sides, spelling, without_unit
from envs.numbers import Number, parse_number
from envs.pool import Pool
from envs.types import GRADE_KINDS, Grade, GradeKind, GradeStatus, Mode

DEFAULT_LIMIT_S = 3.0
DEFAULT_WORKERS = 2
DEFAULT_MEMORY_MB = 1024
CACHE_SIZE = 65_536

_TEXT_GOLD = re.compile(r"[A-Za-z][A-Za-z' -]*")
_SHORT_WORDS = frozenset(("yes", "no", "odd", "even", "one", "two", "six", "ten", "all", "red", "sun", "mon"))
_LETTER_GOLD = re.compile(r"\(([A-Z])\)")
_MATH_WORDS = re.compile(r"(?<![\\A-Za-z])(?!sqrt|frac|sin|cos|tan|log|ln|pi|exp|mod)[A-Za-z]{2,}")
_LIST = re.compile(r"[,;]|\b(?:or|and)\b|\\pm|\\text|\\cup")
_SUM = re.compile(r"[\d)}]\s*(?:[+*×·÷-]|\\cdot|\\times|\\div)\s*[\d({\\]")
# What may stand for a plain number: math-verify reads "5|6", "5t" and "5?" as 5, so nothing else gets there.
_NUMERIC = re.compile(
    r"(?:\\(?:sqrt|frac|pi|sin|cos|tan|cot|sec|csc|arc(?:sin|cos|tan)|log|ln|exp|cdot|times|div|d?binom"
    r"|[lr](?:floor|ceil)|infty)(?![A-Za-z])|\\[{}]|(?<=\\log)_(?:\d|\{\d{1,4}\})|[\d\s.+\-−*/^(){}\[\]!=ei])++",
    re.ASCII,
)
_STRAY = re.compile(r"[&#?$@]|\\\\")
_STATUS = {"equal": GradeStatus.CORRECT, "different": GradeStatus.WRONG}


class Grader:
    """Grades answers; owns worker processes and a cache. Thread-safe; close it or use it with ``with``."""

    def __init__(
        self,
        *,
        workers: int = DEFAULT_WORKERS,
        limit_s: float = DEFAULT_LIMIT_S,
        memory_mb: int = DEFAULT_MEMORY_MB,
    ) -> None:
        if workers < 1 or limit_s <= 0 or memory_mb < 256:
            got = f"{workers}, {limit_s}, {memory_mb}"
            raise ValueError(f"a grader needs workers >= 1, limit_s > 0, memory_mb >= 256; got {got}")
        self.limit_s = limit_s
        self._pool = Pool(size=workers, limit_s=limit_s, memory_mb=memory_mb)
        self._cache: OrderedDict[tuple[str, str, str], Grade] = OrderedDict()
        self._lock = threading.Lock()

    def same_answer(
        self, answer: str, gold: str, *, kind: GradeKind = "auto", choices: Sequence[str] = ()
    ) -> Grade:
        """Return whether an already extracted answer means the same as the gold answer."""
        started = time.perf_counter()
        if kind not in GRADE_KINDS:
            raise ValueError(f"kind: {kind!r} cannot be graded; valid: {', '.join(GRADE_KINDS)}")
        if not gold.strip():
            raise ValueError("gold: is empty; a problem without an answer cannot be graded")
        box = last_box(gold)  # a gold answer given as a reply means what its box means
        gold = box.of(gold) if box and box.of(gold).strip() else gold
        grade = self._choice(answer, gold, choices) if kind == "choice" else self._graded(answer, gold, kind)
        return replace(grade, extracted=answer, seconds=time.perf_counter() - started)

    def grade(
        self,
        text: str,
        gold: str,
        *,
        kind: GradeKind = "auto",
        mode: Mode = "lenient",
        choices: Sequence[str] | None = None,
    ) -> Grade:
        """Return the grade of a whole reply: extract under ``mode``, then compare."""
        started = time.perf_counter()
        kind = "choice" if choices and kind == "auto" else kind
        letters = LETTERS[: len(choices or ()) or 5] if kind == "choice" else ""
        found = extract(text, mode=mode, letters=letters)
        if found.answer is None:
            return Grade(GradeStatus.MISSING, found.method, None, time.perf_counter() - started)
        grade = self.same_answer(found.answer, gold, kind=kind, choices=choices or ())
        return replace(grade, method=f"{found.method}/{grade.method}", seconds=time.perf_counter() - started)

    def warm(self) -> None:
        """Start a worker now instead of at the first answer that needs one."""
        self._pool.warm()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _choice(self, answer: str, gold: str, choices: Sequence[str]) -> Grade:
        right = letter_of(gold, choices)
        if right is None:
            raise ValueError(f"gold: {gold!r} is none of the {len(choices)} choices")
        return _decided(refusal(answer) is None and letter_of(answer, choices) == right, "letter")

    def _graded(self, answer: str, gold: str, kind: str) -> Grade:
        key = (gold, answer, kind)
        with self._lock:
            known = self._cache.get(key)
            if known:
                self._cache.move_to_end(key)
                return known
        grade = exact(answer, gold) or self._symbolic(answer, gold)
        if grade.status in (GradeStatus.CORRECT, GradeStatus.WRONG):
            with self._lock:
                self._cache[key] = grade
                if len(self._cache) > CACHE_SIZE:
                    self._cache.popitem(last=False)
        return grade

    def _symbolic(self, answer: str, gold: str) -> Grade:
        reply = self._pool.ask(pairs_to_check(answer, gold))
        if reply.status in _STATUS:
            return Grade(_STATUS[reply.status], "math_verify")
        status = GradeStatus.TIMEOUT if reply.status == "timeout" else GradeStatus.CRASH
        return Grade(status, f"math_verify: {reply.detail}" if reply.detail else "math_verify")


def exact(answer: str, gold: str) -> Grade | None:
    r"""Return the grade where the first two layers can tell; None where symbols must be compared.

    >>> [exact(answer, "5").status.value for answer in ("x = 5", "5.0", r"\frac{10}{2}")]
    ['correct', 'correct', 'correct']
    >>> [exact(answer, "5").status.value for answer in ("7=5", "1=2=3=5", "2+3", "3 or 5")]
    ['wrong', 'wrong', 'wrong', 'wrong']
    >>> exact(r"50\%", "50").status.value, exact(r"50\%", "0.5").status.value, exact(r"\sqrt{4}", "2")
    ('correct', 'wrong', None)
    """
    plain, truth = clean(answer[:4000]), clean(gold)
    if not plain:
        return _decided(False, "empty")
    if spelling(plain) == spelling(truth) and len(answer) <= 4000:
        return _decided(True, "spelling")
    broken = refusal(answer)
    if broken:
        return _decided(False, f"refused: {broken}")
    if _is_text(truth):
        return _decided(_letters(plain) == _letters(truth), "text")
    if letter := _LETTER_GOLD.fullmatch(truth):
        return _decided(plain == letter[1], "letter")
    if HEAVY.search(plain) and not HEAVY.search(truth):
        return _decided(False, "unevaluated")
    number = parse_number(sides(truth)[-1]) if len(sides(truth)) == 1 else None
    if number:
        return _against_number(plain, number)
    return _decided(False, "malformed") if _well_formed(truth) and not _well_formed(plain) else None


def _against_number(plain: str, gold: Number) -> Grade | None:
    """Grade an answer where the gold answer is a plain number; None when a side is symbolic."""
    if (number := parse_number(plain)) is not None:
        return _decided(number.same(gold), "number")
    claims = [parse_number(side) for side in sides(plain)]
    if any(number is not None and not number.same(gold) for number in claims):
        return _decided(False, "number")
    last = sides(plain)[-1]
    for name, pattern in (("list", _LIST), ("unevaluated", _SUM), ("prose", _MATH_WORDS)):
        if pattern.search(plain if name == "list" else last):
            return _decided(False, name)
    if all(number is not None for number in claims):
        return _decided(True, "number")
    numeric = _well_formed(plain) and all(_NUMERIC.fullmatch(side) for side in sides(plain))
    return None if numeric else _decided(False, "not a number")


def pairs_to_check(answer: str, gold: str) -> list[tuple[str, str]]:
    """Return the (gold, answer) pairs that must all be equal: each side of a chain of equations is a claim.

    >>> pairs_to_check("y = 2x+3", "3+2x"), pairs_to_check("x+y=3", "y+x=3")
    ([('3+2x', '2x+3')], [('y+x=3', 'x+y=3')])
    """
    plain, truth = clean(answer), clean(gold)
    plain = plain if _MATH_WORDS.search(truth) else without_unit(plain)
    if _LIST.search(plain) or len(sides(truth)) > 1:
        return [(truth, plain)]
    return [(sides(truth)[0], side) for side in sides(plain)]


def _well_formed(plain: str) -> bool:
    """Whether brackets close and no sign stands in it that math-verify would drop with all that follows."""
    braces = plain.replace("\\{", "").replace("\\}", "")
    ends = braces.count("{") == braces.count("}") and plain.count("|") % 2 == 0
    return ends and ("\\begin{" in plain or not _STRAY.search(plain))


def _is_text(truth: str) -> bool:
    words = truth.lower().split()
    return bool(_TEXT_GOLD.fullmatch(truth)) and any(len(word) > 3 or word in _SHORT_WORDS for word in words)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def _decided(right: bool, method: str) -> Grade:
    return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, method)


@cache
def default_grader() -> Grader:
    """Return the grader that the module-level functions share."""
    return Grader()


def same_answer(answer: str, gold: str, *, kind: GradeKind = "auto", choices: Sequence[str] = ()) -> Grade:
    """Return whether an extracted answer means the same as the gold answer, by the shared grader.

    >>> same_answer("1,200", "1200").status.value
    'correct'
    """
    return default_grader().same_answer(answer, gold, kind=kind, choices=choices)


def grade(
    text: str,
    gold: str,
    *,
    kind: GradeKind = "auto",
    mode: Mode = "lenient",
    choices: Sequence[str] | None = None,
) -> Grade:
    r"""Return the grade of a whole reply, by the shared grader.

    >>> grade(r"... so \boxed{18.00} dollars.", "18").method
    'boxed/number'
    """
    return default_grader().grade(text, gold, kind=kind, mode=mode, choices=choices)
