"""Checkpoints: the complete state of a run after a step.

    checkpoints/step_000012/manifest.json   size and SHA-256 of every file; written last
                            state.json      TrainState, and the generators of Python and NumPy
                            trainer.pt      the learner's state, torch's generators (read with weights_only)
                            model/          adapter or weights as save_pretrained writes them (safetensors)
                best                        a link to the checkpoint with the best held-out figure

A checkpoint is built in a hidden folder, synced to disk and renamed, so after a crash it is complete or
absent. Loading never unpickles code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from debate.files import read_json
from debate.values import Value
from debate_rl.models import bars_hidden
from debate_rl.runs.provenance import checksum
from debate_rl.runs.trainer_state import (
    SamplerState,
    load_trainer,
    plain_generators,
    restore_generators,
    write_trainer,
)
from transcripts.append import free_name, sync_folder
from transcripts.codec import convert

FORMAT = 1
MANIFEST = "manifest.json"
HIDDEN = ".unfinished_"
BEST = "best"
WARM_START = "warm_start"
"""The folder of a run with the weights after the warm start, the reference of the KL penalty."""
_NAME = re.compile(r"step_(\d{6,})")


class TrainState(Value, frozen=True):
    """The plain values of a run after ``step`` finished steps.

    ``data_position``: problems drawn so far. ``baselines``: running means by name. ``best``: the step with
    the best held-out figure, and that figure; ``best_of`` names the figure and the problems. ``sampler``:
    None if ``data_position`` alone determines the next problems.
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


def save_checkpoint(
    folder: Path,
    state: TrainState,
    *,
    model: Any,
    parts: Mapping[str, Any] | None = None,
    keep_last: int | None = None,
) -> Path:
    """Write checkpoints/step_N of a transformers or peft model; return its path.

    ``parts``: other objects by name, whose ``state_dict`` is saved. Only the ``keep_last`` newest
    checkpoints and the best checkpoint are kept.
    """
    if keep_last is not None and keep_last < 1:
        raise ValueError(f"keep_last must be at least 1, got {keep_last}")
    best = state.best[0] if state.best else None
    final = folder / _name(state.step)
    fresh = folder / f"{HIDDEN}{final.name}"
    with _errors_named(fresh, final):
        clear_unfinished(folder)
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)
        fresh.mkdir()
        write_model(fresh / "model", model)
        write_trainer(fresh / "trainer.pt", parts or {})
        facts = json.dumps({"state": to_builtins(state), "rng": plain_generators()}, allow_nan=False)
        (fresh / "state.json").write_text(facts, encoding="ascii")
        files = sorted(path for path in fresh.rglob("*") if path.is_file())
        inventory = {path.relative_to(fresh).as_posix(): _fingerprint(path) for path in files}
        manifest = json.dumps({"format": FORMAT, "files": inventory})
        (fresh / MANIFEST).write_text(manifest, encoding="ascii")
        for path in [fresh, *fresh.rglob("*")]:
            if path.is_dir():
                sync_folder(path)
            else:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        publish(fresh, final)
        link_best(folder, best)
    prune(folder, keep_last, best)
    return final


def load_checkpoint(
    path: Path,
    *,
    model: Any,
    parts: Mapping[str, Any] | None = None,
    restore_rng: bool = True,
    verify: bool = True,
) -> TrainState:
    """Load a checkpoint into ``model`` and ``parts``, in place, and return the plain values.

    The model must have the shape of the saved model (for LoRA: the same base and adapter configuration).
    ``verify=False`` skips the checksums, for a path that ``latest_good`` has just returned.
    """
    problem = damage(path) if verify else None
    if problem:
        raise CheckpointError(problem)
    from safetensors import SafetensorError

    from debate_rl.runs.weights import load_weights

    foreign = (LookupError, RuntimeError, ValueError, TypeError, ArithmeticError, AttributeError)
    try:
        stored = read_json(path / "state.json")
        state = convert(stored["state"], TrainState)
        load_weights(model, path / "model")
        load_trainer(path / "trainer.pt", parts or {}, restore_rng=restore_rng)
        if restore_rng:
            restore_generators(stored["rng"])
    except (*foreign, SafetensorError) as error:  # whatever readers raise for unexpected values
        raise CheckpointError(f"{path}: does not fit this run: {error}") from error
    return state


def latest_good(folder: Path, *, on_damaged: Callable[[str], None] = warnings.warn) -> Path | None:
    """Return the newest undamaged checkpoint, or None. Skip and report damaged checkpoints."""
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
            file = path / name
            if not file.is_file():
                return f"{file}: missing"
            if expected["bytes"] != file.stat().st_size or expected != _fingerprint(file):
                return f"{file}: was changed after it was written"
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{path / MANIFEST}: damaged ({error})"
    return None


def write_model(folder: Path, model: Any) -> None:
    """Write adapter or weights as ``save_pretrained`` does, readable by users who may enter the folder."""
    extra: dict[str, Any] = {"save_embedding_layers": False} if hasattr(model, "peft_config") else {}
    with bars_hidden():
        model.save_pretrained(folder, **extra)
    for path in folder.glob("*.safetensors"):  # safetensors makes them for their owner alone
        path.chmod(folder.stat().st_mode & 0o666)


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints by step."""
    paths = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(paths, key=step_of)


def step_of(path: Path) -> int:
    """Return the step in a checkpoint's name.

    >>> step_of(Path("checkpoints/step_000012"))
    12
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path}: a checkpoint's name must be step_ and six digits")
    return int(match[1])


def best_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint that the newest checkpoint records as the best; None if there is none."""
    paths = {path.name: path for path in checkpoints(folder)}
    with suppress(OSError, LookupError, TypeError, ValueError):
        return paths.get(_name(read_json([*paths.values()][-1] / "state.json")["state"]["best"][0]))
    return None


def tidy(folder: Path, step: int, *, best: int | None, keep_last: int) -> None:
    """Restore the checkpoint folder of a run that resumes from ``step`` to its state after that step.

    Later checkpoints are damaged; they are renamed NAME.damaged, so that they do not count as the newest.
    """
    clear_unfinished(folder)
    for path in checkpoints(folder):
        if step_of(path) > step:
            path.rename(free_name(path.with_name(f"{path.name}.damaged")))
    link_best(folder, best)
    prune(folder, keep_last, best)


def publish(fresh: Path, final: Path) -> None:
    """Give a finished folder its final name; replace an earlier checkpoint of the same step."""
    _remove(final)
    fresh.rename(final)
    sync_folder(final.parent)


def link_best(folder: Path, best: int | None) -> None:
    """Point the link "best" to the checkpoint of this step; remove it if there is none."""
    link, fresh = folder / BEST, folder / f"{HIDDEN}{BEST}"
    if link.is_dir() and not link.is_symlink():
        return  # a copy that followed the link
    if best is None or not (folder / _name(best)).is_dir():
        link.unlink(missing_ok=True)
    elif not link.is_symlink() or os.readlink(link) != _name(best):
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(_name(best))
        fresh.replace(link)
        sync_folder(folder)


def clear_unfinished(folder: Path) -> None:
    """Delete the unfinished files and folders of a crashed launch."""
    for path in folder.glob(f"{HIDDEN}*"):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def prune(folder: Path, keep_last: int | None, best: int | None) -> None:
    """Delete all checkpoints except the newest ``keep_last`` (None: keep all) and the best."""
    if keep_last is not None:
        for path in checkpoints(folder)[:-keep_last]:
            if best is None or path.name != _name(best):
                _remove(path)


def _name(step: int) -> str:
    return f"step_{step:06d}"


def _remove(path: Path) -> None:
    """Rename a folder to a hidden name and delete it, so that a crash leaves no partial checkpoint."""
    if path.exists():
        hidden = path.with_name(f"{HIDDEN}removed_{path.name}")
        path.rename(hidden)
        shutil.rmtree(hidden)


def _fingerprint(path: Path) -> dict[str, object]:
    return {"bytes": path.stat().st_size, "sha256": checksum(path)}


@contextmanager
def _errors_named(fresh: Path, final: Path) -> Iterator[None]:
    """Remove an incomplete checkpoint, and report the errors of its three writers in the same way."""
    from safetensors import SafetensorError

    try:
        yield
    except BaseException as error:
        shutil.rmtree(fresh, ignore_errors=True)
        of_torch = isinstance(error, RuntimeError) and "inline_container" in str(error)
        if not of_torch and not isinstance(error, OSError | SafetensorError):
            raise
        number = getattr(error, "errno", None) or getattr(error.__context__, "errno", None)
        reason = os.strerror(number) if number else str(error)
        message = f"cannot write checkpoint {final}: {reason}; the checkpoints before it are intact"
        raise CheckpointWriteError(number, message) from error
