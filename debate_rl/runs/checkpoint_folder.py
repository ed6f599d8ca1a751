"""The folder of a run's checkpoints: their names, which of them stay, and what a crash left half done."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from debate.files import read_plain
from transcripts.append import free_name, sync_folder

NAME = re.compile(r"step_(\d{6,})(\.old)?")
HIDDEN = ".unfinished_"
BEST = "best"
MANIFEST = "manifest.json"
WARM_START = "warm_start"
"""The folder of a run that keeps the weights after the warm start: the reference of the KL."""


def tidy(folder: Path, step: int, *, best: int | None, keep_last: int) -> None:
    """Bring the folder of a run that resumes from this step to what it was after its saving.

    What a crash left half done is finished. Later checkpoints, which are damaged, are renamed NAME.damaged,
    so that none of them is counted among the newest or replaced.
    """
    clear_unfinished(folder)
    for path in checkpoints(folder):
        if step_of(path) > step:
            path.rename(free_name(path.with_name(f"{path.name}.damaged")))
    link_best(folder, best)
    prune(folder, keep_last, best)


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints by step; one being replaced comes before its successor."""
    paths = [path for path in folder.iterdir() if NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(paths, key=lambda path: (step_of(path), not path.name.endswith(".old")))


def step_of(path: Path) -> int:
    """Return the step in a checkpoint's name.

    >>> step_of(Path("checkpoints/step_000012"))
    12
    """
    match = NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path}: a checkpoint is named step_ and six digits")
    return int(match[1])


def publish(fresh: Path, final: Path) -> None:
    """Give the finished folder its name; an earlier one of the same step stays as .old until then."""
    old = final.with_name(f"{final.name}.old")
    if final.exists():
        _remove(old)
        final.rename(old)
    fresh.rename(final)
    sync_folder(final.parent)
    _remove(old)


def link_best(folder: Path, best: int | None) -> None:
    """Let the link "best" lead to the checkpoint of this step; without one there is no link."""
    link, fresh = folder / BEST, folder / f"{HIDDEN}{BEST}"
    target = _name(best)
    fresh.unlink(missing_ok=True)
    _clear_copy(folder)
    if target is None or not (folder / target).is_dir():
        link.unlink(missing_ok=True)
    elif not link.is_symlink() or os.readlink(link) != target:
        fresh.symlink_to(target)
        fresh.replace(link)
        sync_folder(folder)


def best_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint to which "best" leads, or of which it is a copy, made by what follows links."""
    best = folder / BEST
    if best.is_symlink():
        return next((path for path in checkpoints(folder) if path.name == os.readlink(best)), None)
    with suppress(OSError):
        manifest = read_plain(best / MANIFEST)
        return next((path for path in checkpoints(folder) if _holds(path / MANIFEST, manifest)), None)
    return None


def _holds(path: Path, data: bytes) -> bool:
    try:
        return read_plain(path) == data
    except OSError:
        return False


def _clear_copy(folder: Path) -> None:
    """Make room for the link: a copy of a checkpoint goes, anything else is renamed best.other."""
    best = folder / BEST
    if best.is_symlink() or not best.exists():
        return
    if best_checkpoint(folder) is None:
        best.rename(free_name(folder / f"{BEST}.other"))
    else:
        _remove(best)


def _name(step: int | None) -> str | None:
    return None if step is None else f"step_{step:06d}"


def _remove(path: Path) -> None:
    """Delete a folder under a hidden name, so that a crash in between leaves no half checkpoint."""
    if path.exists():
        hidden = path.with_name(f"{HIDDEN}{path.name}")
        path.rename(hidden)
        shutil.rmtree(hidden)


def clear_unfinished(folder: Path) -> None:
    """Delete what was not finished."""
    for path in folder.glob(f"{HIDDEN}*"):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def prune(folder: Path, keep_last: int | None, best: int | None) -> None:
    """Delete all but the newest ``keep_last`` (None: all stay) and the best."""
    if keep_last is not None:
        for path in checkpoints(folder)[:-keep_last]:
            if path.name != _name(best):
                _remove(path)
