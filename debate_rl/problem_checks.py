"""Checks that the problems are those which a configuration speaks of."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET

from debate import Problem
from debate_rl.config import Config
from envs import DataError


def refuse_unknown_levels(config: Config, problems: Iterable[Problem]) -> None:
    """Refuse a level of ``debate.by_level`` that no problem has."""
    wanted = [one.level for one in config.debate.by_level]
    known = sorted({problem.level for problem in problems}) if wanted else []
    for index, level in enumerate(wanted):
        if level not in known:
            there = ", ".join(repr(name) for name in known[:12])
            raise DataError(
                f"debate.by_level.{index}.level = {level!r}: no problem is of that level; there are {there}"
            )


def refuse_no_rubric(config: Config, problems: Iterable[Problem]) -> None:
    """Refuse problems that a verifier model is to score, where there is none or it has no rubric."""
    common = config.verifier.own_rubric()
    for problem in problems:
        if problem.kind != "rubric":
            continue
        if config.verifier.endpoint is None:
            raise DataError(
                f"verifier.endpoint: problem {problem.id} is of kind 'rubric', which a verifier model "
                "scores; name one, or give the problem another kind"
            )
        if problem.rubric is UNSET and common is None:
            raise DataError(
                f"verifier.rubric: problem {problem.id} brings no rubric, and the recipe has none; set one"
            )


def refuse_no_sandbox(problems: Iterable[Problem]) -> None:
    """Refuse problems of kind "code" where their programs cannot run."""
    if any(problem.kind == "code" for problem in problems):
        from envs.programs.harness import shared_sandbox

        shared_sandbox()


def refuse_nothing_to_score(config: Config, problems: Iterable[Problem]) -> None:
    """Refuse a verifier model that has nothing to score."""
    verifier = config.verifier
    if verifier.endpoint is None or verifier.beside_truth or verifier.diagnose:
        return
    if all(problem.kind != "rubric" for problem in problems):
        raise DataError(
            "verifier.endpoint: there is nothing to score, as no problem is of kind 'rubric'; set "
            "verifier.beside_truth = true to compare it with truth, or leave out verifier"
        )
