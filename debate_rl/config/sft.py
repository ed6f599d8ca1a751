"""Settings of supervised training on replies."""

from __future__ import annotations

from pydantic import Field, field_validator

from debate.settings import Settings


class SftConfig(Settings):
    """Which replies are learnt, and how often; off without ``data``. The optimizer is that of [learner]."""

    data: tuple[str, ...] = ()
    """Files of replies (JSON lines, JSON or Parquet, such as those of ``debate traces``), and data sets with
    written solutions by name, such as "numinamath_cot" or "openmathreasoning"."""
    split: str = "train"
    """Split of the data sets."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of replies per file or data set, drawn with the run's seed."""
    levels: tuple[str | int, ...] | None = None
    """Keep only replies to problems of these levels."""
    per_problem: int | None = Field(default=None, ge=1)
    """Maximum number of replies per problem; the first ones are kept."""
    max_tokens: int = Field(default=4096, ge=2)
    """Drop examples with more tokens, prompt and reply together. The number dropped is printed."""
    epochs: float = Field(default=2.0, gt=0)
    """Passes over the replies, rounded to whole steps."""
    steps: int | None = Field(default=None, ge=1)
    """Maximum number of steps. None: as many as the epochs take."""
    batch_size: int = Field(default=32, ge=1)
    """Replies per step; a step is one update."""
    held_back: int = Field(default=0, ge=0)
    """Replies held back for ``eval/sft/loss``, with all others to the same problems."""
    other_prompts: bool = False
    """Accept replies that a teacher gave to another prompt family than ``debate.prompts``."""

    @field_validator("data")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or value.count(name) > 1:
                raise ValueError(f"{name!r} is {'empty' if not name else 'named twice'}")
        return value
