"""The verifier model of a run: a model that scores replies by a rubric. Its verdicts are no ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.files import LARGEST_TOML, read_plain
from debate.settings import Settings
from debate_rl.config.models import ModelConfig, ServerConfig, VLLMConfig
from envs.errors import DataError

ENGINES = ("openai", "vllm", "local")
"""What ``verifier.policy`` may name beside a dotted path."""


class VerifierConfig(Settings):
    """A verifier model, and what it scores. Problems of kind "rubric" are rewarded by its verdicts."""

    policy: str | None = None
    """Who scores: "openai" a server, "vllm" vLLM in this process, "local" a model by transformers, or
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
    rubric: str | None = Field(default=None, min_length=1)
    """What a reply is scored by; a row's own rubric comes first. None: for problems with a gold answer
    whether the final answer is correct, and for kind "rubric" the row must bring one."""
    rubric_file: str | None = None
    """A text file with the rubric."""
    beside_truth: bool = False
    """Whether solutions of problems with a gold answer are scored too. The agreement with truth is measured;
    nothing learns from these verdicts but judges, with ``rewards.judge_verdict_weight``."""
    diagnose: bool = False
    """Whether ``debate eval`` also asks of direct solutions to problems with a gold answer whether their
    approach is valid, and of the wrong ones why they are wrong, by fixed rubrics."""
    threshold: float = Field(default=0.5, gt=0, le=1)
    """The lowest score that passes."""
    samples: int = Field(default=1, ge=1, le=64)
    """Scores whose mean is a verdict; several need a temperature."""
    temperature: float = Field(default=0.0, ge=0)
    """Of its sampling."""
    max_tokens: int = Field(default=1024, ge=1)
    """Most tokens of its reply, reasons included."""
    thinking_tokens: int = Field(default=0, ge=0)
    """Most tokens of its thinking; 0 for models that do not think."""
    concurrency: int = Field(default=64, ge=1)
    """Requests under way at a time."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Seconds for one reply, tries included."""
    cache: str | None = None
    """The file of what it has said, which runs may share; None is verdicts.jsonl beside the run's folder."""
    max_without: float = Field(default=0.5, ge=0, le=1)
    """A step or evaluation in which it gives no verdict on more than this share of the replies (and on 8 or
    more) ends the run, with the finished steps saved."""

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: str | None) -> str | None:
        if value is not None and value not in ENGINES and ":" not in value:
            raise ValueError(f'unknown policy {value!r}; valid: {", ".join(ENGINES)}, or "module:factory"')
        return value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.policy is None:
            fields = type(self).model_fields
            if changed := [name for name in fields if getattr(self, name) != fields[name].default]:
                raise ValueError(f"{changed[0]}: is for a verifier model; name one as verifier.policy")
            return self
        if self.policy in ENGINES and self.model is None:
            raise ValueError(f'policy = "{self.policy}": needs the name of a model as verifier.model')
        if self.policy == "openai" and self.server.base_url is None:
            raise ValueError(
                'policy = "openai": needs verifier.server.base_url, as in "http://localhost:8000/v1"'
            )
        if self.rubric is not None and self.rubric_file is not None:
            raise ValueError("rubric and rubric_file: are both set; leave out one")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples = {self.samples}: at temperature 0 all are the same; set verifier.temperature, or 1"
            )
        return self

    @property
    def name(self) -> str:
        """What its verdicts are kept under: the model, or the path of an own policy."""
        return self.model or self.policy or ""

    def own_rubric(self) -> str | None:
        """Return the rubric of the recipe; DataError where its file cannot be read."""
        if self.rubric_file is None:
            return self.rubric
        try:
            text = read_plain(Path(self.rubric_file), LARGEST_TOML).decode().strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"verifier.rubric_file={self.rubric_file}: {why}") from error
        if not text:
            raise DataError(f"verifier.rubric_file={self.rubric_file}: is empty")
        return text

    def model_config_of(self) -> ModelConfig:
        """Return the verifier model as a model that speaks."""
        return ModelConfig(
            name_or_path=self.model,
            policy=None if self.policy == "local" else self.policy,
            server=self.server,
            vllm=self.vllm,
            chat=self.chat,
            device=self.device,
            dtype=self.dtype,
        )
