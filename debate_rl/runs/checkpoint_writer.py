"""Checkpoints written beside the run: their tensors are copied, and a thread writes them while it goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map_only

from debate_rl.runs.checkpoint import Snapshot, write_checkpoint


class CheckpointWriter:
    """Writes one checkpoint at a time; an error of one that is written beside the run comes out later.

    A copy that would take more than half of the free memory is not made: the run then waits until its
    checkpoint is written.
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def save(self, folder: Path, snapshot: Snapshot, *, keep_last: int | None) -> None:
        """Begin to write a checkpoint, when the one before is written."""
        self.wait()
        snapshot = replace(snapshot, weights=trained_weights(snapshot.model))
        if size_of((snapshot.weights, snapshot.trainer)) > free_memory() / 2:
            write_checkpoint(folder, snapshot, keep_last=keep_last)
            return
        copied = on_cpu({"weights": snapshot.weights, "trainer": snapshot.trainer})
        snapshot = replace(snapshot, **copied)
        self._thread = Thread(target=self._write, args=(folder, snapshot, keep_last), daemon=True)
        self._thread.start()

    def _write(self, folder: Path, snapshot: Snapshot, keep_last: int | None) -> None:
        try:
            write_checkpoint(folder, snapshot, keep_last=keep_last)
        except BaseException as error:  # it is raised where the run waits
            self._error = error

    def check(self) -> None:
        """Raise the error of a checkpoint that could not be written, without waiting for one under way."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait until no checkpoint is being written; raise the error of one that could not be."""
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error


def trained_weights(model: Any) -> dict[str, Tensor]:
    """Return the weights that a checkpoint holds, by name: an adapter's alone, or all of a model's."""
    weights = model.state_dict()
    if not hasattr(model, "peft_config"):
        return dict(weights)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {name: tensor for name, tensor in weights.items() if name in trained}


def on_cpu(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of all tensors in nested containers; those that share their memory share it again."""
    copies: dict[object, Tensor] = {}

    def copied(tensor: Tensor) -> Tensor:
        key = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
        if key not in copies:
            copies[key] = tensor.detach().to("cpu", copy=True)
        return copies[key]

    return tree_map_only(Tensor, copied, tree)


def size_of(tree: Any) -> int:
    """Return the bytes of all tensors in nested containers."""
    sizes: list[int] = []
    tree_map_only(Tensor, lambda tensor: sizes.append(tensor.nbytes), tree)
    return sum(sizes)


def free_memory() -> float:
    """Return the bytes that Linux would still give; without bound where that is not told."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return math.inf
