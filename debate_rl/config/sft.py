"""Settings of supervised training on replies."""

from __future__ import annotations

from pydantic import Field, field_validator

from debate.settings import Settings


class SftConfig(Settings):
    """Which replies are learnt, and how often; off without ``data``. The optimizer is that of [learner]."""

    data: tuple[str, ...] = ()
    """Files of replies (JSON lines, JSON, Parquet; those of ``debate traces`` among them), and data sets with
    written solutions by name, such as "numinamath_cot" or "openmathreasoning"."""
    split: str = "train"
    """Split of the data sets."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many replies of each file and data set; a stream is drawn from with the run's seed."""
    levels: tuple[str | int, ...] | None = None
    """Keep replies to problems of these levels only."""
    per_problem: int | None = Field(default=None, ge=1)
    """At most so many replies to one problem, the first ones."""
    max_tokens: int = Field(default=4096, ge=2)
    """Leave out what is longer, prompt and reply together, and say how many that are."""
    epochs: float = Field(default=2.0, gt=0)
    """How often each reply is learnt, in whole steps."""
    steps: int | None = Field(default=None, ge=1)
    """At most so many steps; None is as many as the epochs take."""
    batch_size: int = Field(default=32, ge=1)
    """Replies of a step, which is one update."""
    held_back: int = Field(default=0, ge=0)
    """So many replies, and all others to the same problems, are not learnt: ``eval/sft/loss`` is of them."""
    other_prompts: bool = False
    """Whether to learn replies that a teacher gave to another prompt set than ``debate.prompts``."""

    @field_validator("data")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or value.count(name) > 1:
                raise ValueError(f"{name!r} is {'empty' if not name else 'named twice'}")
        return value
