"""What a reader can see to be wrong in a wrong solution, as kinds by which votes are counted."""

from __future__ import annotations

from debate.types import Problem
from envs.causes.equations import false_equation
from envs.causes.repetition import is_incoherent
from envs.causes.rules import WrongReply
from envs.errors import DataError
from envs.families import FAMILIES

UNSEEN = "no visible fault"


def fault_of(reply: WrongReply, answer: str | None) -> str:
    r"""Return the first kind that applies: the rules of any problem, then those of its synthetic family.

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
    return _of_family(reply.problem, answer) or UNSEEN


def _of_family(problem: Problem, answer: str) -> str | None:
    family = FAMILIES.get(problem.source)
    try:
        return family.fault(problem, answer) if family else None
    except DataError:  # another problem that calls its source so
        return None
