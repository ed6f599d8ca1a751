"""The debates that the evaluations of a run store: RUN/evaluations/NAME/debates, a shard for each seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debate.files import LARGEST, read_json
from debate_rl.evaluation.folder import BEGINNINGS, IDENTITY
from debate_rl.runs.checkpoint import WARM_START, step_of
from debate_rl.runs.provenance import checksum
from transcripts import Record, TranscriptError
from transcripts.codec import from_line
from transcripts.files import reading
from transcripts.names import shard_paths, shard_step
from transcripts.record import check_record


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation. ``step``: how many training steps its weights had learnt from, 0 for a warm start."""

    name: str
    step: int
    folder: Path


@dataclass(frozen=True, slots=True)
class EvaluationPart:
    """A part of an evaluation, such as debates or direct solutions: its ``folder`` opens as a run does."""

    name: str
    debates: int
    folder: Path


def evaluation_parts(evaluation: Evaluation, notes: list[str]) -> list[EvaluationPart]:
    """Return the parts of an evaluation that hold anything, by name; ``notes`` gets what cannot be read."""
    found: list[EvaluationPart] = []
    try:
        folders = sorted(child for child in evaluation.folder.iterdir() if child.is_dir())
        for folder in folders:
            if shards := shard_paths(folder):
                found.append(EvaluationPart(folder.name, sum(map(_whole_lines, shards)), folder))
    except (OSError, TranscriptError) as error:
        notes.append(f"{evaluation.folder}: cannot be read: {error}")
    return found


def _whole_lines(shard: Path) -> int:
    with reading(shard) as file:
        return sum(line.endswith(b"\n") for _, line in file.lines())


def evaluations(run: Path, notes: list[str]) -> list[Evaluation]:
    """Return the evaluations of a run by the steps of their weights; ``notes`` gets what cannot be read."""
    home = run / "evaluations"
    try:
        folders = sorted(child for child in home.iterdir() if (child / IDENTITY).is_file())
    except OSError:
        return []
    return sorted(
        (_evaluation(run, folder, notes) for folder in folders), key=lambda evaluation: evaluation.step
    )


def _evaluation(run: Path, folder: Path, notes: list[str]) -> Evaluation:
    of_start = _identity(folder, notes).get("weights") in _warm_starts(run)
    return Evaluation(folder.name, 0 if of_start else _step_named(folder, notes), folder)


def _step_named(folder: Path, notes: list[str]) -> int:
    """Return the step in an evaluation's name; 0 for what a run began with, and where the name tells none."""
    weights, _, _ = folder.name.rpartition("-")
    if weights in BEGINNINGS:
        return 0
    try:
        return step_of(Path(weights))
    except ValueError:
        notes.append(f"{folder}: its name tells no step; it is listed with step 0")
        return 0


def _identity(folder: Path, notes: list[str]) -> dict[str, Any]:
    try:
        identity = read_json(folder / IDENTITY)["of"]
        if isinstance(identity, dict):
            return identity
    except (OSError, ValueError, LookupError, TypeError):
        pass
    notes.append(f"{folder / IDENTITY}: is damaged; the weights are taken from the folder's name")
    return {}


def _warm_starts(run: Path) -> set[str]:
    try:
        manifests = [path / "manifest.json" for path in (run / WARM_START).iterdir()]
        return {checksum(path, LARGEST) for path in manifests if path.is_file()}
    except OSError:
        return set()


def debates_on(evaluation: Evaluation, problem: str, notes: list[str]) -> Iterator[tuple[str, Record]]:
    """Yield the debates of a problem with their ids, SEED.INDEX from 0; damaged lines go to ``notes``."""
    word = json.dumps(problem).encode("ascii")
    for seed, index, line in _lines(evaluation, notes):
        if word in line:
            try:
                record = _record(line)
            except ValueError as error:
                notes.append(f"{evaluation.folder}: debate {seed}.{index}: {error}")
                continue
            if record.debate.problem.id == problem:
                yield f"{seed}.{index}", record


def _lines(evaluation: Evaluation, notes: list[str]) -> Iterator[tuple[int, int, bytes]]:
    """Yield seed, index and line of every whole line; the last may still be written."""
    try:
        shards = shard_paths(evaluation.folder / "debates")
        for shard in shards:
            with reading(shard) as file:
                for index, (_, line) in enumerate(file.lines()):
                    if line.endswith(b"\n"):
                        yield shard_step(shard) or 0, index, line
    except (OSError, TranscriptError) as error:
        notes.append(f"{evaluation.folder / 'debates'}: cannot be read: {error}")


def read_evaluated(evaluation: Evaluation, id: str) -> Record:
    """Return the debate at SEED.INDEX; TranscriptError where none can be read."""
    notes: list[str] = []
    for seed, number, line in _lines(evaluation, notes):
        if f"{seed}.{number}" == id:
            try:
                return _record(line)
            except ValueError as error:
                raise TranscriptError(f"{evaluation.folder}: debate {id}: {error}") from error
    raise TranscriptError(notes[0] if notes else f"{evaluation.folder}: no debate {id!r}")


def _record(line: bytes) -> Record:
    """Return the debate of a line; ValueError where it is not one."""
    record = from_line(line)
    check_record(record)
    return record
