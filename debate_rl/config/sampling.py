"""Which training problems a step draws: a mixture of data sets, measured pass rates, gates of admission."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.ramps import Points, Ramp, Share, Weight, value_at, values_of
from debate.settings import Settings

Order: TypeAlias = Literal["random", "easy_first", "hard_first", "format_first"]
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class MixedSet(Settings):
    """One of the data sets that training problems are drawn from; its keys are those of ``env``."""

    name: str
    """Name of the set in metrics: lower-case letters, digits and _."""
    kind: str
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    path: str | None = None
    """A local file, folder or glob."""
    split: str = "train"
    """Split to train on."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of problems, drawn with the run's seed."""
    levels: tuple[str | int, ...] | None = None
    """Keep these levels only."""
    subjects: tuple[str, ...] | None = None
    """Keep these subjects only."""
    fields: dict[str, str] | None = None
    """Names of the fields in a file of your own."""
    weight: Weight = 1.0
    """Share of a step's problems, relative to the other weights: a number, or points [[step, weight], ...]
    joined by straight lines."""

    @field_validator("name")
    @classmethod
    def _possible_name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} is the name of metrics; use small letters, digits and _")
        return value


def knots(ramps: Sequence[Ramp]) -> list[int]:
    """Return the steps at which ramps bend, and step 0: between two of them each is a straight line."""
    return sorted({0, *(step for ramp in ramps if isinstance(ramp, Points) for step, _ in ramp)})


def check_mix(mix: Sequence[MixedSet]) -> None:
    """ValueError for two sets of one name, and where at some step no set has a weight above 0.

    Weights are straight lines between knots and never negative, so all are 0 between two knots only where
    they are 0 at both.
    """
    names = [one.name for one in mix]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"env.mix: two sets are named {twice!r}; give each its own name")
    weights = [one.weight for one in mix]
    for step in knots(weights):
        if not any(value_at(weight, step) for weight in weights):
            raise ValueError(f"env.mix: all weights are 0 at step {step}; give one set a weight above 0")


class DifficultyConfig(Settings):
    """What ``debate eval passrate`` measured of the training problems, and what is made of it."""

    path: str
    """A file written by ``debate eval passrate``."""
    at_least: float = Field(default=0.0, ge=0, le=1)
    """Drop problems with a lower pass rate, such as those never solved."""
    at_most: float = Field(default=1.0, ge=0, le=1)
    """Drop problems with a higher pass rate, such as those always solved."""
    most_missing: float = Field(default=1.0, ge=0, le=1)
    """Drop problems if a larger fraction of samples had no readable answer."""
    order: Order = "random"
    """Order of an epoch: shuffled, from high to low pass rate ("easy_first"), from low to high, or by the
    fraction of missing answers."""
    unmeasured: Literal["refuse", "keep", "leave_out"] = "refuse"
    """What to do with training problems that the file lacks."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.at_least > self.at_most:
            raise ValueError(
                f"env.difficulty.at_least = {self.at_least:g} is above at_most = {self.at_most:g}; no "
                "problem has such a pass rate"
            )
        return self


class AdaptiveConfig(Settings):
    """How many debates a problem gets: until enough of them are right, and enough are wrong."""

    chunk: int = Field(default=0, ge=0)
    """Debates per problem held at a time, until the problem has enough right and wrong ones or
    ``train.group_size`` in all. 0 holds all at once."""
    right: int = Field(default=2, ge=1)
    """Enough right debates: those with a right solution in the last round."""
    wrong: int = Field(default=2, ge=1)
    """Enough wrong debates: those with a wrong or missing answer in the last round. A debate of several
    agents can be both right and wrong."""


class SamplingConfig(Settings):
    """Gates that a training problem passes before a step draws it; none unless one is set."""

    levels: tuple[tuple[int, tuple[str | int, ...]], ...] | None = Field(default=None, min_length=1)
    """Levels by step, such as [[0, [1, 2]], [100, [3, 4, 5]]]: from each step on, only these. Problems
    without a level always pass."""
    measured_at_least: Share = 0.0
    """Draw only problems with at least this pass rate in ``env.difficulty.path``. May change with the
    step."""
    measured_at_most: Share = 1.0
    """Draw only problems with at most this pass rate in ``env.difficulty.path``. May change with the step."""
    towards_half: bool = False
    """Admit a problem with probability max(0.1, 4 p (1 - p)), where p is its recent pass rate in this run
    (exponential average with weight 0.5): problems solved half of the time come most often. Problems not
    drawn yet always pass."""
    rest_steps: int = Field(default=0, ge=0)
    """Steps for which a drawn problem is not drawn again."""
    retry_steps: int = Field(default=0, ge=0)
    """Steps for which a problem is set aside if its last debates were all right or all wrong."""

    @field_validator("levels")
    @classmethod
    def _ascending(
        cls, value: tuple[tuple[int, tuple[str | int, ...]], ...] | None
    ) -> tuple[tuple[int, tuple[str | int, ...]], ...] | None:
        for (before, _), (after, _) in pairwise(value or ()):
            if after <= before:
                raise ValueError(f"the steps must ascend, got {after} after {before}")
        for step, levels in value or ():
            if not levels:
                raise ValueError(f"names no level from step {step} on")
        if value and value[0][0] != 0:
            raise ValueError(f"begins with step 0, got {value[0][0]}")
        return value

    @property
    def remembers(self) -> bool:
        """Whether a gate looks at what earlier steps of the run came to."""
        return self.towards_half or self.rest_steps > 0 or self.retry_steps > 0

    @property
    def by_measured(self) -> bool:
        """Whether a gate looks at measured pass rates."""
        lowest, highest = values_of(self.measured_at_least), values_of(self.measured_at_most)
        return max(lowest) > 0 or min(highest) < 1
