"""The folder of one evaluation: what it is of, and a lock; it is never used for anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from debate import Problem
from learner.config import Config
from learner.runs.folder import locked, plain_config, write_whole
from learner.runs.provenance import checksum, source_commit, versions

IDENTITY = "evaluation.json"


class EvaluationError(ValueError):
    """An evaluation that cannot be made or gone on with; the message says why and what to do."""


def identity(
    config: Config, problems: Sequence[Problem], weights: Path | None, seeds: Sequence[int]
) -> dict[str, object]:
    """Return what decides the figures of an evaluation: protocol, model, weights, problems, seeds."""
    plain = plain_config(config)
    asked = json.dumps([[p.id, p.question, p.answer, p.kind, p.choices] for p in problems])
    return {
        "debate": plain.get("debate", {}),
        "model": plain.get("model", {}),
        "weights": None if weights is None else checksum(weights / "manifest.json"),
        "problems": {"count": len(problems), "sha256": sha256(asked.encode()).hexdigest()},
        "seeds": list(seeds),
    }


def default_folder(home: Path, weights: Path | None, what: Mapping[str, object]) -> Path:
    """Return the folder of an evaluation: named by the weights, and by all else that decides its figures."""
    digest = sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
    return home / f"{'model' if weights is None else weights.name}-{digest}"


@contextmanager
def open_folder(folder: Path, what: Mapping[str, object]) -> Iterator[Path]:
    """Hold the folder of an evaluation; EvaluationError where it is of another one, or of something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_another(folder, what)
        with locked(folder):
            if not (folder / IDENTITY).exists():
                facts = {"of": what, "versions": versions(), "commit": source_commit()}
                write_whole(folder / IDENTITY, json.dumps(facts, indent=1).encode())
            yield folder
    except OSError as error:
        place = error.filename or folder
        raise EvaluationError(
            f"{folder}: cannot write {place}: {error.strerror}; choose another --out"
        ) from error


def _refuse_another(folder: Path, what: Mapping[str, object]) -> None:
    path = folder / IDENTITY
    if not path.exists():
        if foreign := sorted(entry.name for entry in folder.iterdir() if entry.name != ".lock"):
            raise EvaluationError(f"{folder}: holds {foreign[0]} and no evaluation; choose another --out")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["of"]
        different = sorted(key for key in {*before, *what} if before.get(key) != what.get(key))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise EvaluationError(f"{path}: cannot be read ({error}); choose another --out") from error
    if different:
        raise EvaluationError(
            f"{folder}: holds an evaluation with other {', '.join(different)}; nothing was changed in it: "
            "choose another --out, or none"
        )
