"""What a trainer holds beside the weights: its parts' states and random generators, to a file and back."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

import numpy as np


class Stateful(Protocol):
    """A learner, or an optimizer of torch."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> object:
        """Take the state up."""
        ...


def seed_generators(seed: int) -> None:
    """Seed the global generators of Python, NumPy and torch, for parts of a user's own that use them."""
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def generators_kept_on_error() -> Iterator[None]:
    """Put the global generators back as they were when the block ends in an error, or by a signal."""
    put_back = _put_back()
    try:
        yield
    except BaseException:
        put_back()
        raise


@contextmanager
def generators_kept() -> Iterator[None]:
    """Put the global generators back as they were when the block ends: nothing later changes by it."""
    put_back = _put_back()
    try:
        yield
    finally:
        put_back()


def _put_back() -> Callable[[], None]:
    """Return what sets the global generators as they are now."""
    plain, of_torch = plain_generators(), _torch_generators()

    def put_back() -> None:
        restore_generators(plain)
        _restore_torch(of_torch)

    return put_back


def trainer_state(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """Return the states of the parts, by name, and torch's generators."""
    return {"parts": {name: part.state_dict() for name, part in parts.items()}, **_torch_generators()}


def write_trainer(path: Path, state: Mapping[str, Any]) -> str:
    """Write a ``trainer_state``; return the SHA-256 of the file, taken while it is written."""
    import torch

    with path.open("wb") as file:  # by its name torch would write it without telling why it cannot
        hashed: Any = _Hashed(file)
        torch.save(state, hashed)
    return hashed.sha256.hexdigest()


class _Hashed:
    """A file to write to, and the hash of what was written."""

    def __init__(self, file: BufferedWriter) -> None:
        self.sha256 = hashlib.sha256()
        self._file = file

    def write(self, data: bytes) -> int:
        """Write bytes that follow those before."""
        self.sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Hand over what is still to be written."""
        self._file.flush()


def load_trainer(path: Path, parts: Mapping[str, Stateful], *, restore_rng: bool) -> None:
    """Read them back into the objects given; ValueError for one that was saved without.

    Nothing but tensors and plain values is read: a file that holds more, such as code, is refused.
    """
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, EOFError) as error:  # torch would have it loaded unchecked
        raise ValueError(f"{path.name} is not as torch writes tensors and plain values") from error
    for name, part in parts.items():
        if name not in state["parts"]:
            raise ValueError(f"it was saved without {name}")
        part.load_state_dict(state["parts"][name])
    if restore_rng:
        _restore_torch(state)


def _torch_generators() -> dict[str, Any]:
    import torch

    cuda = [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else []  # of the device in use alone
    return {"torch_rng": torch.get_rng_state(), "cuda_rng": cuda}


def _restore_torch(state: dict[str, Any]) -> None:
    import torch

    torch.set_rng_state(state["torch_rng"])
    if state["cuda_rng"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda_rng"][0])


def plain_generators() -> dict[str, object]:
    """Return the global generators of Python and NumPy as plain JSON values."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    words_of_numpy = numpy_state["state"]["key"].tolist()
    numpy_plain = numpy_state | {"state": {"key": words_of_numpy, "pos": int(numpy_state["state"]["pos"])}}
    return {"python": [version, list(words), gauss], "numpy": numpy_plain}


def restore_generators(stored: dict[str, Any]) -> None:
    """Set the global generators to what ``plain_generators`` returned."""
    version, words, gauss = stored["python"]
    random.setstate((version, tuple(words), gauss))
    inner = stored["numpy"]["state"]
    key = np.array(inner["key"], dtype=np.uint32)
    np.random.set_state(stored["numpy"] | {"state": {"key": key, "pos": inner["pos"]}})
