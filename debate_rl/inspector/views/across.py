"""One problem across the steps of a run and its evaluations, RUN/evaluations/NAME, a shard for each seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from debate.files import LARGEST, read_json
from debate.types import TurnId
from debate_rl.evaluation.folder import BEGINNINGS, IDENTITY
from debate_rl.inspector.views.debate import debate_view
from debate_rl.runs.checkpoint import WARM_START, step_of
from debate_rl.runs.provenance import checksum
from rewards import Truth
from transcripts import Record, RunStore, TranscriptError
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


@dataclass(frozen=True, slots=True)
class ProblemDebate:
    """One debate of the problem.

    ``ref`` opens it again (``read``): the id of a debate of the run, or EVALUATION:SEED.INDEX, and then
    ``evaluation`` is the name of the folder in RUN/evaluations. ``step``: how many steps the weights had
    learnt from, which in training is the step. ``answers`` and ``grades`` are (N, R). ``winner``: the
    winner's turn, None without votes.
    """

    ref: str
    evaluation: str
    step: int
    personas: tuple[str, ...]
    answers: tuple[tuple[str | None, ...], ...]
    grades: tuple[tuple[Truth, ...], ...] | None
    winner: TurnId | None


@dataclass(frozen=True, slots=True)
class Across:
    """The debates of a problem, in the order of steps; ``total``: how many there are, shown or not.

    ``notes``: what could not be read.
    """

    problem: str
    question: str
    gold: str | None
    held: tuple[ProblemDebate, ...]
    total: int
    notes: tuple[str, ...] = ()


def across(
    store: RunStore, problem_id: str, *, steps: tuple[int, int | None] | None = None, limit: int = 50
) -> Across:
    """Return the debates of a problem, at most ``limit`` from training and as many from evaluations.

    ``steps``: the first and the last step to look at. TranscriptError where there is no debate of it.
    """
    notes: list[str] = []
    first, last = steps or (0, None)
    quoted = problem_id.replace('"', '""')
    filter = f'problem:"{quoted}" step:{first}..{"" if last is None else last}'
    debates: list[tuple[ProblemDebate, Record]] = []
    for row in store.debates(filter, limit=limit):
        try:
            record = store.debate(row.id)
        except TranscriptError as error:
            notes.append(str(error))
        else:
            debates.append((_of_problem(row.step, row.id, "", record), record))
    evaluated = [
        (_of_problem(evaluation.step, f"{evaluation.name}:{id}", evaluation.name, record), record)
        for evaluation in evaluations(store.run, notes)
        if first <= evaluation.step and (last is None or evaluation.step <= last)
        for id, record in _debates_on(evaluation, problem_id, notes)
    ]
    debates = sorted([*debates, *evaluated[:limit]], key=lambda debate: debate[0].step)
    if not debates:
        within = "" if steps is None else " in these steps"
        note = f"; {notes[0]}" if notes else ""
        raise TranscriptError(f"{store.run}: no debate of problem {problem_id!r}{within}{note}")
    problem, total = debates[0][1].debate.problem, store.count(filter) + len(evaluated)
    held = tuple(debate for debate, _ in debates)
    return Across(problem.id, problem.question, problem.answer, held, total, tuple(notes))


def _of_problem(step: int, ref: str, evaluation: str, record: Record) -> ProblemDebate:
    view = debate_view(ref, record)
    answers = {turn.id: turn.parsed.answer for turn in record.debate.turns}
    by_agent = tuple(
        tuple(answers.get(TurnId(agent, round_)) for round_ in range(view.rounds))
        for agent in range(view.agents)
    )
    personas = tuple(persona.name for persona in view.personas)
    return ProblemDebate(ref, evaluation, step, personas, by_agent, record.correct, view.winner)


def read(store: RunStore, ref: str, *, tokens: bool = False) -> Record:
    """Return the debate that a ``ProblemDebate.ref`` names; TranscriptError where there is none.

    ``tokens``: with the token arrays, where it is one of training.
    """
    name, colon, id = ref.rpartition(":")
    if not colon:
        return store.debate(ref, tokens=tokens)
    known = {evaluation.name: evaluation for evaluation in evaluations(store.run, [])}
    if name not in known:
        names = ", ".join(known) or "none"
        raise TranscriptError(f"{store.run}: no evaluation {name!r}; there are {names}")
    notes: list[str] = []
    folder = known[name].folder
    for seed, number, line in _lines(known[name], notes):
        if f"{seed}.{number}" == id:
            try:
                return _record(line)
            except ValueError as error:
                raise TranscriptError(f"{folder}: debate {id}: {error}") from error
    raise TranscriptError(notes[0] if notes else f"{folder}: no debate {id!r}")


def evaluations(run: Path, notes: list[str]) -> list[Evaluation]:
    """Return the evaluations of a run by the steps of their weights; ``notes`` gets what cannot be read."""
    try:
        folders = sorted(child for child in (run / "evaluations").iterdir() if (child / IDENTITY).is_file())
    except OSError:
        return []
    try:
        manifests = [path / "manifest.json" for path in (run / WARM_START).iterdir()]
        warm_starts = {checksum(path, LARGEST) for path in manifests if path.is_file()}
    except OSError:
        warm_starts = set[str]()
    found = [Evaluation(folder.name, _step(folder, warm_starts, notes), folder) for folder in folders]
    return sorted(found, key=lambda evaluation: evaluation.step)


def _step(folder: Path, warm_starts: set[str], notes: list[str]) -> int:
    """Return the steps that weights had learnt from: 0 for what a run began with, and where none is told."""
    try:
        if read_json(folder / IDENTITY)["of"].get("weights") in warm_starts:
            return 0
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        notes.append(f"{folder / IDENTITY}: is damaged; the weights are taken from the folder's name")
    weights, _, _ = folder.name.rpartition("-")
    try:
        return 0 if weights in BEGINNINGS else step_of(Path(weights))
    except ValueError:
        notes.append(f"{folder}: its name tells no step; it is listed with step 0")
        return 0


def evaluation_parts(evaluation: Evaluation, notes: list[str]) -> list[EvaluationPart]:
    """Return the parts of an evaluation that hold anything, by name; ``notes`` gets what cannot be read."""
    found: list[EvaluationPart] = []
    try:
        for folder in sorted(child for child in evaluation.folder.iterdir() if child.is_dir()):
            count, shards = 0, shard_paths(folder)
            for shard in shards:
                with reading(shard) as file:
                    count += sum(line.endswith(b"\n") for _, line in file.lines())
            found += [EvaluationPart(folder.name, count, folder)] if shards else []
    except (OSError, TranscriptError) as error:
        notes.append(f"{evaluation.folder}: cannot be read: {error}")
    return found


def _debates_on(evaluation: Evaluation, problem: str, notes: list[str]) -> Iterator[tuple[str, Record]]:
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
        for shard in shard_paths(evaluation.folder / "debates"):
            with reading(shard) as file:
                for index, (_, line) in enumerate(file.lines()):
                    if line.endswith(b"\n"):
                        yield shard_step(shard) or 0, index, line
    except (OSError, TranscriptError) as error:
        notes.append(f"{evaluation.folder / 'debates'}: cannot be read: {error}")


def _record(line: bytes) -> Record:
    """Return the debate of a line; ValueError where it is not one."""
    record = from_line(line)
    check_record(record)
    return record
