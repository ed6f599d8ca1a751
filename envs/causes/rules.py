"""The cause of a wrong reply, by rules that say nothing where they cannot know.

They are asked in this order, and the first that applies is the cause:

1. ``extraction``: the reply states the right answer where its grader did not look, or in another form.
2. ``incoherent``: it is mostly one piece again and again, goes in circles, or is of no script.
3. ``cut_off``: it ended at its limit, and no answer was found.
4. ``arithmetic``: it states a false equation of plain numbers (``equations``).
5. ``not_known``: everything else, such as a problem that was misread. A verifier model can judge these.

A cause is what is visible, and no proof that the answer would have been right without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from debate.types import Problem, Span
from envs.causes.equations import false_equation
from envs.causes.repetition import is_incoherent
from envs.errors import DataError
from envs.families import FAMILIES
from envs.grading.grader import VERIFIERS
from envs.registry import grade_by_itself
from envs.types import Mode

CauseName: TypeAlias = Literal["extraction", "incoherent", "cut_off", "arithmetic", "not_known"]
CAUSES: tuple[CauseName, ...] = get_args(CauseName)
"""In the order in which the rules are asked."""
STATING: tuple[Mode, ...] = ("boxed", "gsm8k_strict", "answer_is")
"""Modes that find an answer only where it is stated as one."""
GUESSING: tuple[Mode, ...] = ("lenient", "math_verify")
"""Modes that also take a number for the answer because it is the last; of use where none was found."""
UNSEEN = "no visible fault"


@dataclass(frozen=True, slots=True)
class WrongReply:
    """A reply that was graded wrong: its solution (behind its thinking), ``missing`` where it has no answer.

    ``cut``: it ended at its token limit.
    """

    problem: Problem
    solution: str
    missing: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a reply is wrong, and the part of its solution that shows it, where there is one."""

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
