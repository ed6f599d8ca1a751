"""Which training problems a step draws: a mixture of data sets, measured pass rates, gates of admission."""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field, field_validator

from debate.ramps import Share, values_of
from debate.settings import Settings


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
