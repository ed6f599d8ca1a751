r"""Grade answers in three layers, each faster than the next.

1. A pre-filter refuses texts that no sane answer contains, as wrong (``limits``).
2. Exact rules decide equal spelling, words, letters, plain numbers and most formulas (``exact``).
3. math-verify compares the extracted answer, in a process that can be killed (``processes``).

A timeout or a crash of the third layer is a separate status: nothing was graded, so it never counts as wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, Self, TypedDict, Unpack

from envs.answers.notation import clean
from envs.answers.parts import parts_of
from envs.answers.words import LETTERS, OVERLAP_RIGHT, letter_of, same_text, token_f1
from envs.grading.exact import decided, exact, may_decide, pairs_to_check
from envs.grading.extraction import extract, extract_parts, extract_response, extract_text, joined, last_run
from envs.grading.limits import heavier, refusal
from envs.grading.processes import LIMIT_S, Pool
from envs.grading.strictness import STRICTNESS, Strictness, by_form, minerva_spelling
from envs.types import GRADE_KINDS, MODES, Extraction, Grade, GradeKind, GradeStatus, Mode

CACHE_SIZE = 65_536
MATHEMATICS: tuple[GradeKind, ...] = ("auto", "number", "expression")
_STATUS = {"equal": GradeStatus.CORRECT, "different": GradeStatus.WRONG, "timeout": GradeStatus.TIMEOUT}


class Verifier(NamedTuple):
    """``find`` returns the answer in a reply; ``check`` grades an answer against the problem's gold."""

    find: Callable[[str], Extraction]
    check: Callable[[str, str], Grade]


def _overlap(answer: str, gold: str) -> Grade:
    share = token_f1(answer, gold)
    return replace(decided(share >= OVERLAP_RIGHT, "overlap"), share=share)


def _instructions(answer: str, gold: str) -> Grade:
    from envs.instructions import constraints_of, follows  # loaded only for problems of this kind

    constraints = constraints_of(gold)
    met = follows(answer, constraints)
    parts = tuple((constraint.id, followed) for constraint, followed in zip(constraints, met, strict=True))
    return replace(decided(all(met), "instructions"), parts=parts)


def _code(answer: str, gold: str) -> Grade:
    from envs.programs.harness import grade_code  # loaded only for problems of this kind

    return grade_code(answer, gold)


VERIFIERS: Mapping[GradeKind, Verifier] = {
    "text": Verifier(extract_text, lambda a, g: decided(same_text(a, g), "text")),
    "verbatim": Verifier(extract_text, lambda a, g: decided(same_text(a, g, verbatim=True), "verbatim")),
    "overlap": Verifier(extract_response, _overlap),
    "instructions": Verifier(extract_response, _instructions),
    "code": Verifier(extract_response, _code),
}
"""The kinds of answers that are neither mathematics nor multiple choice; modes do not apply to these kinds.

Each kind needs a row here, a name in ``debate.types.Kind`` and ``envs.types.GradeKind``, and a parser of gold
answers in ``envs.data.golds``.
"""


class Grader:
    """Grade answers with a cache and worker processes.

    The class is thread-safe. Close a grader after use, or use it in a ``with`` statement.
    """

    def __init__(self, *, workers: int = 2, limit_s: float = LIMIT_S, memory_mb: int = 1024) -> None:
        if workers < 1 or limit_s <= 0 or memory_mb < 256:
            got = f"{workers}, {limit_s}, {memory_mb}"
            raise ValueError(f"a grader needs workers >= 1, limit_s > 0, memory_mb >= 256; got {got}")
        self.limit_s = limit_s
        self._pool = Pool(size=workers, limit_s=limit_s, memory_mb=memory_mb)
        self._cache: dict[tuple[str, str, Strictness], Grade] = {}

    def same_answer(
        self,
        answer: str,
        gold: str,
        *,
        kind: GradeKind = "auto",
        mode: Mode = "lenient",
        choices: Sequence[str] = (),
    ) -> Grade:
        """Return whether an already extracted answer means the same as the gold answer.

        For the kinds "text", "verbatim", "overlap", "instructions" and "code", ``gold`` is ``Problem.answer``
        and the mode has no effect. For the last three of these kinds, ``answer`` is the whole response. For
        other kinds, only the modes in ``STRICTNESS`` change the comparison.
        """
        started = time.perf_counter()
        _check(kind, mode, gold, "answer", answer)
        if kind in VERIFIERS:
            grade = VERIFIERS[kind].check(answer, gold)
        elif kind == "choice" or mode == "first_letter":
            right = letter_of(_inside(gold), choices)
            if right is None:  # the gold may be a whole reply
                stated = extract(_inside(gold), letters=LETTERS[: len(choices) or 5]).answer
                right = letter_of(stated or "", choices)
            if right is None:
                raise ValueError(f"gold: {_inside(gold)!r} is none of the {len(choices)} choices")
            grade = decided(refusal(answer) is None and letter_of(answer, choices) == right, "letter")
        else:
            grade = self._graded(answer, _inside(gold), STRICTNESS.get(mode, "value"))
        return replace(grade, extracted=answer, seconds=time.perf_counter() - started)

    def grade(
        self,
        text: str | None,
        gold: str,
        *,
        kind: GradeKind = "auto",
        mode: Mode = "lenient",
        choices: Sequence[str] = (),
    ) -> Grade:
        """Return the grade of a whole reply: extract its answer by ``mode`` or kind, and compare the answer.

        A ``text`` of None, which some APIs return for an empty reply, counts as a reply without an answer.
        """
        started = time.perf_counter()
        _check(kind, mode, gold, "text", "" if text is None else text)
        if text is None:
            return Grade(GradeStatus.MISSING, "none", None, time.perf_counter() - started)
        kind = _kind_read(kind, mode, choices)
        found = find_answer(text, kind, mode, choices)
        unread = mode in ("lenient", "math_verify") and found.method in ("none", "last_number")
        if unread and kind in MATHEMATICS and text.strip() == gold.strip():
            found = Extraction(text.strip(), "bare")  # the reply is the gold answer, which is prose
        if found.answer is None:
            return Grade(GradeStatus.MISSING, found.method, None, time.perf_counter() - started)
        grade = self.same_answer(found.answer, gold, kind=kind, mode=mode, choices=choices)
        if found.method == "boxed" and grade.status == GradeStatus.WRONG and kind in MATHEMATICS:
            # try all boxes together if the gold answer has several parts
            parts, boxes = parts_of(clean(_inside(gold))), extract_parts(text)
            if parts and len(parts.items) > 1 and boxes.answer is not None:
                together = self.same_answer(boxes.answer, gold, mode=mode)
                if together.status == GradeStatus.CORRECT:
                    grade, found = together, boxes
        return replace(grade, method=f"{found.method}/{grade.method}", seconds=time.perf_counter() - started)

    def warm(self) -> None:
        """Start a worker now, before the first answer needs one."""
        self._pool.ask([("1", "1")])

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _graded(self, answer: str, gold: str, strictness: Strictness) -> Grade:
        key = (gold, answer, strictness)
        if known := self._cache.get(key):
            return known
        if strictness == "minerva" and refusal(answer) is None:
            answer, gold = minerva_spelling(answer), minerva_spelling(gold)
        formed = by_form(answer, gold, strictness)
        grade = decided(*formed) if formed else exact(answer, gold, library=strictness == "library")
        grade = grade or self._symbolic(answer, gold)
        if grade.status in (GradeStatus.CORRECT, GradeStatus.WRONG):
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            self._cache[key] = grade
        return grade

    def _symbolic(self, answer: str, gold: str) -> Grade:
        if bound := heavier(answer, gold):
            return decided(False, f"refused: {bound}")
        pairs = pairs_to_check(answer, gold)
        if not all(may_decide(claim, truth) for truth, claim in pairs):
            return decided(False, "beyond the rules")
        reply = self._pool.ask(pairs)
        method = f"math_verify: {reply.detail}" if reply.detail else "math_verify"
        return Grade(_STATUS.get(reply.status, GradeStatus.CRASH), method)


def _check(kind: str, mode: str, gold: object, name: str, text: object) -> None:
    if kind not in GRADE_KINDS:
        raise ValueError(f"kind: {kind!r} cannot be graded; valid: {', '.join(GRADE_KINDS)}")
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not known; valid: {', '.join(MODES)}")
    for key, value in (("gold", gold), (name, text)):
        if not isinstance(value, str):
            raise TypeError(f"{key}: needs a text, got {value!r:.60} of type {type(value).__name__}")
    if not str(gold).strip():
        raise ValueError("gold: is empty; a problem without an answer cannot be graded")


def _kind_read(kind: GradeKind, mode: Mode, choices: Sequence[str]) -> GradeKind:
    """Return the kind by which a reply is parsed: "choice" also if choices or the mode imply it."""
    return "choice" if (choices and kind == "auto") or mode == "first_letter" else kind


def find_answer(text: str, kind: GradeKind, mode: Mode, choices: Sequence[str] = ()) -> Extraction:
    """Return the answer of a reply, found by the kind's verifier if it has one, else by the mode."""
    kind = _kind_read(kind, mode, choices)
    if kind in VERIFIERS:
        return VERIFIERS[kind].find(text)
    letters = LETTERS[: len(choices) or 5] if kind == "choice" else ""
    found = extract(text, mode=mode, letters=letters, choices=choices)
    if mode != "math_verify" or found.answer is None:
        return found
    return replace(found, answer=_inside(found.answer))


def _inside(gold: str) -> str:
    """Return the answer in a gold that is a whole reply: its last boxes or its statement; else the gold."""
    if group := last_run(gold) if "\\boxed" in gold else None:
        return joined(group.of(gold)).strip() or gold
    return (" " in gold and extract(gold, mode="answer_is").answer) or gold


@cache
def default_grader() -> Grader:
    """Return the grader that the functions of this module share."""
    return Grader()


class How(TypedDict, total=False):
    """The options of ``Grader.same_answer`` and ``Grader.grade``."""

    kind: GradeKind
    mode: Mode
    choices: Sequence[str]


def same_answer(answer: str, gold: str, **how: Unpack[How]) -> Grade:
    """Grade an extracted answer against the gold answer with the shared grader.

    >>> same_answer("1,200", "1200").status.value
    'correct'
    """
    return default_grader().same_answer(answer, gold, **how)


def grade(text: str | None, gold: str, **how: Unpack[How]) -> Grade:
    r"""Return the grade of a whole reply from the shared grader.

    >>> grade(r"... so \boxed{18.00} dollars.", "18").method
    'boxed/number'
    """
    return default_grader().grade(text, gold, **how)
