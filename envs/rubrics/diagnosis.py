"""What a verifier model is asked beside a score: whether an approach is valid, and why a solution is wrong.

Fixed rubrics, so that figures can be compared. Causes are asked about wrong solutions alone, and only where
the rules of ``envs.causes`` cannot tell. Both are opinions.
"""

from __future__ import annotations

from concurrent.futures import Future
from types import MappingProxyType

from debate.types import Problem
from envs.causes.rules import WrongReply, cause_of
from envs.rubrics.model import VerifierModel
from envs.rubrics.verdicts import Stated, Verdict

APPROACH = (
    "Only the approach counts: whether the method of the reply, carried out without slips, would answer the "
    "question. Give 1 for a valid method even where arithmetic or the final answer is wrong, 0 for a method "
    "that cannot work, for a guess, and for a reply without any reasoning, and a value between for a method "
    "with a gap."
)
CAUSES = MappingProxyType(
    {
        "misread": "it answers another question: a number, unit or condition of the problem is taken wrongly",
        "arithmetic": "the method is right, and a calculation or an algebraic step is wrong",
        "method": "the method cannot give the answer, or leaves a case out",
        "incoherent": "it goes in circles, contradicts itself or is not about the problem",
        "cut_off": "it ends before it reaches an answer",
        "extraction": "the right answer is there, in another form or place than it is looked for",
        "other": "none of these",
    }
)
"""Why a solution is wrong, with what each means."""
QUESTION = "The reply was graded wrong. What is the first thing that makes it so?"


def approach(model: VerifierModel, problem: Problem, solution: str) -> Future[Verdict]:
    """Begin to score whether a solution's approach is valid, whatever its answer."""
    return model.score(problem, solution, rubric=APPROACH, fixed=True)


def cause(model: VerifierModel, reply: WrongReply) -> Future[Stated]:
    """Begin to ask why a solution is wrong; what the rules know is not asked."""
    known = cause_of(reply).name
    if known != "not_known":
        ready: Future[Stated] = Future()
        ready.set_result(Stated(known))
        return ready
    return model.label(reply.problem, reply.solution, question=QUESTION, labels=CAUSES)
