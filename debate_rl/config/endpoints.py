"""Models that are not trained, by name: servers, models in this process, and custom policies.

A table ``[endpoints.NAME]`` defines an endpoint. ``verifier.endpoint``, ``summarizer.endpoint`` and
``remote.endpoint`` select one by name for each role.
"""

from __future__ import annotations

from typing import Self

from pydantic import field_validator, model_validator

from debate.settings import Settings, did_you_mean
from debate_rl.addresses import checked_url
from debate_rl.config.models import ModelConfig, ServerConfig


class EndpointConfig(ServerConfig):
    """A model that is not trained, and how to reach it."""

    model: str | None = None
    """Name of the model on its server. With policy = "local", a hub id or a folder."""
    policy: str | None = None
    """None: call the server at base_url. "local": load the model into this process with transformers.
    "package.module:factory": call this function without arguments to make your own policy."""

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: str | None) -> str | None:
        if value is not None and value != "local" and ":" not in value:
            raise ValueError(f'unknown policy {value!r}; valid: local, or "module:factory"')
        return value

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        own_code = self.policy is not None and self.policy != "local"
        if not own_code and self.model is None:
            raise ValueError("model: is missing; set the name of the model")
        if self.policy is None and self.base_url is None:
            raise ValueError('base_url: is missing; set it, as in "http://localhost:8000/v1"')
        if self.base_url is not None:
            checked_url(self.base_url)
        return self

    @property
    def name(self) -> str:
        """The model, or the import path of a custom policy."""
        return self.model or self.policy or ""

    def as_model(self) -> ModelConfig:
        """Return the endpoint as a ``ModelConfig``."""
        server = ServerConfig(**self.model_dump(include=set(ServerConfig.model_fields)))
        policy = "openai" if self.policy is None else None if self.policy == "local" else self.policy
        return ModelConfig(name_or_path=self.model, policy=policy, server=server)


class RoleConfig(Settings):
    """The endpoint of a role: verifier, summarizer, or remote agents of a debate."""

    endpoint: str | None = None
    """Name of the endpoint for this role. None: no verifier, no remote agents, or summaries by the agents'
    own policy."""


def check_endpoint(key: str, name: str | None, endpoints: dict[str, EndpointConfig]) -> None:
    """Raise ValueError if ``key`` names an endpoint that [endpoints] does not define."""
    if name is not None and name not in endpoints:
        hint = did_you_mean(name, endpoints, f"add a table [endpoints.{name}] with model and base_url")
        raise ValueError(f"{key} = {name!r}: no endpoint has this name; {hint}")
