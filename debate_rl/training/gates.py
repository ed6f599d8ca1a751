"""Gates of admission: what a training problem passes before a step draws it.

A gate is a function of the problem, the step and what the run remembers of the problem; it draws nothing but
a coin of the run's seed, so a run that resumes admits the same. Admission towards a pass rate of one half
follows the variance p (1 - p) of a problem's reward, which bounds what it can teach (arXiv 2504.03380).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from debate import Problem
from debate.ramps import value_at
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.sampling import SamplingConfig
from debate_rl.difficulty import Difficulty
from debate_rl.runs.trainer_state import Memory
from envs.data.loading import normal_level

FLOOR = 0.1
"""Lowest probability of admission: above 0, so that no problem is left out for good."""

Gate: TypeAlias = Callable[[Problem, int, Memory | None], bool]
"""Whether a problem is admitted at a step, given what is remembered of it."""


def gates_of(config: Config, rows: Mapping[str, Difficulty]) -> dict[str, Gate]:
    """Return the gates that a configuration sets, by name; ``rows``: measured difficulties by problem id."""
    sampling = config.sampling
    gates: dict[str, Gate] = {}
    if sampling.levels is not None:
        gates["levels"] = partial(of_level, sampling)
    if sampling.by_measured:
        gates["measured"] = partial(of_measured, sampling, rows)
    if sampling.towards_half:
        gates["towards_half"] = partial(towards_half, sampling, config.seed)
    if sampling.rest_steps:
        gates["rested"] = partial(rested, sampling.rest_steps)
    if sampling.retry_steps:
        gates["retried"] = partial(retried, sampling.retry_steps)
    return gates


def of_level(sampling: SamplingConfig, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit the levels of the step, and problems without a level."""
    return not problem.level or problem.level in levels_at(sampling, step)


def levels_at(sampling: SamplingConfig, step: int) -> frozenset[str]:
    """Return the levels of a step.

    >>> sampling = SamplingConfig(levels=[[0, [1]], [100, ["Level 4", 5]]])
    >>> [sorted(levels_at(sampling, step)) for step in (0, 99, 100)]
    [['1'], ['1'], ['4', '5']]
    """
    levels = next(levels for first, levels in reversed(sampling.levels or ()) if first <= step)
    return frozenset(map(normal_level, levels))


def of_measured(
    sampling: SamplingConfig,
    rows: Mapping[str, Difficulty],
    problem: Problem,
    step: int,
    memory: Memory | None,
) -> bool:
    """Admit measured pass rates between the bounds of the step, and problems that were not measured."""
    row = rows.get(problem.id)
    lowest, highest = (
        value_at(ramp, step) for ramp in (sampling.measured_at_least, sampling.measured_at_most)
    )
    return row is None or lowest <= row.pass_rate <= highest


def towards_half(
    sampling: SamplingConfig, seed: int, problem: Problem, step: int, memory: Memory | None
) -> bool:
    """Admit with probability 4 p (1 - p), at least ``FLOOR``; what was never graded always.

    >>> settings, memory = SamplingConfig(towards_half=True), Memory(0, rate=0.9)
    >>> problems = [Problem(str(i), "?") for i in range(1000)]  # 4 * .9 * .1 = .36
    >>> sum(towards_half(settings, 0, problem, 5, memory) for problem in problems)
    336
    """
    if memory is None or memory.rate is None:
        return True
    chance = max(FLOOR, 4 * memory.rate * (1 - memory.rate))
    return random.Random(derive_seed(seed, "towards half", step, problem.id)).random() < chance


def rested(steps: int, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit what was not drawn in the last ``steps`` steps.

    >>> [rested(2, Problem("p", "?"), step, Memory(5)) for step in (6, 7, 8)]
    [False, False, True]
    """
    return memory is None or step - memory.step > steps


def retried(steps: int, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit what was neither always solved nor never when it was last drawn, or was put aside long enough.

    >>> never, sometimes = Memory(5, 0.5, 0.0), Memory(5, 0.5, 0.25)
    >>> [[retried(2, Problem("p", "?"), step, one) for step in (7, 8)] for one in (never, sometimes)]
    [[False, True], [True, True]]
    """
    return memory is None or memory.newest not in (0.0, 1.0) or step - memory.step > steps
