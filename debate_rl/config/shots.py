"""The solved examples that prompts of the first round show before a problem."""

from __future__ import annotations

from math import ceil
from typing import Literal, Self

from pydantic import Field, model_validator

from debate.settings import Settings


class ShotsConfig(Settings):
    """How many examples, and where they are from."""

    count: int = Field(default=0, ge=0, le=64)
    """Solved examples before each problem in the first round. 0: none."""
    path: str | None = None
    """A file of rows with question, answer and solution, or a shipped one: "arithmetic", "mathematics". None
    takes ``split`` of the training data set."""
    split: str = "train"
    """Split of the data set or file."""
    fields: dict[str, str] | None = None
    """Names of the fields in that file, as in ``env.fields``."""
    draw: Literal["fixed", "each"] = "fixed"
    """The same examples for all problems, or new ones for each. Drawn with the run's seed."""
    until: int = Field(default=0, ge=0)
    """Step at which the number of examples has fallen to 0; evaluations then use none. 0 keeps all."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in ("path", "until", "fields"):
            if not self.count and getattr(self, key):
                raise ValueError(f"{key}: {getattr(self, key)!r} counts with shots.count alone, which is 0")
        return self

    def count_at(self, step: int) -> int:
        """Return how many examples a step of training shows.

        >>> [ShotsConfig(count=4, until=8).count_at(step) for step in range(9)]
        [4, 4, 3, 3, 2, 2, 1, 1, 0]
        """
        if not self.until:
            return self.count
        return ceil(self.count * max(0, self.until - step) / self.until)

    @property
    def final(self) -> int:
        """How many examples evaluations show: the same before, during and after training."""
        return 0 if self.until else self.count
