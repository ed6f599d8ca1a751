"""Load models and tokenizers: a checkpoint by name, or a tiny model with random weights."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from debate.files import read_json
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.gguf_file import gguf_file, read_gguf, refuse_no_reader, unpacked, unreadable
from debate_rl.known_models import assumed_tokenizer, known_settings
from debate_rl.quantization import loading_settings, refuse_unquantizable
from debate_rl.warm_start.tokenizer import build_tokenizer
from envs.hub import has_model, is_reachable, spare_retries, why_not

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from debate_rl.config import Config


def load_model(
    config: ModelConfig, *, vocabulary: Sequence[str] | None = None, seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model, on its device, and its tokenizer. ``vocabulary``: the tokens of a tiny model.

    ``seed`` decides the initial weights of the model and of an adapter, without changing torch's global
    generator.
    """
    import torch

    device, dtype = resolve_device(config.device), resolve_dtype(config)
    refuse_unquantizable(config, device.type)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        if config.tiny is None:
            model, tokenizer = _load_checkpoint(config, dtype, **loading_settings(config, dtype, device))
        else:
            model, tokenizer = _tiny_model(config, dtype, vocabulary)
        chat_flag(config, tokenizer)
        if config.quantization == "none":  # a quantized one is there already
            model = model.to(device)  # pyright: ignore[reportArgumentType]
        return (add_lora(model, config) if config.lora_rank else model), tokenizer


def sketch_model(
    config: ModelConfig, *, vocabulary: Sequence[str] | None = None, on_gpu: bool, assumed: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model as ``load_model`` does, but on torch's "meta" device, and its tokenizer.

    Only settings and tokenizer are loaded, and no weights. With ``assumed``, the settings come from
    ``known_models`` and the tokenizer counts characters.
    """
    import torch
    from transformers import AutoModelForCausalLM

    dtype = resolve_dtype(config, on_gpu=on_gpu)
    with torch.device("meta"):
        if assumed:
            settings = known_settings(str(config.name_or_path))
            model, tokenizer = AutoModelForCausalLM.from_config(settings, dtype=dtype), assumed_tokenizer()
        elif config.tiny is None:
            model, tokenizer = _load_checkpoint(config, dtype, data=False)
        else:
            model, tokenizer = _tiny_model(config, dtype, vocabulary)
        return (add_lora(model, config) if config.lora_rank else model), tokenizer


def _tiny_model(
    config: ModelConfig, dtype: torch.dtype, vocabulary: Sequence[str] | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    assert config.tiny is not None
    tokenizer = build_tokenizer(vocabulary or (), fallback=config.tiny.fallback)
    model = build_tiny(config.tiny, tokenizer)
    for weight in model.parameters():  # buffers stay float32: a rotary frequency in bfloat16 is wrong
        weight.data = weight.data.to(dtype)
    return model, tokenizer


class ChatWarning(UserWarning):
    """Chat prompts for a model that may never have seen a chat."""


FEW = 256
"""A tokenizer with fewer tokens than this must have tokens other than special ones."""
_BASE = re.compile(r"(?<![a-z])base(?![a-z])", re.IGNORECASE)


def chat_flag(config: ModelConfig, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether prompts are chats. ValueError if the tokenizer has no template for a requested chat.

    A base model's tokenizer may have the template of its chat model, so with ``model.chat`` unset, a name
    that contains "base" causes a warning.
    """
    if config.chat and not tokenizer.chat_template:
        raise ValueError(
            f"model.chat: true, but the tokenizer of {config.name_or_path or 'the tiny model'} has no chat "
            "template (a base model?); set model.chat = false"
        )
    chat = bool(tokenizer.chat_template) if config.chat is None else config.chat
    if config.chat is None and chat and _BASE.search(Path(config.name_or_path or "").name):
        line = (
            f"model.chat: {config.name_or_path} looks like a base model, and prompts go through the chat "
            "template of its tokenizer; set model.chat = false, or true if it is a chat model"
        )
        warnings.warn(line, ChatWarning, stacklevel=3)
    return chat


NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
"""Linux describes NVIDIA's driver here if it is loaded."""


def resolve_device(name: str) -> torch.device:
    """Return the device of this name; "auto" is the first GPU, or else the CPU.

    ValueError for "auto" if NVIDIA's driver is loaded and a CUDA build of torch sees no GPU, although
    CUDA_VISIBLE_DEVICES does not hide them all: then the CPU is not what the user wants.
    """
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, present in available.items() if present)
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
        if name == "cpu" and torch.version.cuda and not hidden and NVIDIA_DRIVER.is_file():
            found = re.search(r"\d+\.\d+(\.\d+)?", NVIDIA_DRIVER.read_text())
            raise ValueError(
                f'model.device: "auto", and NVIDIA\'s driver {found[0] if found else "of some version"} is '
                f"loaded, but torch {torch.__version__} (CUDA {torch.version.cuda}) sees no GPU; install "
                "driver 580 or later, give a container its GPU (--gpus all), or set model.device=cpu"
            )
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"model.device: unknown device {name!r}; use auto, cpu, cuda, cuda:N or mps"
        ) from error
    if not available.get(device.type, False):
        kind = device.type.upper()
        raise ValueError(f"model.device: {name!r}, but torch sees no {kind} device; use cpu or auto")
    return device


def resolve_dtype(config: ModelConfig, *, on_gpu: bool | None = None) -> torch.dtype:
    """Return the data type of the weights; "auto" is bfloat16 for an adapter's base on a GPU, else float32.

    If ``on_gpu`` is None, ``model.device`` decides. A Mac's GPU does not count, because not all of them have
    bfloat16.
    """
    import torch

    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    if on_gpu is None:
        on_gpu = resolve_device(config.device).type == "cuda"
    return torch.bfloat16 if config.lora_rank and on_gpu else torch.float32


def on_cpu(config: Config) -> Config:
    """Return the configuration with its model on the CPU, in the data type of its configured device."""
    dtype = str(resolve_dtype(config.model)).removeprefix("torch.")
    model = config.model.model_copy(update={"device": "cpu", "dtype": dtype})
    return config.model_copy(update={"model": model})


def engine_dtype(config: ModelConfig) -> str:
    """Return the name of the data type in which an engine computes for a learner: bfloat16 on a GPU.

    The learner there keeps float32 weights but multiplies in bfloat16. On a CPU, the default is float32.
    """
    on_gpu = resolve_device(config.device).type == "cuda"
    return config.dtype if config.dtype in ("bfloat16", "float16") else "bfloat16" if on_gpu else "float32"


def build_tiny(config: TinyConfig, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
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
            attn_implementation="sdpa",  # pyright: ignore[reportCallIssue]
        )
    )


def add_lora(model: PreTrainedModel, config: ModelConfig) -> PreTrainedModel:
    """Return the model with a new LoRA adapter. Only the adapter is trained."""
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,  # pyright: ignore[reportArgumentType]
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, lora)  # pyright: ignore[reportReturnType]


def _load_checkpoint(
    config: ModelConfig, dtype: torch.dtype, *, data: bool = True, **quantized: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model and tokenizer of a folder, a GGUF file or a hub id. Without ``data``, no weights."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    name = str(config.name_or_path)
    source, file = _source_of(config), gguf_file(name)
    if not Path(source).is_dir():
        spare_retries()
    try:  # without trust_remote_code transformers asks at the terminal whether to run a folder's code
        if file is None:
            settings, tokenizer = None, AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        else:
            settings, tokenizer = read_gguf(file)
            quantized = {"config": settings, "gguf_file": file.name, **unpacked()}
        if len(tokenizer) < FEW and set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
            raise ValueError("it has no tokenizer; the substitute of transformers has only special tokens.")
        if not data:
            settings = settings or AutoConfig.from_pretrained(source, trust_remote_code=False)
            return AutoModelForCausalLM.from_config(
                settings, dtype=dtype, attn_implementation="sdpa", trust_remote_code=False
            ), tokenizer
        with bars_hidden(hide=not sys.stderr.isatty()):
            found: Any = AutoModelForCausalLM.from_pretrained(
                source,
                dtype=dtype,
                attn_implementation="sdpa",
                trust_remote_code=False,
                output_loading_info=True,
                **quantized,
            )
        model, loaded = found
        if file is not None and (missing := sorted(loaded["missing_keys"])):
            raise ValueError(f"it lacks {missing[0]} and {len(missing) - 1} more tensors")
    except Exception as error:  # whatever its readers raise at a folder that is damaged
        if file is not None:
            raise ValueError(unreadable(file, error)) from error
        if not has_model(source) and not is_reachable():
            raise ValueError(
                f"model.name_or_path: cannot load {name!r}: {why_not()}; give a folder with the model"
            ) from error
        reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        if isinstance(error, UnpicklingError):  # torch's advice to run a pickle is not passed on
            reason = "its weights are not plain tensors."
        raise ValueError(
            f"model.name_or_path: cannot load {name!r}: {reason} Give a folder with the model, or check the "
            "id and the connection to the hub"
        ) from error
    return model, tokenizer


def _source_of(config: ModelConfig) -> str:
    """Return the folder or hub id that transformers loads. ValueError if a folder has no model."""
    name = str(config.name_or_path)
    path, file = Path(name).expanduser(), gguf_file(name)
    if file is not None:
        refuse_no_reader(file)
        if config.quantization != "none":
            raise ValueError(
                f'model.quantization = "{config.quantization}": a GGUF file is unpacked to full weights; '
                'set "none", or give the model as a folder or a hub id'
            )
        return str(file.parent)
    if (path.is_dir() or name.startswith((".", "/", "~"))) and not (path / "config.json").is_file():
        raise ValueError(
            f"model.name_or_path: no model in {name!r} (neither config.json nor a .gguf file); give a "
            "folder, a GGUF file or a hub id"
        )
    return str(path) if path.is_dir() else name


def refuse_damaged_weights(config: ModelConfig) -> None:
    """Raise ValueError if a model folder's weights are missing or truncated, without reading them."""
    from safetensors import SafetensorError, safe_open

    folder = Path(config.name_or_path or "").expanduser()
    if config.name_or_path is None or not (folder / "config.json").is_file():
        return  # a hub's, or a GGUF file, which is checked when its settings are read
    index = folder / "model.safetensors.index.json"
    named = set(read_json(index)["weight_map"].values()) if index.is_file() else ()
    shards = [folder / name for name in named] or sorted(folder.glob("*.safetensors"))
    if not shards and not [*folder.glob("*.bin")]:
        raise ValueError(
            f"model.name_or_path: {folder} has settings but no weights (*.safetensors); download it again"
        )
    for shard in shards:
        try:
            with safe_open(shard, "pt"):
                pass
        except (OSError, SafetensorError) as error:
            raise ValueError(
                f"model.name_or_path: {shard} is missing or truncated ({error}); download it again"
            ) from error


@contextmanager
def bars_hidden(*, hide: bool = True) -> Iterator[None]:
    """Hide transformers' progress bars on stderr within the block: for a pipe, or next to a bar of ours."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    if hide:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if hide and shown:
            logging.enable_progress_bar()


def is_known_only(config: ModelConfig) -> bool:
    """Return whether a model cannot be loaded here but its settings are known."""
    name = config.name_or_path
    lacks = name is not None and not has_model(name) and not is_reachable()
    return lacks and known_settings(str(name)) is not None
