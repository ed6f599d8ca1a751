"""Settings of metrics, transcripts and progress output."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from debate.settings import Settings


class LoggingConfig(Settings):
    """Files that a run writes and progress that it shows."""

    renamed = {"verbose": 'progress = "verbose"'}  # noqa: RUF012

    wandb: str | None = None
    """W&B project to log to. None: do not use W&B. Other settings come from the environment: WANDB_API_KEY,
    WANDB_NAME, WANDB_ENTITY, WANDB_RUN_GROUP, WANDB_TAGS, WANDB_MODE (offline writes for ``wandb sync``)."""
    tensorboard: bool = False
    """Also write metrics to the folder tensorboard/ of the run."""
    progress: Literal["auto", "bar", "lines", "verbose", "none"] = "auto"
    """Progress output: a live bar, one line per step, or nothing. "auto" shows the bar in a terminal and
    lines otherwise. "verbose" adds loss, gradient norm, ratio, entropy and KL to each line."""
    evaluation_transcripts: bool = True
    """Save transcripts of the evaluations during training, in RUN/evaluations."""
    transcript_tokens: bool = True
    """Save token ids and log-probabilities in transcripts. Files without them are ten times smaller."""
    transcript_groups: int | None = Field(default=None, ge=0)
    """Number of problems per step whose debates are saved as transcripts. None: all. ``debate replay`` needs
    all of them if advantages compare problems (baseline "rae", scale "batch", key "context")."""

    @field_validator("wandb", mode="before")
    @classmethod
    def _is_a_project(cls, project: object) -> object:
        """Raise ValueError for a project name that W&B would reject."""
        if isinstance(project, dict):
            raise ValueError("must be the project; set the run's name in the variable WANDB_NAME")
        if isinstance(project, str) and not re.fullmatch(r"[^/\\#?%:]{1,128}", project):
            raise ValueError("must have 1 to 128 characters, without / \\ # ? % :")
        return project
