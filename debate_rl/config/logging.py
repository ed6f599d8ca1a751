"""What a run writes and shows beside its checkpoints."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings


class WandbConfig(Settings):
    """Weights & Biases; off until ``project`` is set. The API key comes from the environment only.

    A name alone, as in ``logging.wandb = "debates"``, is that of the project.
    """

    project: str | None = None
    """Project to log to; None turns wandb off."""
    entity: str | None = None
    """User or team; None takes the account's default."""
    name: str | None = None
    """Name of the run; None takes the run folder's."""
    group: str | None = None
    """Group of runs to show together, for instance the seeds of one recipe."""
    tags: tuple[str, ...] = ()
    """Labels to filter by."""
    mode: Literal["online", "offline"] | None = None
    """None obeys WANDB_MODE, or else is online; offline leaves files that ``wandb sync`` uploads."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_project(cls, data: Any) -> Any:
        return {"project": data} if isinstance(data, str) else data

    @field_validator("project")
    @classmethod
    def _is_a_project(cls, name: str | None) -> str | None:
        """Refuse before anything is trained what W&B refuses when a run starts."""
        if name is not None and not re.fullmatch(r"[^/\\#?%:]{1,128}", name):
            raise ValueError("is a name of 1 to 128 characters, none of them / \\ # ? % :")
        return name


class LoggingConfig(Settings):
    """What is written and shown during a run."""

    wandb: WandbConfig = WandbConfig()
    tensorboard: bool = False
    """Whether metrics also go to the folder tensorboard/ of the run."""
    progress: Literal["auto", "bar", "lines", "none"] = "auto"
    """A live bar, one line a step, or nothing; auto takes the bar in a terminal and lines in a pipe."""
    verbose: bool = False
    """Whether each step also prints what the optimizer did: loss, gradient, ratio, entropy, KL."""
    evaluation_transcripts: bool = True
    """Whether what is said in evaluations during training is kept, in RUN/evaluations."""
    transcript_tokens: bool = True
    """Whether transcripts hold token ids and log-probabilities; without them they are a tenth of the size."""
    transcript_groups: int | None = Field(default=None, ge=0)
    """Of how many problems of a step transcripts keep the debates; None: of all, 0: of none. A replay needs
    all where advantages compare problems with each other (baseline "rae", scale "batch", key "context")."""
    sample_share: float = Field(default=0.05, ge=0, le=1)
    """Share of the debates whose turns go to samples.jsonl, and to wandb as a table; 0 writes none."""
