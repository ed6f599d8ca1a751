"""Which engine samples: the model in this process, a server, or vLLM. Only the first of them loads torch."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from debate.concurrency import run_async
from debate.files import read_json
from debate.prompting.rendering import raw_prompt
from debate.types import Policy
from debate_rl.config import Config

ENGINES = ("openai", "vllm")
"""What ``model.policy`` may name beside a dotted path."""
IN_THIS_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


def open_policy(config: Config, weights: Path | None) -> Policy:
    """Return a policy to play with: the configured one, with a checkpoint's weights if one is given."""
    engine = config.model.policy
    if engine == "openai" and weights is not None:
        raise ValueError(
            f"model.policy=openai: does not load {weights}; export the run, and give a recipe whose "
            "model.name_or_path is what a server calls the export"
        )
    if engine == "openai":
        return _server(config)
    return _vllm(config) if engine == "vllm" and weights is None else _with_weights(config, weights)


def refuse_training(config: Config) -> None:
    """ValueError where the policy is an engine that training cannot give new weights to."""
    if config.model.policy == "openai":
        raise ValueError(
            "model.policy=openai: plays and is evaluated, and cannot be trained; leave it out, or set vllm"
        )


def make_policy(config: Config) -> tuple[Any, Any, Policy]:
    """Return the model in this process, its tokenizer, and the policy that plays it.

    An engine has weights of its own, which are the model's from the first ``update`` on.
    """
    from debate.policies.local import LocalPolicy
    from debate.policy import own_policy
    from debate_rl.runs.kept_weights import load_run_model

    model, tokenizer = load_run_model(config)
    if config.model.policy == "vllm":
        return model, tokenizer, _vllm_beside(config, tokenizer)
    make = LocalPolicy if config.model.policy is None else own_policy(config.model.policy)
    return model, tokenizer, make(model, tokenizer, **local_settings(config))


def local_settings(config: Config) -> dict[str, Any]:
    """Return how a local policy turns messages into prompts, and how many it answers at a time."""
    return {"chat": config.model.chat, "batch_size": config.train.batch_size, **_prompt_settings(config)}


def _prompt_settings(config: Config) -> dict[str, Any]:
    """Return how any engine turns messages into prompts."""
    texts, thinking = config.debate.prompts, config.debate.thinking_tokens > 0
    return {"thinking": thinking, "raw_prompt": partial(raw_prompt, texts=texts)}


def _with_weights(config: Config, weights: Path | None) -> Policy:
    from debate_rl.runs.checkpoint import load_checkpoint

    model, _, policy = make_policy(config)
    if weights is not None:
        load_checkpoint(weights, model=model, restore_rng=False, verify=False)
    run_async(policy.update(model, policy.version))
    return policy


def _server(config: Config) -> Policy:
    from debate.policies.openai import OpenAIPolicy

    model, server = config.model, config.model.server
    if server.base_url is None or model.name_or_path is None:
        raise ValueError(
            "model.policy=openai: needs model.server.base_url, as in http://localhost:8000/v1, and the "
            "model's name at that server as model.name_or_path"
        )
    return OpenAIPolicy(
        server.base_url,
        model.name_or_path,
        chat=model.chat is not False,
        **_prompt_settings(config),
        **server.model_dump(exclude={"base_url"}),
    )


def _vllm(config: Config) -> Policy:
    from debate.policies.vllm import VLLMPolicy

    model = config.model
    if model.name_or_path is None:
        raise ValueError(
            "model.policy=vllm: needs model.name_or_path, a hub id or a folder (debate export makes one)"
        )
    return VLLMPolicy(
        dtype=model.dtype,
        chat=model.chat,
        **_prompt_settings(config),
        **_model_files(model.name_or_path),
        **model.vllm.model_dump(),
    )


def _vllm_beside(config: Config, tokenizer: Any) -> Policy:
    """Return vLLM in this process on the model's base; a tiny one is written to memory for it."""
    os.environ.setdefault(IN_THIS_PROCESS, "0")
    from debate.policies.vllm import VLLMPolicy
    from debate.policies.vllm_weights import memory_folder
    from debate_rl.models import engine_dtype
    from debate_rl.runs.checkpoint import write_model
    from debate_rl.runs.kept_weights import load_run_model

    settings: dict[str, Any] = {
        "dtype": engine_dtype(config.model),
        "chat": config.model.chat,
        "max_lora_rank": config.model.lora_rank,
        **_prompt_settings(config),
        **config.model.vllm.model_dump(),
    }
    if config.model.name_or_path is not None:
        return VLLMPolicy(**_model_files(config.model.name_or_path), **settings)
    whole = config.model_copy(update={"model": config.model.model_copy(update={"lora_rank": 0})})
    with memory_folder() as folder:
        write_model(Path(folder), load_run_model(whole)[0])
        tokenizer.save_pretrained(folder)
        return VLLMPolicy(folder, **settings)


def _model_files(name: str) -> dict[str, Any]:
    """Return the model and, where the name is the folder of an adapter, its base and the adapter's rank."""
    folder = Path(name).expanduser()
    file = folder / "adapter_config.json"
    if not file.is_file():
        return {"model_path": str(folder) if folder.is_dir() else name}
    try:
        facts = read_json(file)
        base, rank = str(facts["base_model_name_or_path"]), int(facts["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: does not have base_model_name_or_path and r") from error
    return {"model_path": base, "adapter": folder, "max_lora_rank": rank}
