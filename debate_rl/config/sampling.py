"""Which training problems a step draws: a mixture of data sets, measured pass rates, gates of admission."""

from __future__ import annotations

from pydantic import Field, field_validator

from debate.ramps import check_steps
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

    renamed = {  # noqa: RUF012
        "measured_at_least": "env.difficulty.at_least",
        "measured_at_most": "env.difficulty.at_most",
    }

    levels: tuple[tuple[int, tuple[str | int, ...]], ...] | None = Field(default=None, min_length=1)
    """Levels by step, such as [[0, [1, 2]], [100, [3, 4, 5]]]: from each step on, only these. Problems
    without a level always pass."""
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
        if value is not None:
            check_steps([step for step, _ in value])
        for step, levels in value or ():
            if not levels:
                raise ValueError(f"names no level from step {step} on")
        return value

    @property
    def remembers(self) -> bool:
        """Whether a gate looks at what earlier steps of the run came to."""
        return self.towards_half or self.rest_steps > 0 or self.retry_steps > 0
