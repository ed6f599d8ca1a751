"""The cause of a wrong reply, by rules that say nothing if they cannot know.

They are asked in this order, and the first that applies is the cause:

1. ``extraction``: the reply states the right answer where its grader did not look, or in another form.
2. ``incoherent``: it is mostly one piece again and again, goes in circles, or is of no script.
3. ``cut_off``: it ended at its limit, and no answer was found.
4. ``arithmetic``: it states a false equation of plain numbers (``equations``).
5. ``not_known``: everything else, such as a problem that was misread. A verifier model can judge these.

A cause is what is visible, and no proof that the answer would have been right without it.
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
LEAST = 24  # characters below which nothing counts as repeated
LOOKED_AT = 1 << 16
LOOPS, LEAST_LOOPED = 10.0, 400
"""How many times smaller zlib makes a text that goes in circles, and characters below which none does. Right
solutions that list cases get up to 5 times smaller."""
UNWRITTEN, MOST_UNWRITTEN = frozenset(("Cc", "Cn", "Co", "Cs")), 0.2
"""Kinds of characters that nobody writes (control, not assigned, private, halves), and their most."""


def is_incoherent(text: str) -> bool:
    r"""Is a text mostly one piece said again and again, does it go in circles, or is it of no script?

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
    r"""Is over half of the text one piece of up to 16 characters, said again and again?

    Of the first 65,536 characters. Blanks alone do not count as a piece.

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
    """Return where the longest run of True begins, and its length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    at = int(np.argmax(lengths))
    return int(edges[2 * at]), int(lengths[at])


CauseName: TypeAlias = Literal["extraction", "incoherent", "cut_off", "arithmetic", "not_known"]
CAUSES: tuple[CauseName, ...] = get_args(CauseName)  # in the order in which the rules are asked
STATING: tuple[Mode, ...] = ("boxed", "gsm8k_strict", "answer_is")
"""Modes that find an answer only where it is stated as one."""
GUESSING: tuple[Mode, ...] = ("lenient", "math_verify")
"""Modes that also take a number for the answer because it is the last; of use where none was found."""
UNSEEN = "no visible fault"


@dataclass(frozen=True, slots=True)
class WrongReply:
    """A reply that was graded wrong: its solution (after its thinking), ``missing`` if it has no answer.

    ``cut``: it ended at its token limit.
    """

    problem: Problem
    solution: str
    missing: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a reply is wrong, and the part of its solution that shows it, if there is one."""

    name: CauseName
    where: Span | None = None


def cause_of(reply: WrongReply) -> Cause:
    r"""Return the cause that the rules above give.

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
    """Return whether another mode finds the right answer; False for kinds that know no modes."""
    problem = reply.problem
    if problem.kind in VERIFIERS or problem.answer is None:
        return False
    modes = (*STATING, *GUESSING) if reply.missing else STATING
    try:
        return any(grade_by_itself(problem, reply.solution, mode=mode).verdict is True for mode in modes)
    except ValueError:  # a gold answer of others that no grader takes
        return False


def fault_of(reply: WrongReply, answer: str | None) -> str:
    r"""Return what a reader can see to be wrong, as a kind by which votes are counted.

    The rules of any problem come first, then those of its synthetic family.

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
    except DataError:  # another problem whose source has that name
        return UNSEEN
