"""What of a solution a reader sees: its reasoning, up to where it states its final answer."""

from __future__ import annotations

import re

from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, Problem
from debate_rl.evaluation.grading import IN_A_BOX
from envs.extraction.boxes import last_box
from envs.extraction.replies import extract
from envs.types import Mode

LONGEST_LEAD = 80
"""Characters before an answer in which the words that lead to it are looked for."""
_LEAD = re.compile(
    r"(?:[\s$*{(\[:#]|\\[(\[]|\\(?:f?boxed|text|mathbf)|\b(?:so|thus|hence|therefore|and|the|final|answer|is)\b,?)+\Z",
    re.IGNORECASE,
)


def reasoning_of(text: str, problem: Problem, mode: Mode = IN_A_BOX) -> str:
    r"""Return a solution up to where the grader's mode finds its answer, and without what leads to it.

    All of it where there is no answer. What the reasoning states of the answer before stays: it is reasoning.

    >>> reasoning_of(r"3 + 4 = 7. So the answer is \boxed{7}.", Problem("p", "3 + 4?", "7"))
    '3 + 4 = 7.'
    """
    if mode == IN_A_BOX:
        span = last_box(text)
    else:
        letters = "".join(chr(ord("A") + index) for index in range(len(problem.choices)))
        span = extract(text, mode=mode, letters=letters, choices=problem.choices).span
    if span is None:
        return text
    near = max(span.start - LONGEST_LEAD, 0)
    return text[:near] + _LEAD.sub("", text[near : span.start])


def gold_of(problem: Problem) -> str | None:
    """Return the gold answer as it is scored, the first where several texts are accepted; None without it."""
    if problem.kind in WHOLE_RESPONSE | WITHOUT_TRUTH or problem.answer is None:
        return None
    return problem.answer.split("\n")[0] if problem.kind in ("text", "verbatim") else problem.answer
