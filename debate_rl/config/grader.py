"""Settings of the grader, which extracts and compares answers."""

from __future__ import annotations

from pydantic import field_validator

from debate.ramps import check_steps
from debate.settings import Settings
from envs.types import Mode


class GraderConfig(Settings):
    """The modes in which answers are extracted and compared (docs/grading.md)."""

    renamed = dict.fromkeys(
        ("strict_mode", "strict_from"), 'mode, as in grader.mode = [[0, "lenient"], [100, "boxed"]]'
    )

    mode: Mode | tuple[tuple[int, Mode], ...] = "boxed"
    """Mode in which answers are extracted and compared. "boxed" accepts only an answer in \\boxed{}.
    "lenient" also accepts a stated answer or the last number. A list such as [[0, "lenient"], [100, "boxed"]]
    changes the mode at these steps; evaluations use the last mode."""
    beside: tuple[Mode, ...] = ()
    """Further modes that grade every solution for metrics only. Rewards do not use them."""

    @field_validator("mode")
    @classmethod
    def _ascending(cls, value: Mode | tuple[tuple[int, Mode], ...]) -> Mode | tuple[tuple[int, Mode], ...]:
        if not isinstance(value, str):
            check_steps([step for step, _ in value])
        return value

    @property
    def modes(self) -> tuple[tuple[int, Mode], ...]:
        """Each mode with the first step at which it grades."""
        return ((0, self.mode),) if isinstance(self.mode, str) else self.mode

    def mode_at(self, step: int) -> Mode:
        """Return the mode at a step of training.

        >>> grader = GraderConfig(mode=((0, "lenient"), (10, "boxed")))
        >>> grader.mode_at(9), grader.mode_at(10), grader.final
        ('lenient', 'boxed', 'boxed')
        """
        return next(mode for first, mode in reversed(self.modes) if first <= step)

    @property
    def final(self) -> Mode:
        """The mode of all evaluations."""
        return self.modes[-1][1]
