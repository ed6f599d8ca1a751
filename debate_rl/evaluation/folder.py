"""The folder of one evaluation: what it is of, and a lock; it is never used for anything else."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import cast

from msgspec import UNSET

from debate import Problem
from debate.files import read_json
from debate.prompting.texts import load_prompts, prompt_path
from debate_rl.config import Config
from debate_rl.evaluation.grading import IN_A_BOX
from debate_rl.runs.checkpoint import WARM_START
from debate_rl.runs.folder import LOCK, half_written, locked, plain_config, write_whole
from debate_rl.runs.provenance import checksum, source_commit, versions
from envs.types import Mode
from transcripts.store import seal_before

IDENTITY, FIGURES = "evaluation.json", "figures.json"
TRAINING = "training step"
"""What an evaluation of training has in the place of weights: how many steps these had learnt from."""
BEGINNINGS = MODEL, START = "model", "start"
"""What the folder is named by in the place of a checkpoint: the model of the recipe, the warm start."""


class EvaluationError(ValueError):
    """An evaluation that cannot be made or gone on with; the message says why and what to do."""


def identity(
    config: Config,
    problems: Sequence[Problem],
    weights: Path | None,
    seeds: Sequence[int],
    *,
    direct: bool = False,
) -> dict[str, object]:
    """Return what decides what is said in an evaluation: protocol, prompts, model, weights, problems, seeds.

    And whether debates are held, or one agent alone solves (``direct``).

    A model's own folder is known by the names, sizes and times of its files; one that is built anew, by all
    that it is built from. The code of a policy of one's own is not looked at.
    """
    load_prompts(config.debate.prompts)  # says best what is wrong with the file
    plain = plain_config(config)
    plain_problems = [{k: v for k, v in asdict(one).items() if v is not UNSET} for one in problems]
    problem_text = json.dumps(plain_problems)
    home = Path(config.model.name_or_path or "").expanduser()
    endpoints = cast("dict[str, object]", plain.get("endpoints", {}))
    built = weights is None and config.model.name_or_path is None
    return {
        "debate": plain.get("debate", {}),
        "prompts": checksum(prompt_path(config.debate.prompts)),
        "model": plain.get("model", {}),
        "files": _files(home) if config.model.name_or_path is not None else [],
        "built": {"seed": config.seed, "env": plain.get("env", {})} if built else {},
        "weights": None if weights is None else checksum(weights / "manifest.json"),
        "problems": {"count": len(problems), "sha256": sha256(problem_text.encode()).hexdigest()},
        "seeds": list(seeds),
        **({"direct": True} if direct else {}),
        **({"sandbox": plain.get("sandbox", {})} if config.debate.tools != "none" else {}),
        **({"remote": endpoints[config.remote.endpoint]} if config.remote.endpoint else {}),
        **({"summarizer": endpoints[config.summarizer.endpoint]} if config.summarizer.endpoint else {}),
    }


def series_of(what: Mapping[str, object], mode: Mode = IN_A_BOX) -> str:
    """Return a checksum of all but the weights: evaluations that share it can be compared with each other.

    ``mode``: the grader's, which changes figures and nothing of what is said.
    """
    shared = {key: value for key, value in what.items() if key not in ("weights", "built")}
    shared |= {} if mode == IN_A_BOX else {"grader": mode}
    return sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:16]


def _files(home: Path) -> list[list[object]]:
    """Return name, size and time of the files of a folder, or of one file; nothing of a hub id."""
    files = sorted(path for path in (home.iterdir() if home.is_dir() else [home]) if path.is_file())
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def default_folder(home: Path, weights: Path | None, what: Mapping[str, object]) -> Path:
    """Return the folder of an evaluation: named by the weights, and by all else that decides its figures."""
    name = MODEL if weights is None else START if weights.parent.name == WARM_START else weights.name
    digest = sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
    return home / f"{name}-{digest}"


@contextmanager
def training_folder(run: Path, step: int, data: str, what: Mapping[str, object]) -> Iterator[Path]:
    """Hold the folder of an evaluation in training; what an earlier start said at the step is removed.

    >>> training_name(50, ""), training_name(0, "aime")
    ('step_000050-training', 'start-training_aime')
    """
    folder = run / "evaluations" / training_name(step, data)
    if (folder / IDENTITY).is_file() and not folder.is_symlink():
        _clear(folder)
    with open_folder(folder, what):
        yield folder
        for part in sorted(path for path in folder.iterdir() if path.is_dir()):
            seal_before(part, 1)  # nothing is added to it


def _clear(folder: Path) -> None:
    """Remove an evaluation; what says that it is one goes last, as a kill may come at any point."""
    for path in [path for path in folder.iterdir() if path.name != IDENTITY]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / IDENTITY).unlink()


def training_name(step: int, data: str) -> str:
    """Return the name of the folder of an evaluation in training on a held-out set ("" the first one)."""
    weights = f"step_{step:06d}" if step else START
    return f"{weights}-training{f'_{data}' if data else ''}"


@contextmanager
def open_folder(folder: Path, what: Mapping[str, object]) -> Iterator[Path]:
    """Hold the folder of an evaluation; EvaluationError where it is of another one, or of something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(folder)
        _refuse_another(folder, what)
        with locked(folder):
            if not (folder / IDENTITY).exists():
                facts = {"of": what, "versions": versions(), "commit": source_commit()}
                write_whole(folder / IDENTITY, json.dumps(facts, indent=1).encode())
            yield folder
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror}" if error.strerror else str(error)
        raise EvaluationError(f"{reason}; choose another --out, or make room") from error


def _refuse_foreign(folder: Path) -> None:
    """Refuse what is not an evaluation, links, which would be written through, and pipes, which never end."""
    begun = (LOCK, half_written(folder / IDENTITY).name)  # all that a start on a full disk leaves
    entries = sorted(entry.name for entry in folder.iterdir() if entry.name not in begun)
    if entries and IDENTITY not in entries:
        raise EvaluationError(f"{folder}: holds {entries[0]} and no evaluation; choose another --out")
    for home, folders, files in os.walk(folder):
        for path in (Path(home) / name for name in (*folders, *files)):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise EvaluationError(f"{path}: is not a file of an evaluation; choose another --out")


def _refuse_another(folder: Path, what: Mapping[str, object]) -> None:
    path = folder / IDENTITY
    if not path.exists():
        return
    try:
        before = read_json(path)["of"]
        different = sorted(key for key in {*before, *what} if before.get(key) != what.get(key))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise EvaluationError(f"{path}: is damaged; choose another --out") from error
    if different:
        raise EvaluationError(
            f"{folder}: holds an evaluation with other {', '.join(different)}; nothing was changed in it: "
            "choose another --out, or none"
        )
