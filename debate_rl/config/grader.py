"""How the answers of a run are found and compared."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from debate.settings import Settings
from envs.types import Mode


class GraderConfig(Settings):
    """Where the answer of a solution is, and when it is right: the modes of docs/grading.md."""

    mode: Mode = "boxed"
    """How the answer is extracted and compared. "boxed" needs a box. "lenient" also reads stated answers and
    the last number."""
    strict_mode: Mode | None = None
    """Mode from step ``strict_from`` on, and in every evaluation. None keeps ``mode``."""
    strict_from: int = Field(default=0, ge=0)
    """First step graded by ``strict_mode``. Requires ``strict_mode``."""
    beside: tuple[Mode, ...] = ()
    """Additional modes that grade every solution. Their metrics are logged; they do not change rewards."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.strict_mode is None) != (self.strict_from == 0):
            raise ValueError(
                f"strict_mode and strict_from: belong together, got {self.strict_mode!r} and "
                f"{self.strict_from}; name the mode and the first step (1 or more) that it grades"
            )
        return self

    def mode_at(self, step: int) -> Mode:
        """Return the mode that grades a step of training.

        >>> grader = GraderConfig(mode="lenient", strict_mode="boxed", strict_from=10)
        >>> grader.mode_at(9), grader.mode_at(10), grader.final
        ('lenient', 'boxed', 'boxed')
        """
        return self.mode if self.strict_mode is None or step < self.strict_from else self.strict_mode

    @property
    def final(self) -> Mode:
        """The mode of evaluations: the same before, during and after training, to compare them."""
        return self.strict_mode or self.mode
