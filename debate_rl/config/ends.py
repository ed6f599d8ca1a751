"""When a run ends before its last step, and what an alarm of a detector does."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from debate.settings import Settings

Action: TypeAlias = Literal["warn", "checkpoint", "stop", "rollback"]


class TargetConfig(Settings):
    """A held-out figure at which a run has learnt enough."""

    metric: str = Field(min_length=1)
    """A held-out metric of metrics.jsonl with an interval, such as eval/debate/accuracy/round_0."""
    value: float = Field(allow_inf_nan=False)
    """End the run once the lower end of its 95% interval reaches this."""
