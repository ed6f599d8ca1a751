"""What a checkpoint keeps of the sampler of problems."""

from __future__ import annotations

from debate.values import Value


class Memory(Value, frozen=True):
    """What a run remembers of a problem: its recent pass rate, the newest one, and the step that drew it.

    The rates are None until a debate of it was graded.
    """

    step: int
    rate: float | None = None
    newest: float | None = None


class SamplerState(Value, frozen=True):
    """The cursor of each set of problems, and what is remembered of problems by id."""

    cursors: dict[str, int]
    memory: dict[str, Memory]
