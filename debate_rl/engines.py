"""Which engine samples: the model in this process, a server, or vLLM. Only the first of them loads torch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from debate.files import read_json
from debate.prompting.rendering import raw_prompt
from debate.types import Policy
from debate_rl.config import Config

ENGINES = ("openai", "vllm")
"""What ``model.policy`` may name beside a dotted path."""


def open_policy(config: Config, weights: Path | None) -> Policy:
    """Return a policy to play with: the configured one, with a checkpoint's weights if one is given."""
    if config.model.policy not in ENGINES:
        return _local(config, weights)
    if weights is not None:
        raise ValueError(
            f"model.policy={config.model.policy}: does not load {weights}; export the run, and give a recipe "
            "whose model.name_or_path is the export"
        )
    return _server(config) if config.model.policy == "openai" else _vllm(config)


def refuse_training(config: Config) -> None:
    """ValueError where the policy is an engine that training cannot give new weights to."""
    if config.model.policy in ENGINES:
        raise ValueError(
            f"model.policy={config.model.policy}: plays and is evaluated, and cannot be trained; leave it out"
        )


def make_policy(config: Config) -> tuple[Any, Any, Policy]:
    """Return the model in this process, its tokenizer, and the policy over it."""
    from debate.policies.local import LocalPolicy
    from debate.policy import own_policy
    from debate_rl.runs.kept_weights import load_run_model

    make = LocalPolicy if config.model.policy is None else own_policy(config.model.policy)
    model, tokenizer = load_run_model(config)
    return model, tokenizer, make(model, tokenizer, **local_settings(config))


def local_settings(config: Config) -> dict[str, Any]:
    """Return how a local policy turns messages into prompts, and how many it answers at a time."""
    return {"chat": config.model.chat, "batch_size": config.train.batch_size, **_prompt_settings(config)}


def _prompt_settings(config: Config) -> dict[str, Any]:
    """Return how any engine turns messages into prompts."""
    texts, thinking = config.debate.prompts, config.debate.thinking_tokens > 0
    return {"thinking": thinking, "raw_prompt": partial(raw_prompt, texts=texts)}


def _local(config: Config, weights: Path | None) -> Policy:
    from debate_rl.runs.checkpoint import load_checkpoint

    model, _, policy = make_policy(config)
    if weights is not None:
        load_checkpoint(weights, model=model, restore_rng=False, verify=False)
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
