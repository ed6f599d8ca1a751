"""verl's training workers and rollout servers, driven one request at a time. Runs in verl's own environment.

``debate_rl.backends.verl_api`` starts this module with verl's Python and calls ``VerlServer`` over a socket.
It imports nothing of this project. Written against verl 0.9.1: its worker groups, rollout replicas and weight
sync are used, but not its trainer. Ray starts on this machine unless ``RAY_ADDRESS`` names a cluster.
"""

# pyright: basic, reportMissingImports=false
# ruff: noqa: D102

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.checkpoint_engine import CheckpointEngineManager
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray import RayClassWithInitArgs, RayWorkerGroup
from verl.single_controller.ray.base import ResourcePoolManager, create_colocated_worker_cls
from verl.trainer.constants_ppo import get_ppo_ray_runtime_env
from verl.trainer.ppo.utils import Role
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.import_utils import import_external_libs
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.rollout.llm_server import LLMServerManager
from verl.workers.utils.padding import no_padding_2_padding

POOL = "global_pool"
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the cluster's nodes do not have this file
FIELDS = (
    *("input_ids", "position_ids", "prompts", "responses", "response_mask", "loss_mask"),
    "slopes",
)
Rows = Sequence[Mapping[str, Any]]
"""Rows as plain arrays: ``ids`` (L,), and ``begin``, the index of the first sampled token."""


def slope_loss(model_output: Any, data: TensorDict, dp_group: object = None) -> tuple[torch.Tensor, dict]:
    """Return sum(slope * logprob), whose gradient is the one that the caller computed.

    FSDP averages gradients over the data-parallel ranks, so the sum is multiplied by their number.
    """
    logprobs = no_padding_2_padding(model_output["log_probs"], data)
    given = data.select("slopes", "response_mask").to_padded_tensor()
    terms = torch.where(given["response_mask"].bool(), given["slopes"] * logprobs, 0.0)
    return terms.sum() * data["dp_size"], {}


class DebateWorker(ActorRolloutRefWorker):
    """verl's worker with our loss, the run's seed, and the learning rate of each update."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> None:
        torch.manual_seed(self.config.actor.fsdp_config.seed)  # an adapter starts at random
        super().init_model()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def use_slopes(self) -> None:
        self.actor.set_loss_fn(slope_loss)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def set_lr(self, lr: float) -> None:
        for group in self.actor.engine.optimizer.param_groups:
            group["lr"] = lr
        self.actor.engine.lr_scheduler.base_lrs = [lr] * len(self.actor.engine.lr_scheduler.base_lrs)


class VerlServer:
    """The workers and servers of ``words``: overrides of verl's own configuration, in Hydra's grammar.

    ``reference``: whether the workers also keep the start weights, for a KL penalty. With LoRA, the base has
    them.
    """

    def __init__(self, words: Sequence[str], *, reference: bool = False) -> None:
        with initialize_config_module("verl.trainer.config", version_base=None):
            self.config = config = compose("ppo_trainer", overrides=list(words))
        OmegaConf.resolve(config)
        import_external_libs(config.actor_rollout_ref.model.external_lib)
        if not ray.is_initialized():
            given = OmegaConf.to_container(config.ray_kwargs.get("ray_init", {}))
            environment = OmegaConf.to_container(OmegaConf.create(get_ppo_ray_runtime_env(config)))
            environment["env_vars"] = {
                **environment.get("env_vars", {}),
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            }
            address = os.environ.get("RAY_ADDRESS") or "local"  # never a cluster that happens to run here
            ray.init(**{**given, "address": address, "runtime_env": environment})
        role = Role.ActorRolloutRef if reference else Role.ActorRollout
        size = [config.trainer.n_gpus_per_node] * config.trainer.nnodes
        pools = ResourcePoolManager(resource_pool_spec={POOL: size}, mapping={role: POOL})
        pools.create_resource_pool()
        pool, name = pools.get_resource_pool(role), str(role)
        self._has_reference = reference
        made = RayClassWithInitArgs(
            cls=ray.remote(DebateWorker),
            config=config.actor_rollout_ref,
            distillation_config=config.get("distillation"),
            role=name,
        )
        together = create_colocated_worker_cls(class_dict={name: made})
        group = RayWorkerGroup(
            resource_pool=pool, ray_cls_with_init=together, device_name=config.trainer.device
        )
        self.workers = group.spawn(prefix_set=[name])[name]
        self.workers.init_model()
        self.workers.use_slopes()
        self.servers = LLMServerManager.create(
            config=config, worker_group=self.workers, rollout_resource_pool=pool
        )
        self.client = self.servers.get_client()
        engine = omega_conf_to_dataclass(config.actor_rollout_ref.rollout.checkpoint_engine)
        engine.backend = "naive"
        self.sync = CheckpointEngineManager(
            config=engine, actor_wg=self.workers, replicas=self.servers.get_replicas()
        )
        self._awake = True
        self._sleep()

    async def logprobs(self, rows: Rows, reference: bool) -> list[np.ndarray]:
        return await asyncio.to_thread(self._logprobs, rows, reference)

    def _logprobs(self, rows: Rows, reference: bool) -> list[np.ndarray]:
        limit = self.config.actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu
        data, own = self._batch(rows, None, limit), reference and self._has_reference
        without = reference and not own  # of an adapter: the base
        tu.assign_non_tensor(
            data, calculate_entropy=False, compute_loss=False, temperature=1.0, no_lora_adapter=without
        )
        read = self.workers.compute_ref_log_prob if own else self.workers.compute_log_prob
        found = read(data)["log_probs"]
        return [values.float().numpy() for values in found.unbind()][: len(rows)]

    async def update(self, rows: Rows, slopes: Sequence[np.ndarray], lr: float) -> dict[str, float]:
        return await asyncio.to_thread(self._update, rows, slopes, lr)

    def _update(self, rows: Rows, slopes: Sequence[np.ndarray], lr: float) -> dict[str, float]:
        self.workers.set_lr(lr)
        data = self._batch(rows, slopes, self.config.actor_rollout_ref.actor.ppo_max_token_len_per_gpu)
        count = len(data)
        tu.assign_non_tensor(
            data,
            calculate_entropy=False,
            temperature=1.0,
            mini_batch_size=count,
            global_batch_size=count,
            epochs=1,
            seed=0,
            dataloader_kwargs={"shuffle": False},
        )
        metrics = tu.get(self.workers.update_actor(data), "metrics")
        return {name: float(np.mean(metrics[name])) for name in ("grad_norm", "loss") if name in metrics}

    async def publish(self, version: int) -> None:
        await asyncio.to_thread(self._publish, version)

    def _publish(self, version: int) -> None:
        self._sleep()  # servers take weights only while they sleep
        self.sync.update_weights(version)
        self._awake = True

    async def sleep(self) -> None:
        await asyncio.to_thread(self._sleep)

    def _sleep(self) -> None:
        if self._awake:
            self.sync.sleep_replicas()
        self._awake = False

    async def generate(self, name: str, prompt: list[int], sampling: dict[str, Any]) -> tuple[Any, ...]:
        sampling = {**sampling, "logprobs": True}  # verl's word for the log-probability of each token
        found = await self.client.generate(name, prompt_ids=prompt, sampling_params=sampling)
        versions = [found.extra_fields.get(end) for end in ("min_global_steps", "max_global_steps")]
        if found.stop_reason in ("abort", "aborted"):
            raise RuntimeError("a reply was aborted")
        return tuple(found.token_ids), tuple(found.log_probs or ()), versions

    async def save(self, path: str) -> int:
        await asyncio.to_thread(self.workers.save_checkpoint, path, None, 0, None)
        return self.workers.world_size

    async def shut_down(self) -> None:
        await asyncio.to_thread(ray.shutdown)

    async def load(self, path: str) -> None:
        await asyncio.to_thread(self.workers.load_checkpoint, path, None, False)

    def _batch(self, rows: Rows, slopes: Sequence[np.ndarray] | None, limit: int) -> TensorDict:
        """Return rows as verl packs them, filled up to a multiple of the workers with rows of weight 0.

        ``limit``: tokens of one forward pass. verl refuses a longer row, so a longer row raises the limit.
        """
        fill = -len(rows) % (self.config.trainer.n_gpus_per_node * self.config.trainer.nnodes)
        parts: dict[str, list[torch.Tensor]] = {name: [] for name in FIELDS}
        for index, row in enumerate([*rows, *[rows[0]] * fill]):
            ids, begin = torch.as_tensor(row["ids"]), row["begin"]
            slope = torch.zeros(len(ids))
            if slopes is not None and index < len(rows):
                slope = torch.as_tensor(slopes[index])
            mask = torch.ones(len(ids) - begin, dtype=torch.int64)
            values = (ids, torch.arange(len(ids)), ids[:begin], ids[begin:], mask, mask, slope[begin:])
            for name, value in zip(FIELDS, values, strict=True):
                parts[name].append(value)
        tensors = {
            name: torch.nested.as_nested_tensor(values, layout=torch.jagged) for name, values in parts.items()
        }
        longest = max(len(row["ids"]) for row in rows)
        return tu.get_tensordict(tensors, {"max_token_len_per_gpu": max(limit, longest)})
