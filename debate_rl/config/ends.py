"""When a run ends before its last step, and what an alarm of a detector does."""

from __future__ import annotations

import re
from typing import Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings

Action: TypeAlias = Literal["warn", "checkpoint", "stop", "rollback"]
FIGURE = re.compile(r"(eval/)?([a-z][a-z0-9_]*/)?(direct|debate|judge)/[a-z0-9_@/]+")


class TargetConfig(Settings):
    """A held-out metric at which a run has learnt enough, or too little."""

    metric: str
    """A held-out metric with an interval, such as "eval/debate/accuracy/round_0" or "eval/direct/accuracy";
    "eval/aime/direct/accuracy" for a set of ``held_out.more``."""
    value: float
    """End the run once the lower end of the metric's 95% interval reaches this."""
    min_steps: int = Field(default=0, ge=0)
    """Minimum number of steps."""
    demote_below: float | None = Field(default=None, ge=0, lt=1)
    """Also end once the upper end of the interval is below this. None: never."""

    @property
    def figure(self) -> str:
        """The metric as ``debate eval`` names it."""
        return self.metric.removeprefix("eval/")

    @field_validator("metric")
    @classmethod
    def _held_out(cls, value: str) -> str:
        if not FIGURE.fullmatch(value):
            raise ValueError(f'{value!r} is not a held-out figure; name one, as "debate/winner/accuracy"')
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.demote_below is not None and self.demote_below >= self.value:
            raise ValueError(f"demote_below = {self.demote_below:g}: is not below target = {self.value:g}")
        return self
