"""A CPU as verl's device, and transformers as its rollout server: stand-ins for tests alone.

verl loads this file through VERL_USE_EXTERNAL_MODULES and ``actor_rollout_ref.model.external_lib``. Workers,
FSDP2 shards, Ray, the sync of weights and checkpoints are verl's own.
"""

import asyncio
import os
import types
from contextlib import nullcontext

import ray
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM
from verl.plugin.platform import PlatformBase, PlatformRegistry
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

NAME = "transformers_cpu"


class DeviceModule(types.ModuleType):
    """``torch.cpu`` under the names of ``torch.cuda``; what it lacks does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.cpu, name, None) or (lambda *_, **__: 0)


DEVICE = DeviceModule("cpu_as_device")
for name, value in {
    "is_available": lambda: True,
    "mem_get_info": lambda *_: (8 << 30, 16 << 30),
    "memory_stats": lambda *_: {},
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    "get_device_name": lambda *_: "CPU",
    "device_count": lambda: 1,
}.items():
    setattr(DEVICE, name, value)


@PlatformRegistry.register(platform="cpu")
class CPU(PlatformBase):
    device_name = vendor_name = "cpu"
    device_module = DEVICE

    def __getattr__(self, name):
        return lambda *_, **__: None

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return 1

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "NO_DEVICES"

    def get_device_capability(self, device_index=0):
        return (None, None)

    def nvtx_range(self, msg):
        return nullcontext()

    def ray_resource_name(self):
        return "NPU"  # verl knows GPU and NPU alone

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False


CPU.__abstractmethods__ = frozenset()
torch.Tensor.pin_memory = lambda self, *_, **__: self  # the reference is offloaded to pinned memory
_init = dist.init_process_group
dist.init_process_group = lambda backend=None, *given, **named: _init(
    "gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *given, **named
)  # verl names the device and the CPU, which are one here


class Server:
    """Samples one request at a time from a whole model that the workers send."""

    def __init__(self, path):
        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.version = 0

    async def generate(self, request_id, prompt_ids, sampling_params, **_):
        await asyncio.sleep(0)
        how, start = sampling_params, torch.tensor([prompt_ids])
        draws, tokens, logprobs = torch.Generator().manual_seed(how["seed"] % 2**63), [], []
        ended, cache, now = "length", None, start
        with torch.no_grad():
            while len(tokens) < how["max_tokens"] and ended == "length":
                out = self.model(now, past_key_values=cache, use_cache=True)
                cache, scores = out.past_key_values, out.logits[0, -1].float().log_softmax(-1)
                token = int(torch.multinomial(scores.exp(), 1, generator=draws))
                tokens.append(token)
                logprobs.append(float(scores[token]))
                now = torch.tensor([[token]])
                ended = "stop" if token in how["stop_token_ids"] else "length"
        fields = {"global_steps": self.version}
        return TokenOutput(token_ids=tokens, log_probs=logprobs, stop_reason=ended, extra_fields=fields)

    def load(self, state, version):
        missing, unknown = self.model.load_state_dict(state, strict=False)
        assert not unknown, unknown
        assert all("lm_head" in name for name in missing), missing
        self.version = version

    async def idle(self, *_, **__):
        return {}

    sleep = wake_up = abort_all_requests = resume_generation = idle
    clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = idle


class Replica(RolloutReplica):
    async def launch_servers(self):
        named = {"name": f"server_{self.replica_rank}", "num_cpus": 0, "max_concurrency": 1000}
        server = ray.remote(Server).options(**named).remote(self.model_config.path)
        await server.idle.remote()
        self.servers, self._server_handle, self._server_address = [server], server, named["name"]


class Adapter(BaseRollout):
    """The part of a rollout within a worker: it sends the weights of every update."""

    async def resume(self, tags):
        pass

    async def release(self):
        pass

    async def update_weights(self, weights, global_steps=None, **_):
        state = {name: tensor.detach().float().clone() for name, tensor in weights}  # all ranks gather
        server = ray.get_actor(f"server_{os.environ['RANK']}")
        await server.load.remote(state, global_steps)


RolloutReplicaRegistry.register(NAME, lambda: Replica)
_ROLLOUT_REGISTRY[(NAME, "async")] = f"{__name__}.Adapter"
