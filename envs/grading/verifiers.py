"""The kinds of answers that are not mathematics: for each, where its answer is and how it is checked.

A kind with a verifier of its own is one row in ``VERIFIERS``, one name in
``debate.types.Kind`` and ``envs.types.GradeKind``, and one reader of golds in ``envs.data.kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from envs.answers.texts import OVERLAP_RIGHT, same_text, token_f1
from envs.extraction.replies import extract_response, extract_text
from envs.grading.exact import decided
from envs.types import Extraction, Grade, GradeKind


class Verifier(NamedTuple):
    """``find`` returns the answer in a reply, ``check`` the grade of an answer against the problem's gold."""

    find: Callable[[str], Extraction]
    check: Callable[[str, str], Grade]


def _overlap(answer: str, gold: str) -> Grade:
    """Right from a token F1 of ``OVERLAP_RIGHT`` on; the F1 is the share that is right."""
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
"""Kinds that no mode reads or compares in another way; the others are mathematics and choices."""
