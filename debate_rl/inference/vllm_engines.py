"""Open vLLM: in this process, in processes of its own, or by the URLs of running servers."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from debate.files import read_json
from debate.types import Policy
from debate_rl.config import Config

if TYPE_CHECKING:
    from debate_rl.inference.vllm_weights import Transfer

IN_THIS_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


def open_vllm(
    config: Config,
    settings: dict[str, Any],
    *,
    home: TemporaryDirectory[str] | None = None,
    written: int = 0,
    transfer: Transfer | None = None,
    learners: int = 1,
) -> Policy:
    """Return a policy that samples by vLLM in this process, by engines in other processes, or by servers.

    ``settings``: the model's files and the settings of prompts. ``home``: the folder in memory that holds a
    tiny base model. ``written``: the number of bytes that each update writes.
    """
    vllm = config.model.vllm
    own: dict[str, Any] = {"max_model_len": config.debate.context_tokens, **vllm.engine_settings()}
    if config.vllm_within and learners == 1 and not vllm.servers:
        os.environ[IN_THIS_PROCESS] = "0"  # overrides the user's: a model that learns here cannot be pickled
        from debate_rl.inference.vllm import VLLMPolicy

        return VLLMPolicy(**settings, **own, sleeps=vllm.sleep is True)
    import torch

    from debate_rl.inference.engine_pool import EnginePool
    from debate_rl.inference.vllm_weights import memory_folder, write_weights

    run = Path(config.run.dir)
    shared = {
        "write": partial(write_weights, dtype=settings["dtype"]),
        "log": (run if run.is_dir() else Path(mkdtemp(prefix="debate-rl-"))) / "engines.log",
    }
    if vllm.servers:
        settings.pop("max_lora_rank", None)
        settings |= config.model.server.model_dump(exclude={"base_url"})
        folder = _servers_folder(vllm.adapter_folder)
        if folder is not None and "adapter" in settings:
            settings["adapter"] = copytree(settings["adapter"], Path(folder.name) / "first")
        home = memory_folder(0 if folder else 2 * written)
        each = [{**settings, "base_url": url} for url in vllm.servers]
        return EnginePool(each, [{} for _ in each], home=home, folder=folder, kept=1, **shared)
    count = max(vllm.engines, 1)
    settings |= own | {"adapters_at_once": config.train.async_level + 1}
    if transfer is not None:
        settings["weight_transfer_config"] = {"backend": transfer.backend}
    gpus = engine_environments(count, vllm.tensor_parallel_size, torch.cuda.device_count(), learners)
    home = home or memory_folder(written)
    return EnginePool([settings] * count, gpus, home=home, transfer=transfer, **shared)


def _servers_folder(name: str | None) -> TemporaryDirectory[str] | None:
    """Make a world-readable folder within ``model.vllm.adapter_folder``; None if that key is not set."""
    if name is None:
        return None
    home = Path(name).expanduser().resolve()
    if not (home.is_dir() and os.access(home, os.W_OK)):
        raise ValueError(
            f"model.vllm.adapter_folder={name}: must be a folder that can be written; create it first"
        )
    folder = TemporaryDirectory(prefix="debate-rl-", dir=home, ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)
    return folder


def shares_gpu(config: Config, gpus: int) -> bool:
    """Return whether vLLM samples on the learner's own GPU on a machine with ``gpus`` GPUs."""
    return config.vllm_within or (gpus < 2 and not config.model.vllm.servers)


def engine_environments(engines: int, each: int, gpus: int, learners: int = 1) -> list[dict[str, str]]:
    """Return the environment variables that give each engine its GPUs: those after the learners' GPUs.

    On a machine with one GPU the engine shares that GPU with the learner.

    >>> engine_environments(2, 1, 3)[1]["CUDA_VISIBLE_DEVICES"]
    '2'
    >>> engine_environments(2, 1, 8, learners=6)[1]["CUDA_VISIBLE_DEVICES"]
    '7'
    >>> engine_environments(1, 1, 0), engine_environments(1, 1, 1)
    ([{'VLLM_ENABLE_V1_MULTIPROCESSING': '0'}], [{'VLLM_ENABLE_V1_MULTIPROCESSING': '0'}])
    """
    if gpus > 1 and engines * each > gpus - learners:
        raise ValueError(
            f"model.vllm.engines = {engines}, with {each} GPUs each, and {learners} learners need "
            f"{engines * each + learners} GPUs; this machine has {gpus}: lower model.vllm.engines"
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = visible.split(",") if visible else [str(gpu) for gpu in range(gpus)]
    return [
        {IN_THIS_PROCESS: "0"}
        | ({"CUDA_VISIBLE_DEVICES": ",".join(names[learners + index * each :][:each])} if gpus > 1 else {})
        for index in range(engines)
    ]


def model_files(name: str) -> dict[str, Any]:
    """Return the vLLM settings for a model's files: its path, or base, folder and rank of an adapter."""
    folder = Path(name).expanduser()
    file = folder / "adapter_config.json"
    if not file.is_file():
        return {"model_path": str(folder) if folder.is_dir() else name}
    try:
        facts = read_json(file)
        base, rank = str(facts["base_model_name_or_path"]), int(facts["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: must have base_model_name_or_path and r") from error
    return {"model_path": base, "adapter": folder, "max_lora_rank": rank}
