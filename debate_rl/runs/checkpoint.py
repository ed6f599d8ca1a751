"""Checkpoints: the whole state of a run after a step; a crash leaves the old one or the new one.

    checkpoints/step_000012/manifest.json   every file with its size and SHA-256; written last
                            state.json      TrainState, and the generators of Python and NumPy
                            trainer.pt      the learner's state, torch's generators (read with weights_only)
                            model/          adapter or weights as save_pretrained writes them (safetensors)
                best                        a link to the one with the best held-out figure, if that is kept

A checkpoint is built in a hidden folder, brought to the disk and renamed. Nothing here unpickles.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from debate.files import read_json
from debate.values import Value
from debate_rl.models import bars_hidden
from debate_rl.runs.checkpoint_folder import (
    HIDDEN,
    MANIFEST,
    checkpoints,
    clear_unfinished,
    link_best,
    prune,
    publish,
)
from debate_rl.runs.provenance import checksum
from debate_rl.runs.sampler_state import SamplerState
from debate_rl.runs.trainer_state import (
    Stateful,
    load_trainer,
    plain_generators,
    restore_generators,
    trainer_state,
    write_trainer,
)
from transcripts.append import sync_folder
from transcripts.codec import convert

FORMAT = 1
NOTHING: Mapping[str, Stateful] = {}
FOREIGN = (ArithmeticError, AttributeError)
"""Raised beside the usual by values of another size or kind than ours in files that are as written."""


class TrainState(Value, frozen=True):
    """The plain values of a run after ``step`` finished steps.

    ``data_position``: problems drawn so far. ``baselines``: running means by name. ``seed``: the run's.
    ``best``: the step with the best held-out figure so far, and that figure; None where none is compared.
    ``best_of``: which figure that is, of which problems. ``sampler``: None where nothing but
    ``data_position`` decides which problems come next.
    """

    step: int
    policy_version: int = 0
    data_position: int = 0
    seed: int = 0
    baselines: tuple[tuple[str, float], ...] = ()
    best: tuple[int, float] | None = None
    best_of: str | None = None
    sampler: SamplerState | None = None


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded; the message names file and reason."""


class CheckpointWriteError(OSError):
    """A checkpoint that could not be written; those before it are intact."""

    def __str__(self) -> str:
        return str(self.args[-1])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a checkpoint holds. ``weights``: by name, in place of the model's own; None takes those."""

    state: TrainState
    model: Any
    weights: Mapping[str, Any] | None
    trainer: Mapping[str, Any]
    generators: Mapping[str, object]


def snapshot_of(state: TrainState, *, model: Any, parts: Mapping[str, Stateful] = NOTHING) -> Snapshot:
    """Return what a run is now, with the random generators; its tensors are those that go on being trained.

    ``model`` is a transformers or peft model; ``parts``, by name, have a state beside the weights.
    """
    return Snapshot(state, model, None, trainer_state(parts), plain_generators())


def save_checkpoint(
    folder: Path,
    state: TrainState,
    *,
    model: Any,
    parts: Mapping[str, Stateful] = NOTHING,
    keep_last: int | None = None,
) -> Path:
    """Write ``snapshot_of`` a run as ``write_checkpoint`` does."""
    return write_checkpoint(folder, snapshot_of(state, model=model, parts=parts), keep_last=keep_last)


def write_checkpoint(folder: Path, snapshot: Snapshot, *, keep_last: int | None = None) -> Path:
    """Write checkpoints/step_N; return its path.

    Only the ``keep_last`` newest stay, the new one among them, and the best one; the link "best" leads to it.
    """
    if keep_last is not None and keep_last < 1:
        raise ValueError(f"keep_last must be at least 1, got {keep_last}")
    state = snapshot.state
    best = state.best[0] if state.best else None
    final = folder / f"step_{state.step:06d}"
    fresh = folder / f"{HIDDEN}{final.name}"
    with _clear_errors(final), _removed_on_error(fresh):
        clear_unfinished(folder)
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)
        fresh.mkdir()
        write_model(fresh / "model", snapshot.model, snapshot.weights)
        known = {"trainer.pt": write_trainer(fresh / "trainer.pt", snapshot.trainer)}
        _write_json(fresh / "state.json", {"state": to_builtins(state), "rng": snapshot.generators})
        _write_json(fresh / MANIFEST, {"format": FORMAT, "files": _inventory(fresh, known)})
        _sync_all(fresh)
        publish(fresh, final)
        link_best(folder, best)
    prune(folder, keep_last, best)
    return final


def load_checkpoint(
    path: Path,
    *,
    model: Any,
    parts: Mapping[str, Stateful] = NOTHING,
    restore_rng: bool = True,
    verify: bool = True,
) -> TrainState:
    """Load a checkpoint into the objects given, in place, and return the plain values.

    The model is of the same shape as the saved one (for LoRA: the same base and adapter configuration).
    ``verify=False`` skips the checksums, for a path that ``latest_good`` has just returned.
    """
    problem = damage(path) if verify else None
    if problem:
        raise CheckpointError(problem)
    from safetensors import SafetensorError

    from debate_rl.runs.weights import load_weights

    try:
        stored = read_json(path / "state.json")
        state = convert(stored["state"], TrainState)
        load_weights(model, path / "model")
        load_trainer(path / "trainer.pt", parts, restore_rng=restore_rng)
        if restore_rng:
            restore_generators(stored["rng"])
    except (LookupError, RuntimeError, ValueError, TypeError, *FOREIGN, SafetensorError) as error:
        raise CheckpointError(f"{path}: does not fit this run: {error}") from error
    return state


def warn_damaged(message: str) -> None:
    """Report a damaged checkpoint as a warning."""
    warnings.warn(message, UserWarning, stacklevel=3)


def latest_good(folder: Path, *, on_damaged: Callable[[str], None] = warn_damaged) -> Path | None:
    """Return the newest checkpoint whose files are all as written, None without one; name those skipped."""
    for path in reversed(checkpoints(folder)):
        problem = damage(path)
        if problem is None:
            return path
        on_damaged(f"{problem}; the checkpoint is skipped")
    return None


def damage(path: Path) -> str | None:
    """Return what is wrong with a checkpoint in one line, or None."""
    try:
        manifest = read_json(path / MANIFEST)
        if manifest["format"] > FORMAT:
            return (
                f"{path}: written by a newer version (format {manifest['format']}, this one reads {FORMAT})"
            )
        for name, expected in manifest["files"].items():
            if not (path / name).is_file():
                return f"{path / name}: missing"
            if expected["bytes"] != (path / name).stat().st_size or expected != _fingerprint(path / name):
                return f"{path / name}: not as it was written"
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{path / 'manifest.json'}: damaged ({error})"
    return None


def _fingerprint(path: Path, known: str | None = None) -> dict[str, object]:
    return {"bytes": path.stat().st_size, "sha256": known or checksum(path)}


def _inventory(folder: Path, known: Mapping[str, str]) -> dict[str, object]:
    """Return each file's fingerprint by name; ``known``: checksums that need no reading."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    return {name: _fingerprint(path, known.get(name)) for name, path in zip(names, files, strict=True)}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, allow_nan=False), encoding="ascii")


def write_model(folder: Path, model: Any, weights: Mapping[str, Any] | None = None) -> None:
    """Write adapter or weights as ``save_pretrained`` does, without its progress bar.

    ``weights``: those to write, by name; None takes the model's own.
    Who may enter the folder may read its files: safetensors makes them for their owner alone.
    """
    extra: dict[str, Any] = {"save_embedding_layers": False} if hasattr(model, "peft_config") else {}
    extra |= {"state_dict": weights} if weights is not None else {}
    with bars_hidden():
        model.save_pretrained(folder, **extra)
    for path in folder.glob("*.safetensors"):
        path.chmod(folder.stat().st_mode & 0o666)


def _sync_all(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


@contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Say in one line what the three writers below report in three ways when a disk is full."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "inline_container" not in str(error):
            raise
        number = getattr(error, "errno", None) or getattr(error.__context__, "errno", None)
        reason = os.strerror(number) if number else str(error)
        message = f"cannot write checkpoint {path}: {reason}; the checkpoints before it are intact"
        raise CheckpointWriteError(number, message) from error
