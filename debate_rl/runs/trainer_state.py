"""The state of a checkpoint in addition to the weights: learner, sampler and random generators."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from debate.values import Value


class Memory(Value, frozen=True):
    """A problem's history in a run: the step that last drew it, its recent and its newest pass rate.

    The rates are None until a debate on the problem has been graded.
    """

    step: int
    rate: float | None = None
    newest: float | None = None


class SamplerState(Value, frozen=True):
    """The cursor of each set of problems, and the history of problems by id."""

    cursors: dict[str, int]
    memory: dict[str, Memory]


def seed_generators(seed: int) -> None:
    """Seed the global generators of Python, NumPy and torch, for user code that draws from them."""
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def generators_kept(*, on_error_only: bool = False) -> Iterator[None]:
    """Restore the global generators when the block ends, or only if an error or a signal ends it."""
    plain, of_torch, done = plain_generators(), _torch_generators(), False
    try:
        yield
        done = on_error_only
    finally:
        if not done:
            restore_generators(plain)
            _restore_torch(of_torch)


def write_trainer(path: Path, parts: Mapping[str, Any]) -> None:
    """Write the states of the parts, by name, and torch's generators."""
    import torch

    states = {name: part.state_dict() for name, part in parts.items()}
    with path.open("wb") as file:  # given a name, torch does not say why it cannot write
        torch.save({"parts": states, **_torch_generators()}, file)


def load_trainer(path: Path, parts: Mapping[str, Any], *, restore_rng: bool) -> None:
    """Load the states that ``write_trainer`` wrote into ``parts``. ValueError for a part that was not saved.

    Only tensors and plain values are read: a file that contains anything else, such as code, is refused.
    """
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, EOFError) as error:  # torch's text advises to load it unchecked
        raise ValueError(
            f"{path.name} must be a torch file that has only tensors and plain values"
        ) from error
    for name, part in parts.items():
        if name not in state["parts"]:
            raise ValueError(f"{path.name} was saved without {name}")
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
    state: Any = np.random.get_state(legacy=False)
    inner = {"key": state["state"]["key"].tolist(), "pos": int(state["state"]["pos"])}
    return {"python": [version, list(words), gauss], "numpy": state | {"state": inner}}


def restore_generators(stored: dict[str, Any]) -> None:
    """Set the global generators to what ``plain_generators`` returned."""
    version, words, gauss = stored["python"]
    random.setstate((version, tuple(words), gauss))
    inner = stored["numpy"]["state"]
    key = np.array(inner["key"], dtype=np.uint32)
    np.random.set_state(stored["numpy"] | {"state": {"key": key, "pos": inner["pos"]}})
