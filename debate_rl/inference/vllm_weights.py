"""How the weights of a model that learns in this process reach a vLLM engine.

An engine in another process gets full weights by vLLM's own transfer (``Link``). vLLM provides both ends: a
sender in this process, and a receiver in each worker of the engine. An engine on the learner's GPU reads the
weights from the learner's memory ("ipc", CUDA's inter-process handles); an engine on other GPUs gets them by
NCCL ("nccl"). Both ways send chunks and write no file, so a restarted engine needs the weights again. Written
against vLLM 0.32.0; both ways need a GPU and were never run on one. All other engines read files
(``write_weights``).

After every update, ``debate_rl.training.check_engine_weights`` checks that the engine computes with these
weights.
"""

# pyright: standard, reportMissingTypeStubs=false, reportMissingImports=false, reportAttributeAccessIssue=false
# vllm is not always installed; torch, transformers and peft are only partly typed.

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import threading
import weakref
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import torch

    from debate_rl.inference.remote import Remote

MEMORY = Path("/dev/shm")
"""Files in this folder, if it exists, stay in memory and never reach a disk."""
PREFIX, OWNED = "debate-rl-", "owned"
Backend: TypeAlias = Literal["ipc", "nccl"]
VLLM = "vllm.distributed.weight_transfer"
CHUNK = 2**28
"""Number of bytes sent at a time, unless the largest matrix has more."""
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Transfer:
    """How an engine gets full weights. ``dtype``: the engine's type; ``workers``: its number of GPUs."""

    backend: Backend
    dtype: str
    workers: int = 1


class LearntWeights:
    """The source of weights for vLLM's sender (its ``WeightSource``), in the engine's type."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        self.model, self.dtype = model, dtype

    def metadata(self) -> list[Any]:
        """Return the name, type and shape of each tensor, in the order of iteration."""
        described = import_module(f"{VLLM}.base").ParamMeta
        return [
            described(name, self.dtype, tuple(value.shape)) for name, value in self.model.named_parameters()
        ]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return named_tensors(self.model, self.dtype)

    @property
    def largest(self) -> int:
        """The number of bytes of the largest tensor. A chunk contains complete tensors."""
        return max(value.numel() for value in self.model.parameters()) * self.dtype.itemsize


class EngineCalls:
    """The calls of vLLM's sender to an engine (its ``VLLMWeightSyncClient``).

    ``failed`` gets the exception of the first call that fails.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote, self.version = remote, 0
        self.failed: Future[None] = Future()

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Connect the engine's workers to the sender."""
        self._call("init_weight_transfer_engine", init_info=init_info)

    def start_weight_update(self) -> None:
        """Pause the engine."""
        self._call("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Send a chunk to the workers. They have loaded it when this returns."""
        self._call("update_weights", update_info=update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Make the engine drop what it computed with the previous weights, and continue."""
        self._call("finish_weight_update", self.version)

    def _call(self, method: str, version: int | None = None, **arguments: Any) -> None:
        try:
            self._remote.call("receive", method, arguments, version).result()
        except Exception as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            raise


class Link:
    """The sender of a model's weights to one engine, where ``VLLMPolicy.receive`` takes them."""

    def __init__(self, transfer: Transfer, remote: Remote) -> None:
        self._calls, self._transfer = EngineCalls(remote), transfer
        self._source: LearntWeights | None = None
        self._sender: Any = None

    def send(self, model: Any, version: int) -> None:
        """Send a model's current weights. Errors of the sender and of the engine are raised.

        NCCL waits forever for a worker that died. So the sender has its own thread, which is abandoned if
        the engine fails.
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
        """Stop NCCL, which may still be waiting."""
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
    """Make the model's GPU current in this thread, after all pending writes to its weights.

    vLLM's sender reads in its own streams, which do not wait for other streams.
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
    """Return the settings of vLLM's sender. ``largest``: the number of bytes of the largest tensor."""
    chunk = max(CHUNK, largest)
    if transfer.backend == "ipc":
        settings = import_module(f"{VLLM}.ipc_engine").IPCTrainerInitInfo
        return settings(rank=0, packed=True, packed_buffer_size_bytes=chunk)
    settings = import_module(f"{VLLM}.nccl_engine").NCCLTrainerInitInfo
    with socket.socket() as free:
        free.bind((HERE, 0))
        port = int(free.getsockname()[1])
    return settings(HERE, port, 1 + transfer.workers, rank=0, packed_buffer_size_bytes=chunk)


class _OwnedFolder(TemporaryDirectory[str]):
    """A folder with a file that stays locked until this process ends, even if the process is killed."""

    def __init__(self, home: Path | None) -> None:
        super().__init__(prefix=PREFIX, dir=home)
        fresh = Path(self.name) / "fresh"
        lock = os.open(fresh, os.O_CREAT | os.O_WRONLY)
        self._unlock = weakref.finalize(self, os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fresh.rename(Path(self.name) / OWNED)  # no process sees this name before the lock

    def cleanup(self) -> None:
        """Remove the folder."""
        super().cleanup()
        self._unlock()


def memory_folder(needed: int = 0) -> TemporaryDirectory[str]:
    """Return a new folder in memory, or among the temporary files if memory has no room.

    Twice ``needed`` bytes must be free, for the new weights and the previous ones; a container's /dev/shm has
    only 64 MiB by default. The folder is removed when the process ends, and folders of killed processes are
    removed first.
    """
    for home in (MEMORY, Path(gettempdir())):
        for owned in home.glob(f"{PREFIX}*/{OWNED}"):
            with suppress(OSError), owned.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its process lives
                shutil.rmtree(owned.parent)
    usable = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    return _OwnedFolder(MEMORY if usable and shutil.disk_usage(MEMORY).free >= 2 * needed else None)


def written_bytes(model: Any, dtype: torch.dtype) -> int:
    """Return how many bytes ``write_weights`` writes for a model in this type."""
    adapter = hasattr(model, "peft_config")
    values = (value for value in model.parameters() if value.requires_grad or not adapter)
    return dtype.itemsize * sum(value.numel() for value in values)


@contextmanager
def _writing(folder: Path) -> Generator[None]:
    """Make a new folder for weights. ValueError if the block cannot write them."""
    from safetensors import SafetensorError

    try:
        folder.mkdir()
        yield
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{folder}: cannot write the weights: {error}; make room for them (in a container: "
            "--shm-size=16g or --ipc=host)"
        ) from error


def write_weights(model: Any, folder: Path, *, dtype: str) -> None:
    """Write a model's adapter, or all its weights if it has none, in the type named ``dtype``.

    ValueError if they cannot be written.
    """
    import torch
    from safetensors.torch import save_file

    kind: torch.dtype = getattr(torch, dtype)
    if hasattr(model, "peft_config"):
        write_adapter(model, folder, kind)
        return
    tensors = {name: value.to("cpu").contiguous() for name, value in named_tensors(model, kind)}
    with _writing(folder):
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_adapter(model: Any, folder: Path, dtype: torch.dtype) -> None:
    """Write a model's LoRA adapter in this type, as peft does. ValueError if it cannot be written."""
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    tensors = {name: value.detach().to("cpu", dtype).contiguous() for name, value in state.items()}
    with _writing(folder):
        save_file(tensors, folder / "adapter_model.safetensors")
        model.peft_config["default"].save_pretrained(str(folder))


def named_tensors(model: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the weights of a model by name, in this type. Of tied weights only the first is included."""
    for name, value in model.named_parameters():
        yield name, value.detach().to(dtype)


def weights_as_computed(model: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield (name, values, trained) of a model's weights as an engine of type ``dtype`` computes with them.

    Values must still be cast to that type. Names are those of the base model; names of an adapter's matrices
    end with lora_A and lora_B, and B is scaled. Tied weights appear under each of their names.
    """
    for name, value in model.named_parameters(remove_duplicate=False):
        own = name.removeprefix("base_model.model.").replace(".base_layer", "")
        values = value.detach()
        if ".lora_B." in own:
            layer = model.get_submodule(name[: name.index(".lora_B")])
            values = values.to(dtype) * layer.scaling["default"]
        yield own.replace(".default.weight", ""), values, value.requires_grad
