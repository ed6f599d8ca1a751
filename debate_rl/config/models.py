"""Settings of the trained model, and of the engine that samples from it: this process, a server, or vLLM."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.config import DebateConfig
from debate.settings import Settings
from debate_rl.addresses import checked_url

Fallback: TypeAlias = Literal["bytes", "ascii", "none"]
"""The encoding of text outside the vocabulary of a tiny model."""


ENGINES = ("openai", "vllm")
"""Values of ``model.policy`` other than dotted paths."""


class ServerConfig(Settings):
    """A server with OpenAI's API. The API key is read only from $OPENAI_API_KEY."""

    base_url: str | None = None
    """URL of the server, such as "http://localhost:8000/v1"."""
    concurrency: int = Field(default=64, ge=1)
    """Maximum number of concurrent requests."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Timeout of one request in seconds."""


class VLLMConfig(Settings):
    """vLLM in this process, in separate processes, or on running servers."""

    renamed = {"max_model_len": "debate.context_tokens"}  # noqa: RUF012

    engines: int = Field(default=0, ge=0, le=64)
    """Number of engines in separate processes. Each holds the whole model, on the GPUs after the learner's,
    or on the learner's GPU if there is only one. 0: one engine in this process, or in a separate one with
    ``train.async_level``."""
    servers: tuple[str, ...] = ()
    """URLs of running vLLM servers to use instead of engines, such as ["http://localhost:8000/v1"]. Each must
    be a single replica, because a load balancer would send a new adapter to only one replica.
    ``model.server`` sets timeouts."""
    adapter_folder: str | None = None
    """Folder for new adapters, which the servers can read under the same path. None: pass adapters in memory,
    which works only for servers of this user on this machine."""
    sleep: bool | Literal["auto"] = "auto"
    """Move the engine's weights to host memory while the learner updates. Only for an engine in this process.
    "auto": only if the forecast says that the run would not fit otherwise."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Fraction of the GPU memory for an engine."""
    enforce_eager: bool = False
    """Do not use CUDA graphs. The engine then starts faster but samples more slowly."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """GPUs per engine."""

    def engine_settings(self) -> dict[str, object]:
        """Return the settings for each engine."""
        return self.model_dump(exclude={"engines", "servers", "adapter_folder", "sleep"})

    @model_validator(mode="after")  # a field validator's error would show the value, including a password
    def _different_urls(self) -> Self:
        urls = [checked_url(url, "servers") for url in self.servers]
        if twice := next((url for url in urls if urls.count(url) > 1), None):
            raise ValueError(f"servers: {twice} is listed twice; list each server once")
        return self

    @model_validator(mode="after")
    def _engines_or_servers(self) -> Self:
        if self.engines and self.servers:
            raise ValueError(
                f"servers: engines = {self.engines} would be started in addition to running servers; leave "
                f"out one of the two"
            )
        return self


class TinyConfig(Settings):
    """A small Qwen3 model with random weights."""

    same = {"context_tokens": DebateConfig}  # noqa: RUF012

    hidden_size: int = Field(default=128, ge=8, le=65_536)
    """Hidden size of the model."""
    layers: int = Field(default=2, ge=1, le=1024)
    """Number of transformer blocks."""
    heads: int = Field(default=4, ge=1)
    """Number of query heads, a divisor of hidden_size. There are half as many key-value heads, or one if the
    number is odd."""
    intermediate_size: int = Field(default=256, ge=8, le=262_144)
    """Hidden size of the MLPs."""
    init_std: float = Field(default=0.06, gt=0)
    """Standard deviation of the initial weights. Models of this size learn too slowly with 0.02."""
    context_tokens: int = Field(default=4096, ge=16)
    """Maximum number of tokens of prompt and completion together."""
    pieces: tuple[str, ...] = ()
    """Texts with their own token, in addition to section tags, agent names and words of the synthetic
    families."""
    fallback: Fallback = "bytes"
    """Encoding of text outside the vocabulary: as bytes, as ASCII characters, or as one unknown token."""

    @property
    def kv_heads(self) -> int:
        """Number of key-value heads."""
        return 1 if self.heads % 2 else self.heads // 2

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.hidden_size % self.heads or (self.hidden_size // self.heads) % 2:
            raise ValueError(
                f"heads: {self.heads} must divide hidden_size {self.hidden_size} into even parts"
            )
        return self


class ModelConfig(Settings):
    """The trained model. Set exactly one of ``name_or_path`` and ``tiny``."""

    name_or_path: str | None = None
    """A hub id such as "Qwen/Qwen3-8B", a folder with config.json, or a GGUF file, which is unpacked to full
    weights (extra ``gguf``). With a server: the model's name on the server."""
    tiny: TinyConfig | None = None
    """Build a small model instead of loading one."""
    policy: str | None = None
    """Sampler of replies. None: the model in this process. "vllm": vLLM (``model.vllm``). "openai": a server
    (``model.server``), for evaluation only. "package.module:factory": your own policy."""
    server: ServerConfig = ServerConfig()
    vllm: VLLMConfig = VLLMConfig()
    chat: bool | None = None
    """Format prompts with the chat template. None: only if the tokenizer has one."""
    device: str = "auto"
    """"auto" (a GPU if there is one), "cpu", "cuda", "cuda:1", "mps" (Apple GPU)."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Data type of the weights. "auto": bfloat16 for the base of an adapter on a CUDA GPU, else float32,
    because rounding in half precision loses small updates. Adapters are always float32."""
    quantization: Literal["none", "8bit", "4bit"] = "none"
    """Quantization of an adapter's frozen base with bitsandbytes on a CUDA GPU: LLM.int8 or NF4 (QLoRA). Not
    available with vLLM."""
    lora_rank: int = Field(default=0, ge=0, le=65_536)
    """Rank of the LoRA adapters on all linear layers. 0 trains the full weights."""
    lora_alpha: float = Field(default=32.0, gt=0)
    """LoRA alpha. The adapter's output is multiplied by alpha / rank."""

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: str | None) -> str | None:
        if value is not None and value not in ENGINES and ":" not in value:
            raise ValueError(f'unknown policy {value!r}; valid: {", ".join(ENGINES)}, or "module:factory"')
        return value

    @model_validator(mode="after")
    def _quantizable(self) -> Self:
        if self.quantization == "none":
            return self
        given = f'quantization = "{self.quantization}"'
        if self.lora_rank == 0:
            raise ValueError(f"{given}: needs a frozen base model; set lora_rank to train an adapter")
        if self.name_or_path is None:
            raise ValueError(f"{given}: needs a checkpoint; a tiny model cannot be quantized")
        if self.policy in ENGINES:
            raise ValueError(
                f"{given}: the engine would sample from an unquantized base and the learner train on a "
                f'quantized one (vLLM dropped bitsandbytes in 0.28); leave out policy = "{self.policy}"'
            )
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.name_or_path is None) == (self.tiny is None):
            raise ValueError(
                "set exactly one of name_or_path (a checkpoint) and tiny (a small model built here)"
            )
        return self
