"""The solved examples that prompts of the first round show before a problem."""

from __future__ import annotations

from math import ceil
from typing import Literal, Self

from pydantic import Field, model_validator

from debate.settings import Settings


class ShotsConfig(Settings):
    """How many examples, and where they are from."""

    count: int = Field(default=0, ge=0, le=64)
    """Examples before each problem; 0 shows none."""
    path: str | None = None
    """A file of rows with question, answer and solution, or the name of a shipped one, "arithmetic" or
    "mathematics"; None is ``split`` of the data set trained on."""
    split: str = "train"
    """Split of the data set, or of the file, that the examples are from."""
    fields: dict[str, str] | None = None
    """Names of the fields in that file, as ``env.fields``."""
    draw: Literal["fixed", "each"] = "fixed"
    """The same examples before all problems, or others before each; the run's seed draws both."""
    until: int = Field(default=0, ge=0)
    """Step by which there are none left, fewer and fewer; evaluations then have none. 0 keeps all."""

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
