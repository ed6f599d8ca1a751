"""A model that speaks beside the policy and is never trained: which, and how it is reached."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, Self

from pydantic import field_validator, model_validator

from debate.settings import Settings
from debate_rl.config.models import ModelConfig, ServerConfig, VLLMConfig

SPEAKERS: Final = ("openai", "vllm", "local")
"""What the policy of such a model may name beside a dotted path."""


class SpeakerConfig(Settings):
    """A model beside the policy."""

    TABLE: ClassVar[str]
    ROLE: ClassVar[str]

    policy: str | None = None
    """Who speaks: "openai" a server, "vllm" vLLM in this process, "local" a model by transformers, or
    "package.module:factory" your own policy, called without arguments. None: nobody."""
    model: str | None = None
    """The model: a hub id or a folder; of a server's model, its name there."""
    server: ServerConfig = ServerConfig()
    vllm: VLLMConfig = VLLMConfig(gpu_memory_utilization=0.3)
    chat: bool | None = None
    """Whether prompts go through the chat template; None: yes if the tokenizer has one."""
    device: str = "auto"
    """Of a local model: "auto" (a GPU if there is one), "cpu", "cuda:1"."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of a local or vLLM model's weights."""

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: str | None) -> str | None:
        if value is not None and value not in SPEAKERS and ":" not in value:
            raise ValueError(f'unknown policy {value!r}; valid: {", ".join(SPEAKERS)}, or "module:factory"')
        return value

    @model_validator(mode="after")
    def _possible_speaker(self) -> Self:
        if self.policy is None:
            fields = type(self).model_fields
            if changed := [name for name in fields if getattr(self, name) != fields[name].default]:
                raise ValueError(f"{changed[0]}: is for a {self.ROLE}; name one as {self.TABLE}.policy")
        if self.policy in SPEAKERS and self.model is None:
            raise ValueError(f'policy = "{self.policy}": needs the name of a model as {self.TABLE}.model')
        if self.policy == "openai" and self.server.base_url is None:
            raise ValueError(
                f'policy = "openai": needs {self.TABLE}.server.base_url, as in "http://localhost:8000/v1"'
            )
        return self

    @property
    def name(self) -> str:
        """What it is called: the model, or the path of an own policy."""
        return self.model or self.policy or ""

    def model_config_of(self) -> ModelConfig:
        """Return it as a model that speaks."""
        return ModelConfig(
            name_or_path=self.model,
            policy=None if self.policy == "local" else self.policy,
            server=self.server,
            vllm=self.vllm,
            chat=self.chat,
            device=self.device,
            dtype=self.dtype,
        )


class RemoteConfig(SpeakerConfig):
    """Who speaks at the seats of ``debate.seats`` that are "remote"."""

    TABLE = "remote"
    ROLE = "model at remote seats"


class SummarizerConfig(SpeakerConfig):
    """Who writes the summaries of ``debate.summary``; without a policy here, the agents' own does."""

    TABLE = "summarizer"
    ROLE = "model that summarises"
