"""Ranks: the processes of one machine that torchrun starts and that learn together.

The first rank owns the run: its folder, problems, policy, engines and figures. It calls the other ranks over
sockets. All ranks do the same work at the same time, each on its share of the model and of the rows. If a
rank ends, its socket closes; the run then ends too, with a message that says what is saved.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from transformers.utils import logging

from debate_rl.config import Config
from debate_rl.inference.remote import Address, Gone, Remote, RemoteError, answer, new_address
from debate_rl.inference.vllm_weights import memory_folder
from debate_rl.models import on_cpu, resolve_device, resolve_dtype
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.runs.folder import RunFolder
from debate_rl.runs.weights import load_run_model
from debate_rl.training.stops import RankError
from learner.types import Row
from learner.update.config import LearnerConfig
from learner.update.forward import compute_type
from learner.update.learner import Learner
from learner.update.ranks import Ranks, trained, whole
from learner.update.shards import cut, gathered, outline, shard
from learner.update.tally import WorstTokens

GRACE_S = 10.0
"""Seconds that a rank may still wait for a failed rank in a collective operation before it exits."""
START_S = 120.0
"""Seconds within which the other ranks must answer at the beginning."""
SETTLE_S = 0.5
"""Seconds to wait after a failure until the end of the rank that caused it is noticed."""
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
AGENT = "TORCHELASTIC_USE_AGENT_STORE"
"""A variable of torchrun. It and ``TORCHRUN`` are removed, so that engines do not read them."""
FAILED = 2
"""The exit code of a rank that cannot continue."""


class Share:
    """One rank's share of a learner. All ranks call the same methods at the same time."""

    def __init__(self, ranks: Ranks, mesh: DeviceMesh) -> None:
        self.ranks, self._mesh = ranks, mesh

    def load(self, config: Config, settings: LearnerConfig) -> None:
        """Build the run's model, shard it, and make its learner; ``take_weights`` must follow."""
        model, reference = self._cut_model(config, settings), None
        if settings.needs_reference and not config.model.lora_rank:
            reference = self._cut_model(config, settings).requires_grad_(False).eval()
        steps = config.train.steps
        self.learner = Learner(model, settings, total_steps=steps, reference=reference, ranks=self.ranks)

    def _cut_model(self, config: Config, settings: LearnerConfig) -> Any:
        device = self._mesh.device_type
        model = load_run_model(on_cpu(config))[0]
        shard(model, self._mesh, compute_type(model, settings.compute, on_gpu=device == "cuda"))
        return model

    @torch.no_grad()
    def take_weights(self, model: Any, reference: bool) -> None:
        """Copy the trained weights from the first rank's complete ``model``; the other ranks pass None.

        ``reference``: whether to copy them to the reference as well.
        """
        own = self.learner.reference.module if reference and self.learner.reference else None
        into = [dict(one.named_parameters()) for one in (self.learner.model, own) if one is not None]
        source = dict(model.named_parameters()) if model is not None else {}
        for name, like in trained(self.learner.model).items():
            shape = torch.empty(like.shape, dtype=like.dtype, device="meta")
            part = cut(source.get(name, shape), self._mesh)
            for parameters in into:
                parameters[name].copy_(part)
        if reference and self.learner.reference is not None:
            self.learner.reference.begin()

    @torch.no_grad()
    def give_weights(self, model: Any) -> None:
        """Copy the trained weights to the first rank's complete ``model``, one tensor at a time."""
        into = dict(model.named_parameters()) if model is not None else {}
        for name, value in trained(self.learner.model).items():
            full = whole(value.detach())
            if name in into:
                into[name].copy_(full)

    def state(self) -> dict[str, Any]:
        """Return the learner's state, which is complete only on the first rank."""
        return gathered(self.learner.state_dict())

    def take_state(self, state: dict[str, Any]) -> None:
        """Load a state: the first rank passes the complete state, the others its outline."""
        self.learner.load_state_dict(cut(state, self._mesh))


class RankedLearner:
    """The first rank's view of a learner on several ranks. Its complete ``model`` gets the new weights."""

    def __init__(self, group: RankGroup, model: Any, config: Config, settings: LearnerConfig) -> None:
        self._group, self._model = group, model
        group.ask("load", config, settings)
        group.ask("take_weights", None, True, own=(model, True))
        self._own = group.share.learner
        self.config, self.compute = settings, self._own.compute

    @property
    def steps(self) -> int:
        """Steps done."""
        return self._own.steps

    @property
    def bad_steps(self) -> int:
        """The number of latest consecutive steps that could not change the weights."""
        return self._own.bad_steps

    @property
    def halfway(self) -> bool:
        """Whether a step has begun its updates and has not ended."""
        return self._own.halfway

    @property
    def worst(self) -> WorstTokens:
        """The worst tokens among the rows of the first rank."""
        return self._own.worst

    def step(self, rows: Sequence[Row]) -> dict[str, float]:
        """Do ``Learner.step`` on all ranks."""
        metrics: dict[str, float] = self._group.ask("learner.step", rows)
        self._group.ask("give_weights", None, own=(self._model,))
        return metrics

    def skip(self) -> dict[str, float]:
        """Do ``Learner.skip`` on all ranks."""
        metrics: dict[str, float] = self._group.ask("learner.skip")
        return metrics

    def logprobs(self, rows: Sequence[Row]) -> Tensor:
        """Return the result of ``Learner.logprobs``."""
        found: Tensor = self._group.ask("learner.logprobs", rows)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the complete result of ``Learner.state_dict``."""
        state: dict[str, Any] = self._group.ask("state")
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state, and the weights of ``model``."""
        self._group.ask("take_state", outline(state_dict), own=(state_dict,))
        self._group.ask("take_weights", None, False, own=(self._model, False))


class RankGroup:
    """The first rank's view of all ranks. ``saved`` says from where a run would resume."""

    def __init__(self, share: Share, others: Sequence[Remote]) -> None:
        self.share, self._others = share, others
        self.ranks = share.ranks
        self.saved: Callable[[], str] = lambda: "a run resumes from its newest checkpoint"
        self._answers: list[Future[Any]] = []

    def ask(self, method: str, *arguments: object, own: Sequence[object] | None = None) -> Any:
        """Call a method of the share on every rank; return the result of this rank's call.

        ``method`` may have dots. ``own``: this rank's arguments, if they differ. RankError if a rank has
        ended or its call failed.
        """
        self.refuse_lost()
        packed = pickle.dumps(arguments)  # a connection would not copy tensors, but share their memory
        self._answers = [remote.call("ask", method, packed) for remote in self._others]
        for answered in self._answers:
            answered.add_done_callback(self._leave_in_time)
        try:
            result = attrgetter(method)(self.share)(*(arguments if own is None else own))
            for answered in self._answers:
                answered.result()
        except (RuntimeError, RemoteError) as error:  # one that ended breaks what the others compute with it
            raise self._lost(error) from error
        finally:
            self._answers = []
        return result

    def refuse_lost(self) -> None:
        """Raise RankError if a rank has ended."""
        if not all(remote.alive for remote in self._others):
            raise self._lost(Gone())

    def close(self) -> None:
        """End the other ranks."""
        wait([remote.call("end") for remote in self._others], timeout=GRACE_S)
        for remote in self._others:
            remote.close()

    def _lost(self, error: Exception) -> RankError:
        """Return an error that names the rank that ended, or else the first rank whose call failed."""
        time.sleep(SETTLE_S)  # until then, the rank that ended is noticed
        if threading.current_thread() is threading.main_thread():
            _ignore_signals()  # torchrun sends one where a rank ended: this run ends anyway
        gone = [index for index, remote in enumerate(self._others, 1) if not remote.alive]
        failed = [
            f"rank {index}: {future.exception()}"
            for index, future in enumerate(self._answers, 1)
            if future.done() and future.exception() is not None
        ]
        why = [f"rank {index} of {self.ranks.count} has ended" for index in gone] or failed
        return RankError(f"{why[0] if why else f'rank 0: {error}'}; {self.saved()}")

    def _leave_in_time(self, answered: Future[Any]) -> None:
        """Exit after a delay if another rank's call failed.

        This rank may be waiting for the failed one in a kernel that cannot be interrupted.
        """
        if answered.exception() is not None:
            timer = threading.Timer(GRACE_S, self._leave)
            timer.daemon = True
            timer.start()

    def _leave(self) -> None:
        if self._answers:
            os.write(2, f"debate: {self._lost(Gone())}\n".encode())
            os._exit(FAILED)


class _Served:
    """The methods that a rank other than the first serves to the first rank."""

    def __init__(self, share: Share) -> None:
        self._share, self.ended = share, False

    async def ask(self, method: str, packed: bytes) -> None:
        """Call a method of the share."""
        attrgetter(method)(self._share)(*pickle.loads(packed))

    async def end(self) -> None:
        """Note that the first rank is done."""
        self.ended = True


@contextmanager
def joined(config: Config, ranks: Ranks) -> Iterator[RankGroup | None]:
    """Yield the group to the first rank, or None to a process that learns alone.

    The other ranks follow the first rank and then leave with SystemExit. Raises ValueError if this machine
    cannot run that many ranks.
    """
    if ranks.count == 1:
        yield None
        return
    kind = _device_of(config, ranks)
    with nullcontext() if ranks.index else memory_folder() as home:
        share, addresses = _join(kind, ranks, home)
        if ranks.index:
            _follow(share, addresses[ranks.index], config)
        group = RankGroup(share, [Remote(address, patience_s=START_S) for address in addresses[1:]])
        try:
            yield group
        finally:
            group.close()
        dist.destroy_process_group()


def _device_of(config: Config, ranks: Ranks) -> str:
    """Return the device type that ranks learn on. ValueError if this machine or recipe cannot have ranks."""
    device, name = resolve_device(config.model.device), config.model.device
    if os.environ.get("LOCAL_WORLD_SIZE", str(ranks.count)) != str(ranks.count):
        raise ValueError("torchrun --nnodes: ranks cannot be on several machines; start all on one machine")
    if device.type not in ("cpu", "cuda") or device.index is not None:
        raise ValueError(
            f"model.device={name!r}: each of {ranks.count} ranks needs a GPU of its own; set auto or cpu"
        )
    if device.type == "cuda" and torch.cuda.device_count() < ranks.count:
        raise ValueError(
            f"model.device={name!r}: torchrun started {ranks.count} ranks, which need a GPU each; this "
            f"machine has {torch.cuda.device_count()}; lower --nproc-per-node"
        )
    if config.model.quantization != "none":
        raise ValueError(
            f'model.quantization = "{config.model.quantization}": a quantized base cannot be shared by '
            "several ranks; start one process, or leave the key out"
        )
    if config.learner.compile:
        raise ValueError("learner.compile = true: works only in a single process; leave it out")
    if config.engine.kind != "local":
        raise ValueError(
            f'engine.kind = "{config.engine.kind}": learns in other processes; start one process only'
        )
    if resolve_dtype(config.model) == torch.float16:
        raise ValueError("model.dtype=float16: cannot be trained by several ranks; set bfloat16 or float32")
    if config.model.vllm.sleep is True:
        raise ValueError(
            f"model.vllm.sleep = true: with {ranks.count} ranks, engines have their own GPUs and never "
            'sleep; set it to "auto"'
        )
    return device.type


def _join(kind: str, ranks: Ranks, home: str | None) -> tuple[Share, list[Address]]:
    """Join the process group; return this rank's share, and the addresses of all ranks.

    The addresses are sockets in the first rank's folder ``home``.
    """
    if kind == "cuda":
        torch.cuda.set_device(ranks.index)
    dist.init_process_group("cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo")
    share = Share(ranks, init_device_mesh(kind, (ranks.count,)))
    addresses = [[new_address(Path(home or ""), f"rank_{index}") for index in range(ranks.count)]]
    dist.broadcast_object_list(addresses)
    for name in (*TORCHRUN, AGENT):
        os.environ.pop(name, None)  # engines are processes of their own, and no ranks
    return share, addresses[0]


def _follow(share: Share, address: Address, config: Config) -> NoReturn:
    """Serve this rank's share until the first rank finishes or dies."""
    warnings.simplefilter("ignore")  # the first rank says it
    logging.disable_progress_bar()
    served = _Served(share)
    answer(served, address, ready=_ignore_signals, left=_leave_soon)
    if not served.ended:
        if share.ranks.index == 1:
            _say_first_has_ended(config)
        os._exit(FAILED)
    dist.destroy_process_group()
    sys.exit()


def _ignore_signals() -> None:
    """Ignore SIGINT and SIGTERM: the first rank decides when the others end.

    The first rank itself ignores signals once another rank has ended.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _leave_soon() -> None:
    """Exit after a delay, even if this rank waits in a kernel for a rank that has ended."""
    timer = threading.Timer(GRACE_S, os._exit, [FAILED])
    timer.daemon = True
    timer.start()


def _say_first_has_ended(config: Config) -> None:
    folder = RunFolder(Path(config.run.dir)).checkpoints
    saved = max(map(step_of, checkpoints(folder)), default=0)
    done = f"{saved} of {config.train.steps} steps are saved in {folder}"
    os.write(2, f"debate: rank 0 has ended; {done}; the same command resumes from there\n".encode())
