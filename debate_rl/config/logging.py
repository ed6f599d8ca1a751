"""What a run logs: metrics, transcripts and progress."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from debate.settings import Settings


class LoggingConfig(Settings):
    """What a run writes and shows during training."""

    renamed = {"verbose": 'progress = "verbose"'}  # noqa: RUF012

    wandb: str | None = None
    """W&B project to log to. None turns W&B off. Environment variables set the rest: WANDB_API_KEY,
    WANDB_NAME, WANDB_ENTITY, WANDB_RUN_GROUP, WANDB_TAGS, WANDB_MODE (offline writes for ``wandb sync``)."""
    tensorboard: bool = False
    """Also write metrics to the folder tensorboard/ of the run."""
    progress: Literal["auto", "bar", "lines", "verbose", "none"] = "auto"
    """A live bar, one line per step, or nothing. "auto" shows the bar in a terminal and lines in a pipe;
    "verbose" also prints loss, gradient norm, ratio, entropy and KL of each step."""
    evaluation_transcripts: bool = True
    """Keep the transcripts of evaluations during training, in RUN/evaluations."""
    transcript_tokens: bool = True
    """Store token ids and log-probabilities in transcripts. Without them files are ten times smaller."""
    transcript_groups: int | None = Field(default=None, ge=0)
    """Problems per step whose debates transcripts keep. None keeps all, 0 keeps none. A replay needs all of
    them if advantages compare problems (baseline "rae", scale "batch", key "context")."""

    @field_validator("wandb", mode="before")
    @classmethod
    def _is_a_project(cls, project: object) -> object:
        """Refuse a project name that W&B would refuse at the start of the run."""
        if isinstance(project, dict):
            raise ValueError("is only the project now; set the run's name in the variable WANDB_NAME")
        if isinstance(project, str) and not re.fullmatch(r"[^/\\#?%:]{1,128}", project):
            raise ValueError("must have 1 to 128 characters, without / \\ # ? % :")
        return project
