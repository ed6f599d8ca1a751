"""The engine that samples and learns: this process, or a service under the same training loop."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from debate.settings import Settings
from debate_rl.addresses import checked_url


class EngineConfig(Settings):
    """Where forward and backward passes run."""

    kind: Literal["local", "tinker"] = "local"
    """"local": this process, or those of torchrun. "tinker": a server of the Tinker API, which samples and
    learns; debates, rewards, order and transcripts stay here."""
    base_url: str | None = None
    """URL of the server, as in "http://localhost:8000". None: $TINKER_BASE_URL, or the SDK's default."""

    @field_validator("base_url")
    @classmethod
    def _an_url(cls, value: str | None) -> str | None:
        return value if value is None else checked_url(value)

    @model_validator(mode="after")
    def _of_a_service(self) -> Self:
        if self.kind == "local" and self.base_url is not None:
            raise ValueError('base_url: is only used by a service; set kind = "tinker", or leave it out')
        return self
