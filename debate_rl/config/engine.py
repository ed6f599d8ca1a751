"""The engine that samples and learns: this process, or a service under the same training loop."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings
from debate_rl.addresses import checked_url


class EngineConfig(Settings):
    """Where forward and backward passes run."""

    kind: Literal["local", "tinker", "verl"] = "local"
    """"local": this process, or those of torchrun. "tinker": a server of the Tinker API. "verl": verl on a
    Ray cluster. Both sample and learn; debates, rewards, order and transcripts stay here."""
    base_url: str | None = None
    """URL of the server, as in "http://localhost:8000". None: $TINKER_BASE_URL, or the SDK's default."""
    nodes: int = Field(default=1, ge=1)
    """verl: machines of the Ray cluster."""
    gpus_per_node: int = Field(default=1, ge=1)
    """verl: GPUs on each machine."""
    python: str = ".venv-verl/bin/python"
    """verl: the Python of the environment that has verl."""
    overrides: tuple[str, ...] = ()
    """verl: overrides of verl's own configuration, in Hydra's grammar, which come last."""

    @field_validator("base_url")
    @classmethod
    def _an_url(cls, value: str | None) -> str | None:
        return value if value is None else checked_url(value)

    @model_validator(mode="after")
    def _of_a_service(self) -> Self:
        if self.kind != "tinker" and self.base_url is not None:
            raise ValueError('base_url: is only used by the Tinker API; set kind = "tinker", or leave it out')
        return self
