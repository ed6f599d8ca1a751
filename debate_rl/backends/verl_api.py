"""verl as an engine: its FSDP workers learn and its rollout servers sample, on the GPUs of a Ray cluster.

``debate_rl.backends.verl_server`` runs in verl's own environment and is called over a socket on this machine.
The loop stays here. verl gets one request at a time: log-probabilities, an update, new weights for its
servers, replies, a checkpoint. Losses are computed here (``debate_rl.backends.learner``).
"""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import AutoTokenizer

from debate.seeds import SERVER_SEEDS
from debate.types import Completion, SampleRequest
from debate_rl.backends.policy import ServicePolicy
from debate_rl.backends.service import ServiceError, refuse_unfit
from debate_rl.config import Config
from debate_rl.inference.remote import Remote, RemoteError, RemoteProcess, new_address
from debate_rl.inference.vllm_requests import Part
from debate_rl.models import load_model
from learner.types import Row
from learner.update.optimizer import adam_eps

SERVER = "debate_rl.backends.verl_server:VerlServer"
VERL = "0.9.1"
SHARED_MEMORY = 0.5
"""Fraction of a GPU's memory for vLLM, which shares the GPU with a worker, unless the recipe names one."""
SHARED_S = 30.0
"""Seconds to wait for the shards that workers on other machines wrote."""
CLOSING_S = 20.0
"""Seconds to wait for Ray to take the GPUs back. A new run may start at once and needs them."""
FIND = "from importlib.metadata import version; print(version('verl'))"


class VerlPolicy(ServicePolicy):
    """Samples with verl's rollout servers."""

    def __init__(self, service: VerlService, name: str, **speech: Any) -> None:
        super().__init__(name, **speech)
        self._service = service

    async def update(self, weights: object, version: int) -> None:
        """Send the trained weights to the servers."""
        with errors_named("publish"):
            await self._service.remote.ask("publish", version)
        self.version = version

    def sleep(self) -> None:
        """Release the servers' GPU memory until the next update."""
        self._service.call("sleep")

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request."""

        async def ask(prompt: list[int], sampling: dict[str, Any]) -> Part:
            debate = str(request.debate)  # verl keeps requests of one name on one server
            with errors_named("generate"):
                reply = await self._service.remote.ask("generate", debate, prompt, sampling)
            tokens, logprobs, versions = reply
            if set(versions) != {self.version}:
                raise ServiceError(f"verl sampled with weights {versions} instead of {self.version}")
            return self._part(tokens, logprobs, sampling)

        return await self._reply(request, ask, version=self.version)

    def close(self) -> None:
        """End verl's process."""
        self._service.close()


class VerlService:
    """The weights that verl's workers train; see ``Service``. ``words``: overrides of verl's settings."""

    def __init__(self, config: Config, words: Sequence[str]) -> None:
        self._config, self._words = config, words

    @cached_property
    def _home(self) -> Path:
        """A folder with the socket and a link to this package. verl's environment has all other packages."""
        self._folder = TemporaryDirectory(prefix="debate-rl-", ignore_cleanup_errors=True)
        home = Path(self._folder.name)
        (home / "debate_rl").symlink_to(Path(__file__).parents[1])
        return home

    @cached_property
    def remote(self) -> Remote:
        """The connection to verl's process, which starts at first use. ValueError if the process fails."""
        engine, run = self._config.engine, Path(self._config.run.dir)
        self._process = RemoteProcess(
            SERVER,
            {"words": list(self._words), "reference": needs_model(self._config)},
            new_address(self._home, "verl"),
            (run if run.is_dir() else self._home) / "verl.log",
            python=str(Path(engine.python).expanduser()),
            path=[str(self._home), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))],
        )
        try:
            self._process.start()
            self._process.wait()
            return Remote(self._process.address)
        except (OSError, ValueError) as error:
            raise ValueError(f'engine.kind = "verl": {_first_and_last(error)}') from error

    def call(self, method: str, *arguments: object) -> Any:
        """Return the result of a call. ServiceError if verl failed or has ended."""
        with errors_named(method):
            return self.remote.call(method, *arguments).result()

    def prepare(self) -> None:
        """Do nothing: verl adds up the losses of all tokens."""

    def logprobs(self, rows: Sequence[Row], *, reference: bool = False) -> list[NDArray[np.float32]]:
        """Return log-probabilities (L,) of each row in nats, 0 for its first token; see ``Service``."""
        found = self.call("logprobs", [_plain(row) for row in rows], reference)
        return [np.concatenate(([0.0], values[:-1])).astype(np.float32) for values in found]

    def update(
        self, rows: Sequence[Row], logprobs: Tensor, advantages: Tensor, *, lr: float
    ) -> dict[str, float]:
        """Apply one optimizer step; see ``Service``."""
        slopes = [
            -np.where(row.action_mask, weight[: len(row.input_ids)], 0.0).astype(np.float32)
            for row, weight in zip(rows, advantages.numpy(), strict=True)
        ]
        norm = self.call("update", [_plain(row) for row in rows], slopes, lr)["grad_norm"]
        return {"grad_norm": norm, "grad_norm_max": norm}

    def save_pretrained(self, folder: Path, **_: object) -> None:
        """Write the shards of weights and optimizer into a folder, which all nodes must share."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        count: int = self.call("save", str(Path(folder).resolve()))
        wanted = {f"model_world_size_{count}_rank_{rank}.pt" for rank in range(count)}
        until = time.monotonic() + SHARED_S  # network file systems may show new files late
        while (there := _shards(folder)) and (missing := wanted - there):  # other strategies have other files
            if time.monotonic() > until:
                raise ServiceError(
                    f"verl saved {count} shards, but {len(missing)} are not in {folder}; all machines must "
                    "share the run's folder"
                )
            time.sleep(1.0)

    def load_pretrained(self, folder: Path) -> None:
        """Load the shards of weights and optimizer that ``save_pretrained`` wrote.

        ValueError if another number of workers wrote them.
        """
        engine, shards = self._config.engine, _shards(folder)
        workers = engine.nodes * engine.gpus_per_node
        if shards and not any(name.startswith(f"model_world_size_{workers}_") for name in shards):
            raise ValueError(
                f"engine.nodes * engine.gpus_per_node = {workers}: {folder} was saved by "
                f"{len(shards)} workers; set both as before"
            )
        self.call("load", str(Path(folder).resolve()))

    def close(self) -> None:
        """Give verl's GPUs back to Ray, and end verl's process."""
        if "remote" in self.__dict__:
            with suppress(OSError, TimeoutError):
                self.remote.call("shut_down").result(timeout=CLOSING_S)
        with suppress(AttributeError):
            self._process.close()


@contextmanager
def errors_named(method: str) -> Iterator[None]:
    """Convert an error of verl, or the end of its process, to ServiceError."""
    try:
        yield
    except ServiceError:
        raise
    except (RemoteError, ValueError) as error:
        raise ServiceError(f"verl failed ({method}): {_first_and_last(error)}") from error


def _first_and_last(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return (f"{lines[0]} ... {lines[-1]}" if len(lines) > 1 else "".join(lines))[:300]


def _shards(folder: Path) -> set[str]:
    return {path.name for path in Path(folder).glob("model_world_size_*_rank_*.pt")}


def needs_model(config: Config) -> bool:
    """Return whether the KL penalty needs a separate reference; with an adapter, the base is one."""
    return config.learner.needs_reference and not config.model.lora_rank


def _plain(row: Row) -> dict[str, Any]:
    return {"ids": row.input_ids, "begin": int(np.argmax(row.action_mask))}


def verl_words(config: Config) -> list[str]:
    """Return a recipe as overrides of verl's own configuration, with ``engine.overrides`` last."""
    model, learner, engine, debate = config.model, config.learner, config.engine, config.debate
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    reply = debate.max_tokens + debate.thinking_tokens
    context = debate.context_tokens or 0
    given = "gpu_memory_utilization" in model.vllm.model_fields_set
    memory = model.vllm.gpu_memory_utilization if given else SHARED_MEMORY
    words = {
        "trainer.nnodes": engine.nodes,
        "trainer.n_gpus_per_node": engine.gpus_per_node,
        "data.max_prompt_length": max(context - reply, 1),
        "data.max_response_length": reply,
        "actor_rollout_ref.model.path": _quoted(_absolute(str(model.name_or_path))),
        "actor_rollout_ref.model.lora_rank": model.lora_rank,
        "actor_rollout_ref.model.lora_alpha": int(model.lora_alpha),
        "actor_rollout_ref.model.target_modules": "all-linear",
        "actor_rollout_ref.model.trust_remote_code": False,
        "actor_rollout_ref.model.enable_gradient_checkpointing": bool(learner.gradient_checkpointing),
        f"{actor}.strategy": "fsdp2",
        f"{actor}.fsdp_config.seed": config.seed % SERVER_SEEDS,
        f"{actor}.use_dynamic_bsz": True,
        f"{actor}.ppo_max_token_len_per_gpu": learner.micro_batch_tokens,
        f"{actor}.use_kl_loss": False,
        f"{actor}.optim.lr": learner.lr,
        f"{actor}.optim.betas": f"[{learner.betas[0]},{learner.betas[1]}]",
        f"{actor}.optim.weight_decay": 0.0,
        f"{actor}.optim.clip_grad": learner.max_grad_norm,
        f"{actor}.optim.override_optimizer_config": f"{{eps:{adam_eps((), learner)}}}",
        "actor_rollout_ref.ref.log_prob_use_dynamic_bsz": True,
        "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": learner.micro_batch_tokens,
        f"{rollout}.name": "vllm",
        f"{rollout}.n": 1,
        f"{rollout}.max_model_len": context,
        f"{rollout}.tensor_model_parallel_size": model.vllm.tensor_parallel_size,
        f"{rollout}.gpu_memory_utilization": memory,
        f"{rollout}.enforce_eager": model.vllm.enforce_eager,
        f"{rollout}.calculate_log_probs": True,
        f"{rollout}.log_prob_use_dynamic_bsz": True,
        f"{rollout}.log_prob_max_token_len_per_gpu": learner.micro_batch_tokens,
    }
    for part in (actor, "actor_rollout_ref.ref"):  # verl's default computes and adds up in bfloat16
        precision = f"{part}.fsdp_config.mixed_precision"
        words |= {
            f"{part}.fsdp_config.model_dtype": "fp32",
            f"++{precision}.param_dtype": "fp32" if learner.compute == "float32" else "bf16",
            f"++{precision}.reduce_dtype": "fp32",
            f"++{precision}.buffer_dtype": "fp32",
        }
    if model.lora_rank:
        words["actor_rollout_ref.model.lora.merge"] = True  # the servers get full weights
    return [*(f"{key}={value}" for key, value in words.items()), *engine.overrides]


def _quoted(value: str) -> str:
    r"""Return a value that Hydra's grammar reads as this string.

    >>> print(_quoted("it's a=b"))
    'it\'s a=b'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _absolute(name: str) -> str:
    """Return an existing local folder as an absolute path, because workers have another current folder."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def plan_lines(config: Config) -> list[str]:
    """Return verl's settings for a run, and the commands that start Ray on its machines."""
    refuse_unfit(config)
    engine, ray = config.engine, Path(config.engine.python).with_name("ray")
    lines = ["verl's settings:", *(f"  {word}" for word in verl_words(config))]
    if engine.nodes > 1:
        others = f"{engine.nodes - 1} other machine" + "s" * (engine.nodes > 2)
        lines += [
            f"on the first machine: {ray} start --head --port=6379",
            f"on the {others}: {ray} start --address=FIRST:6379",
            "then on the first machine: RAY_ADDRESS=FIRST:6379 debate train RECIPE",
            "whoever reaches Ray's port can run code on these machines: use a private network, and set "
            "RAY_AUTH_MODE=token on all of them",
        ]
    return [
        *lines,
        "every reply is a separate row: a prefix shared by several replies is read once for each reply",
    ]


def load_trained(config: Config, checkpoint: Path) -> tuple[Any, Any]:
    """Return the model of a checkpoint, joined from its FSDP2 shards, and the tokenizer."""
    shards = list((checkpoint / "model").glob("model_world_size_*_rank_*.pt"))
    if not shards:
        raise ValueError(f"{checkpoint}: has no shards of FSDP2, the only format that can be exported")
    logging.getLogger("torch.distributed.device_mesh").setLevel(logging.ERROR)  # there is no process group
    states: list[dict[str, Any]] = [
        torch.load(path, map_location="cpu", weights_only=True)
        for path in sorted(shards, key=lambda path: int(path.stem.rpartition("_")[2]))
    ]
    model, tokenizer = load_model(config.model, seed=config.seed)
    model.load_state_dict({name: whole_tensor([state[name] for state in states]) for name in states[0]})
    return model.eval(), tokenizer


def whole_tensor(parts: Sequence[Any]) -> Tensor:
    """Return a complete tensor from the parts of all ranks. FSDP2 shards one dimension."""
    first = parts[0]
    if not isinstance(first, DTensor):
        return first
    placement: Any = first.placements[-1]
    mesh = first.device_mesh.mesh
    ranks = mesh.reshape(-1, mesh.shape[-1])[0].tolist()  # other rows of the mesh hold copies
    return torch.cat([parts[rank].to_local() for rank in ranks], dim=placement.dim)


def _run_python(config: Config, *words: str) -> str:
    """Return what verl's Python prints. ValueError, with the last line of its errors, if it fails."""
    python = config.engine.python
    try:
        done = subprocess.run([Path(python).expanduser(), *words], capture_output=True, text=True)
    except OSError as error:
        raise ValueError(f"engine.python={python}: {error.strerror}; run make engines") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"engine.python={python}: {said[:300]}")
    return done.stdout.strip()


def open_service(config: Config, **speech: Any) -> tuple[VerlService, Any, VerlPolicy]:
    """Return the service that learns, the tokenizer, and the policy that samples at the service."""
    name, nodes = str(config.model.name_or_path), config.engine.nodes
    if nodes > 1 and not os.environ.get("RAY_ADDRESS"):
        raise ValueError(
            f"engine.nodes={nodes}: set RAY_ADDRESS to the address of a Ray cluster; debate train RECIPE "
            "--plan prints the commands that start one"
        )
    if (found := _run_python(config, "-c", FIND)) != VERL:
        raise ValueError(f"engine.python={config.engine.python}: has verl {found}; install verl {VERL}")
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    service = VerlService(config, verl_words(config))
    _ = service.remote  # started now, so that a mistake ends the command before any step
    policy = VerlPolicy(service, name, context_tokens=config.debate.context_tokens, **speech)
    return service, tokenizer, policy
