"""Settings of the engine that samples and learns: this process or a service."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings
from debate_rl.addresses import checked_url


class EngineConfig(Settings):
    """The place where forward and backward passes run."""

    kind: Literal["local", "tinker", "verl"] = "local"
    """"local": this process, or the processes of torchrun. "tinker": a server with the Tinker API. "verl":
    verl on a Ray cluster. A service samples and updates weights; debates, rewards and transcripts stay in
    this process."""
    base_url: str | None = None
    """URL of the Tinker server, such as "http://localhost:8000". None: $TINKER_BASE_URL, or the SDK's
    default."""
    nodes: int = Field(default=1, ge=1)
    """verl: number of machines in the Ray cluster."""
    gpus_per_node: int = Field(default=1, ge=1)
    """verl: number of GPUs per machine."""
    python: str = ".venv-verl/bin/python"
    """verl: Python interpreter of the environment with verl."""
    overrides: tuple[str, ...] = ()
    """verl: overrides of verl's configuration in Hydra's grammar. They take precedence over all other
    settings."""

    @field_validator("base_url")
    @classmethod
    def _an_url(cls, value: str | None) -> str | None:
        return value if value is None else checked_url(value)

    @model_validator(mode="after")
    def _of_a_service(self) -> Self:
        if self.kind != "tinker" and self.base_url is not None:
            raise ValueError('base_url: is only used by the Tinker API; set kind = "tinker", or leave it out')
        return self
