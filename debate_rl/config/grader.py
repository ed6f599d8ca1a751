"""How answers are extracted and compared."""

from __future__ import annotations

from pydantic import field_validator

from debate.ramps import check_steps
from debate.settings import Settings
from envs.types import Mode


class GraderConfig(Settings):
    """How the answer of a solution is extracted and graded, by the modes of docs/grading.md."""

    renamed = dict.fromkeys(
        ("strict_mode", "strict_from"), 'mode, as in grader.mode = [[0, "lenient"], [100, "boxed"]]'
    )

    mode: Mode | tuple[tuple[int, Mode], ...] = "boxed"
    """How the answer is extracted and compared. "boxed" needs a box. "lenient" also reads stated answers and
    the last number. A list such as [[0, "lenient"], [100, "boxed"]] changes it at these steps; evaluations
    use its last mode."""
    beside: tuple[Mode, ...] = ()
    """Additional modes that grade every solution. Their metrics are logged; they do not change rewards."""

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
        """The mode of all evaluations, so that they can be compared."""
        return self.modes[-1][1]
