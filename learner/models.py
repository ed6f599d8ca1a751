"""Models and tokenizers from a configuration: a checkpoint by name, or a small one built on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from debate.settings import Settings
from learner.engine_config import ServerConfig, VLLMConfig
from learner.warm_start.tokenizer import Fallback, VocabularyError, build_tokenizer

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class TinyConfig(Settings):
    """A small Qwen3 model, built with random weights."""

    hidden_size: int = Field(default=128, ge=8, le=65_536)
    """Width of the model."""
    layers: int = Field(default=2, ge=1, le=1024)
    """Transformer blocks."""
    heads: int = Field(default=4, ge=1)
    """Query heads; a divisor of hidden_size."""
    kv_heads: int = Field(default=2, ge=1)
    """Key and value heads; a divisor of heads."""
    intermediate_size: int = Field(default=256, ge=8, le=262_144)
    """Width inside the MLPs."""
    init_std: float = Field(default=0.06, gt=0)
    """Standard deviation of the matrices; 0.02 learns too slowly at this width."""
    context_tokens: int = Field(default=4096, ge=16)
    """Longest prompt plus completion."""
    pieces: tuple[str, ...] = ()
    """Texts that get a token of their own, beside section tags, handles and the synthetic family's words."""
    fallback: Fallback = "bytes"
    """What becomes of text outside the vocabulary: bytes, ASCII characters, or the unknown token."""

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.hidden_size % self.heads or (self.hidden_size // self.heads) % 2:
            raise ValueError(
                f"heads: {self.heads} must divide hidden_size {self.hidden_size} into even parts"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: {self.kv_heads} must divide heads {self.heads}")
        return self


class ModelConfig(Settings):
    """Which model plays and learns. Exactly one of ``name_or_path`` and ``tiny``."""

    name_or_path: str | None = None
    """A hub id such as "Qwen/Qwen3-8B", or a folder with config.json; of a server's model, its name there."""
    tiny: TinyConfig | None = None
    """Build a small model instead of loading one."""
    policy: str | None = None
    """Who speaks: None is LocalPolicy, "openai" a server (see ``server``), "vllm" vLLM (see ``vllm``), and
    "package.module:factory" your own policy, called as LocalPolicy is."""
    server: ServerConfig = ServerConfig()
    vllm: VLLMConfig = VLLMConfig()
    chat: bool | None = None
    """Whether prompts go through the chat template; None: yes if the tokenizer has one."""
    device: str = "auto"
    """"auto" (a GPU if there is one), "cpu", "cuda", "cuda:1", "mps" (a Mac's GPU)."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the weights; "auto" is bfloat16 on a GPU under an adapter, and float32 otherwise: full weights of
    half precision lose small updates in rounding. An adapter itself is float32 always."""
    attn_implementation: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    """How transformers computes attention."""
    lora_rank: int = Field(default=0, ge=0, le=65_536)
    """Rank of the LoRA adapter; 0 trains the full weights."""
    lora_alpha: float = Field(default=32.0, gt=0)
    """The adapter's output is scaled by alpha / rank."""
    lora_targets: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    """Names of the modules that get an adapter."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.name_or_path is None) == (self.tiny is None):
            raise ValueError(
                "set exactly one of name_or_path (a checkpoint) and tiny (a small model built here)"
            )
        return self


class ModelError(ValueError):
    """A model that cannot be loaded, or that does not fit its configuration."""


def load_model(
    config: ModelConfig, *, vocabulary: Sequence[str] | None = None, seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model, on its device, and its tokenizer. ``vocabulary``: the pieces of a tiny model.

    ``seed`` decides the initial weights (of the adapter too) and leaves torch's own stream untouched.
    """
    import torch

    device, dtype = resolve_device(config.device), resolve_dtype(config)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if config.tiny is None:
            model, tokenizer = _load_checkpoint(config, dtype)
        else:
            tokenizer = build_tokenizer(vocabulary or (), fallback=config.tiny.fallback)
            model = build_tiny(config.tiny, tokenizer, attn_implementation=config.attn_implementation)
        chat_flag(config, tokenizer)
        model = model.to(device=device, dtype=dtype)  # pyright: ignore[reportCallIssue]
        if config.lora_rank:
            model = add_lora(model, config)
    return model, tokenizer


def chat_flag(config: ModelConfig, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether prompts are chats. ModelError when a chat is asked of a tokenizer without a template."""
    if config.chat and not tokenizer.chat_template:
        raise ModelError(
            f"model.chat: true, but the tokenizer of {config.name_or_path or 'the tiny model'} has no chat "
            "template (a base model?); set model.chat = false"
        )
    return bool(tokenizer.chat_template) if config.chat is None else config.chat


def resolve_device(name: str) -> torch.device:
    """Return the device of this name; "auto" is the first GPU, or the CPU."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, found in there.items() if found)
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ModelError(
            f"model.device: unknown device {name!r}; use auto, cpu, cuda, cuda:N or mps"
        ) from error
    if not there.get(device.type, False):
        kind = device.type.upper()
        raise ModelError(f"model.device: {name!r}, but torch sees no {kind} device; use cpu or auto")
    return device


def resolve_dtype(config: ModelConfig) -> torch.dtype:
    """Return the type of the weights; "auto" is bfloat16 on a GPU under an adapter, and float32 otherwise."""
    import torch

    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    whole = not config.lora_rank or resolve_device(config.device).type == "cpu"
    return torch.float32 if whole else torch.bfloat16


def build_tiny(
    config: TinyConfig, tokenizer: PreTrainedTokenizerBase, *, attn_implementation: str = "sdpa"
) -> PreTrainedModel:
    """Return a Qwen3 model with random weights (torch's global seed) for this tokenizer's vocabulary."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            head_dim=config.hidden_size // config.heads,
            intermediate_size=config.intermediate_size,
            max_position_embeddings=config.context_tokens,
            initializer_range=config.init_std,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            attn_implementation=attn_implementation,  # pyright: ignore[reportCallIssue]
        )
    )


def add_lora(model: PreTrainedModel, config: ModelConfig) -> PreTrainedModel:
    """Return the model with a fresh LoRA adapter; only the adapter is trained."""
    from peft import LoraConfig, get_peft_model

    targets = config.lora_targets if isinstance(config.lora_targets, str) else list(config.lora_targets)
    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, lora)  # pyright: ignore[reportReturnType]
    except ValueError as error:
        raise ModelError(
            f"model.lora_targets: {config.lora_targets!r} does not fit this model: {error}"
        ) from error


def _load_checkpoint(
    config: ModelConfig, dtype: torch.dtype
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = str(config.name_or_path)
    path = Path(name).expanduser()
    if (path.is_dir() or name.startswith((".", "/", "~"))) and not (path / "config.json").is_file():
        raise ModelError(
            f"model.name_or_path: no model in {name!r} (no config.json there); give a folder or a hub id"
        )
    source = str(path) if path.is_dir() else name
    try:  # unless told not to, transformers asks at the terminal whether to run the code in a model's folder
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            attn_implementation=config.attn_implementation,
            trust_remote_code=False,
        )
    except Exception as error:  # whatever its readers raise at a folder that is damaged
        reason = _first_line(error)
        raise ModelError(
            f"model.name_or_path: cannot load {name!r}: {reason} Give a folder with the model, or check the "
            "id and the connection to the hub"
        ) from error
    return model, tokenizer


def _first_line(error: Exception) -> str:
    """Return what an error of transformers says first; torch's advice to run a pickle is not passed on."""
    if isinstance(error, UnpicklingError):
        return "its weights are no plain tensors."
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


__all__ = [
    "ModelConfig",
    "ModelError",
    "TinyConfig",
    "VocabularyError",
    "add_lora",
    "build_tiny",
    "build_tokenizer",
    "chat_flag",
    "load_model",
    "resolve_device",
    "resolve_dtype",
]
