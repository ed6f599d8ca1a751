"""Whole weights from a model that learns on a GPU to an engine in another process, by vLLM's own transfer.

vLLM has both halves of it: a sender here and a receiver in each of the engine's workers. An engine on the
learner's GPU reads them from the learner's memory ("ipc", CUDA's inter-process handles), one on other GPUs
gets them by NCCL ("nccl"), in chunks either way. Nothing is written, so an engine that is restarted has
to be sent them again. Written against vLLM 0.32.0; both ways need a GPU and were never run on one.
"""

# pyright: standard, reportMissingTypeStubs=false, reportMissingImports=false, reportAttributeAccessIssue=false
# vllm is not always installed, and torch is only partly typed: strict rules stop at their borders.

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from debate_rl.inference.vllm_weights import named_tensors

if TYPE_CHECKING:
    import torch

    from debate_rl.inference.remote import Remote

Backend: TypeAlias = Literal["ipc", "nccl"]
VLLM = "vllm.distributed.weight_transfer"
CHUNK = 2**28
"""Bytes that are sent at a time, or those of the largest matrix."""
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Transfer:
    """How an engine takes whole weights: ``dtype``, the name of its type; ``workers``, its GPUs."""

    backend: Backend
    dtype: str
    workers: int = 1


class LearntWeights:
    """What vLLM's sender reads a model's weights from (its ``WeightSource``), in the engine's type."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        self.model, self.dtype = model, dtype

    def metadata(self) -> list[Any]:
        """Return name, type and shape of each tensor, in the order in which they come."""
        described = import_module(f"{VLLM}.base").ParamMeta
        return [
            described(name, self.dtype, tuple(value.shape)) for name, value in self.model.named_parameters()
        ]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return named_tensors(self.model, self.dtype)

    @property
    def largest(self) -> int:
        """The bytes of the largest tensor: a chunk holds whole tensors."""
        return max(value.numel() for value in self.model.parameters()) * self.dtype.itemsize


class EngineCalls:
    """The calls that vLLM's sender makes of an engine (its ``VLLMWeightSyncClient``).

    ``failed`` ends with the first that fails.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote, self.version = remote, 0
        self.failed: Future[None] = Future()

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Connect the engine's workers to the sender."""
        self._call("init_weight_transfer_engine", init_info=init_info)

    def start_weight_update(self) -> None:
        """Have the engine pause."""
        self._call("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Have the workers take a chunk; when this returns they have it."""
        self._call("update_weights", update_info=update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Have the engine forget what it computed with the weights before, and go on."""
        self._call("finish_weight_update", self.version)

    def _call(self, method: str, version: int | None = None, **arguments: Any) -> None:
        try:
            self._remote.call("receive", method, arguments, version).result()
        except Exception as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            raise


class Link:
    """The sender of a model's weights to one engine; the engine's end is ``VLLMPolicy.receive``."""

    def __init__(self, transfer: Transfer, remote: Remote) -> None:
        self._calls, self._transfer = EngineCalls(remote), transfer
        self._source: LearntWeights | None = None
        self._sender: Any = None

    def send(self, model: Any, version: int) -> None:
        """Send a model's weights as they are; raise what either end does.

        A worker that died leaves NCCL waiting for it for ever, so the sender has a thread of its own, which
        is given up when the engine's end fails.
        """
        import torch

        self._calls.version = version
        if self._source is None:
            self._source = LearntWeights(model, getattr(torch, self._transfer.dtype))
        self._source.model = model
        sent: Future[None] = Future()
        threading.Thread(target=self._send, args=(self._source, sent), name="weights", daemon=True).start()
        done, _ = wait((sent, self._calls.failed), return_when=FIRST_COMPLETED)
        try:
            for future in done:
                future.result()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Break off what NCCL still waits for."""
        group = getattr(self._sender, "model_update_group", None)
        if group is not None:
            group.destroy()

    def _send(self, source: LearntWeights, sent: Future[None]) -> None:
        try:
            with _on_device_of(source.model):
                if self._sender is None:
                    factory = import_module(f"{VLLM}.factory").WeightTransferTrainerFactory
                    how = sender_settings(self._transfer, source.largest)
                    self._sender = factory.trainer_init(how, client=self._calls, source=source)
                self._sender.send_weights()
        except BaseException as error:
            sent.set_exception(error)
        else:
            sent.set_result(None)


@contextmanager
def _on_device_of(model: Any) -> Iterator[None]:
    """Make a model's GPU this thread's own, with its weights as the last update left them.

    vLLM's sender reads in streams of its own, which wait for no other.
    """
    import torch

    device = next(model.parameters()).device
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device):
        torch.cuda.synchronize()
        yield


def sender_settings(transfer: Transfer, largest: int) -> Any:
    """Return what makes vLLM's sender; ``largest``: the bytes of the largest tensor."""
    chunk = max(CHUNK, largest)
    if transfer.backend == "ipc":
        settings = import_module(f"{VLLM}.ipc_engine").IPCTrainerInitInfo
        return settings(rank=0, packed=True, packed_buffer_size_bytes=chunk)
    settings = import_module(f"{VLLM}.nccl_engine").NCCLTrainerInitInfo
    with socket.socket() as free:
        free.bind((HERE, 0))
        port = int(free.getsockname()[1])
    return settings(HERE, port, 1 + transfer.workers, rank=0, packed_buffer_size_bytes=chunk)
