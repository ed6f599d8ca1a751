"""The weights of a model that learns in this process, as vLLM takes them."""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and peft are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import fcntl
import os
import shutil
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MEMORY = Path("/dev/shm")
"""Files here never reach a disk, where there is such a folder."""


PREFIX, OWNED = "debate-rl-", "owned"


class _OwnedFolder(TemporaryDirectory[str]):
    """A folder with a file that is locked for as long as its process lives, however that ends."""

    def __init__(self, home: Path | None) -> None:
        super().__init__(prefix=PREFIX, dir=home)
        fresh = Path(self.name) / "fresh"
        lock = os.open(fresh, os.O_CREAT | os.O_WRONLY)
        self._unlock = weakref.finalize(self, os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fresh.rename(Path(self.name) / OWNED)  # whoever sees it sees it locked

    def cleanup(self) -> None:
        """Remove the folder."""
        super().cleanup()
        self._unlock()


def memory_folder(needed: int = 0) -> TemporaryDirectory[str]:
    """Return a new folder, in memory where twice ``needed`` bytes are free: for weights and those before.

    Else it is among the temporary files: a container's /dev/shm has 64 MiB by default. It is gone when the
    process ends; what killed processes left is removed first.
    """
    for home in (MEMORY, Path(gettempdir())):
        for owned in home.glob(f"{PREFIX}*/{OWNED}"):
            with suppress(OSError), owned.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its process lives
                shutil.rmtree(owned.parent)
    usable = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    return _OwnedFolder(MEMORY if usable and shutil.disk_usage(MEMORY).free >= 2 * needed else None)


def written_bytes(model: Any, dtype: torch.dtype) -> int:
    """Return the bytes that ``write_weights`` writes of a model in this type."""
    adapter = hasattr(model, "peft_config")
    values = (value for value in model.parameters() if value.requires_grad or not adapter)
    return dtype.itemsize * sum(value.numel() for value in values)


@contextmanager
def _writing(folder: Path) -> Generator[None]:
    """Make a new folder to write weights into; ValueError if they cannot be written."""
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
    """Write what a model has learnt, in the type of this name: its adapter, or all of its weights.

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
    """Yield the weights of a model by name, in this type; what is tied to another is left out."""
    for name, value in model.named_parameters():
        yield name, value.detach().to(dtype)


def weights_as_computed(model: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield what an engine of this type computes with once it is cast: name, values, and whether they learn.

    Names are those of the base model, an adapter's end with lora_A and lora_B, of which B is scaled.
    What is tied to another is there under its own name too.
    """
    for name, value in model.named_parameters(remove_duplicate=False):
        own = name.removeprefix("base_model.model.").replace(".base_layer", "")
        values = value.detach()
        if ".lora_B." in own:
            layer = model.get_submodule(name[: name.index(".lora_B")])
            values = values.to(dtype) * layer.scaling["default"]
        yield own.replace(".default.weight", ""), values, value.requires_grad
