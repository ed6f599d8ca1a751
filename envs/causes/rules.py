"""Find the cause of a wrong reply by rules; a rule applies only if it is certain.

The rules are tried in this order, and the first one that applies gives the cause:

1. ``extraction``: the reply states the right answer where the grader does not look, or in another form.
2. ``incoherent``: the reply mostly repeats one piece of text, goes in circles, or is mostly not text.
3. ``cut_off``: the reply ended at its token limit, and no answer was found.
4. ``arithmetic``: the reply states a false equation of plain numbers (``equations``).
5. ``not_known``: everything else, such as a problem that was misread. A verifier model can judge these.

A cause is a visible fault. It does not prove that the answer would have been right without this fault.
"""

from __future__ import annotations

import unicodedata
import zlib
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from debate.types import Problem, Span
from envs.causes.equations import false_equation
from envs.errors import DataError
from envs.families import FAMILIES
from envs.grading.grader import VERIFIERS
from envs.registry import grade_by_itself
from envs.types import Mode

LONGEST_PIECE = 16
LEAST = 24  # minimum number of characters of a text that counts as repeated
LOOKED_AT = 1 << 16
LOOPS, LEAST_LOOPED = 10.0, 400
"""Minimum compression ratio by zlib, and minimum number of bytes, of a text that goes in circles.

Right solutions that list cases have ratios up to 5.
"""
UNWRITTEN, MOST_UNWRITTEN = frozenset(("Cc", "Cn", "Co", "Cs")), 0.2
"""Unicode categories of characters that are not text, and the maximum fraction of such characters.

The categories are control, unassigned, private use and surrogate.
"""


def is_incoherent(text: str) -> bool:
    r"""Return whether a text mostly repeats one piece, goes in circles, or is mostly not text.

    >>> is_incoherent("So it is 4, as 2 + 2 is 4. " * 40), is_incoherent("\ufffd\ufffd 4 \ufffd\ufffd")
    (True, True)
    >>> is_incoherent("So it is 4, as 2 + 2 is 4. " * 3), is_incoherent("")
    (False, False)
    """
    return is_repeated(text) or _goes_in_circles(text) or _is_unwritten(text)


def _goes_in_circles(text: str) -> bool:
    data = text[:LOOKED_AT].encode("utf-8", "surrogatepass")
    return len(data) >= LEAST_LOOPED and len(data) > LOOPS * len(zlib.compress(data, 6))


def _is_unwritten(text: str) -> bool:
    marks = [mark for mark in text[:LOOKED_AT] if not mark.isspace()]
    strange = sum(mark == "\ufffd" or unicodedata.category(mark) in UNWRITTEN for mark in marks)
    return strange > MOST_UNWRITTEN * len(marks)


def is_repeated(text: str) -> bool:
    r"""Return whether over half of a text repeats one piece of up to 16 characters.

    Only the first 65,536 characters count. A piece must not be only blanks.

    >>> is_repeated("4" * 50), is_repeated("Cumhur\n" * 9), is_repeated("4 + 4 = 8, so the answer is 8.")
    (True, True, False)
    """
    codes = np.frombuffer(text[:LOOKED_AT].encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(codes) < LEAST:
        return False
    for piece in range(1, LONGEST_PIECE + 1):
        same = codes[piece:] == codes[:-piece]
        if np.count_nonzero(same) + piece <= len(codes) / 2:
            continue
        begin, run = _longest(same)
        if run + piece > max(LEAST, len(codes) / 2) and text[begin : begin + run].strip():
            return True
    return False


def _longest(same: np.ndarray) -> tuple[int, int]:
    """Return the start and the length of the longest sequence of True; (0, 0) if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    at = int(np.argmax(lengths))
    return int(edges[2 * at]), int(lengths[at])


CauseName: TypeAlias = Literal["extraction", "incoherent", "cut_off", "arithmetic", "not_known"]
CAUSES: tuple[CauseName, ...] = get_args(CauseName)  # in the order in which the rules are tried
STATING: tuple[Mode, ...] = ("boxed", "gsm8k_strict", "answer_is")
"""Modes that find an answer only if the reply marks it as the answer."""
GUESSING: tuple[Mode, ...] = ("lenient", "math_verify")
"""Modes that may also take the last number as the answer; tried only if no answer was found."""
UNSEEN = "no visible fault"


@dataclass(frozen=True, slots=True)
class WrongReply:
    """A reply that was graded wrong.

    ``solution`` is the reply after its thinking, ``missing`` says whether no answer was found, and ``cut``
    whether the reply ended at its token limit.
    """

    problem: Problem
    solution: str
    missing: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a wrong reply, and the part of the solution that shows the cause, if there is one."""

    name: CauseName
    where: Span | None = None


def cause_of(reply: WrongReply) -> Cause:
    r"""Return the cause of a wrong reply by the rules of this module.

    >>> problem = Problem("p", "What is 12 * 4 + 17?", answer="65", kind="number")
    >>> text = r"12 * 4 = 48, and 48 + 17 = 55: \boxed{55}"
    >>> cause = cause_of(WrongReply(problem, text, missing=False, cut=False))
    >>> cause.name, cause.where.of(text)
    ('arithmetic', '48 + 17 = 55')
    >>> cause_of(WrongReply(problem, "So the answer is 65.", missing=True, cut=False)).name
    'extraction'
    """
    if _states_the_truth(reply):
        return Cause("extraction")
    if is_incoherent(reply.solution):
        return Cause("incoherent")
    if reply.cut and reply.missing:
        return Cause("cut_off")
    where = false_equation(reply.solution)
    return Cause("arithmetic", where) if where else Cause("not_known")


def _states_the_truth(reply: WrongReply) -> bool:
    """Return whether another mode finds the right answer; False for kinds without modes."""
    problem = reply.problem
    if problem.kind in VERIFIERS or problem.answer is None:
        return False
    modes = (*STATING, *GUESSING) if reply.missing else STATING
    try:
        return any(grade_by_itself(problem, reply.solution, mode=mode).verdict is True for mode in modes)
    except ValueError:  # a gold answer from elsewhere that the grader rejects
        return False


def fault_of(reply: WrongReply, answer: str | None) -> str:
    r"""Return the kind of fault that is visible in a wrong reply; votes are counted by this kind.

    The rules for all problems come first, then the rules of the problem's synthetic family.

    >>> problem = Problem("p", "Target 19. Numbers 3 8 5 11 2 9.", "8 11", source="pair_sum")
    >>> fault_of(WrongReply(problem, "12 + 7 = 19. \\boxed{12 7}", missing=False, cut=False), "12 7")
    'a number that is not listed'
    >>> fault_of(WrongReply(problem, "3 + 9 = 19. \\boxed{3 9}", missing=False, cut=False), "3 9")
    'a false equation'
    """
    if reply.missing or answer is None:
        return "no answer"
    if is_incoherent(reply.solution):
        return "incoherent"
    if false_equation(reply.solution):
        return "a false equation"
    family = FAMILIES.get(reply.problem.source)
    try:
        return (family and family.fault(reply.problem, answer)) or UNSEEN
    except DataError:  # the problem is not of the family that has the name of its source
        return UNSEEN
