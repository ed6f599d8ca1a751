"""The folder of one evaluation: its settings, its lock, and the replies so far."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import msgspec
from msgspec import UNSET

from debate import Completion, Policy, Problem, SampleRequest
from debate.files import plain_lines, read_json
from debate.prompting.texts import load_prompts, prompt_path
from debate_rl.config import Config
from debate_rl.evaluation.grading import IN_A_BOX
from debate_rl.inference.wrapped import WrappedPolicy
from debate_rl.runs.checkpoint import WARM_START
from debate_rl.runs.folder import LOCK, half_written, locked, plain_config, write_whole
from debate_rl.runs.provenance import checksum, source_commit, versions
from envs.types import Mode
from transcripts.append import LineFile
from transcripts.store import seal_before

IDENTITY, FIGURES = "evaluation.json", "figures.json"
OPEN_REPLIES = "open_replies.jsonl"
"""Replies of unfinished debates. The file is removed when these debates are stored."""
TRAINING = "training step"
"""Key that an evaluation during training stores instead of ``weights``: the number of training steps done."""
BEGINNINGS = MODEL, START = "model", "start"
"""Names in a folder's name for weights without a checkpoint: the recipe's model, and the warm start."""


class EvaluationError(ValueError):
    """An evaluation that cannot start or resume. The message says why and what to do."""


def identity(
    config: Config,
    problems: Sequence[Problem],
    weights: Path | None,
    seeds: Sequence[int],
    *,
    direct: bool = False,
) -> dict[str, object]:
    """Return everything that decides the replies of an evaluation, to identify its folder.

    This is the protocol, prompts, model, weights, problems and seeds, and whether one agent alone solves the
    problems (``direct``). A model's folder is identified by the names, sizes and times of its files. A model
    with new weights is identified by everything that it is built from. The code of a custom policy is not
    checked.
    """
    load_prompts(config.debate.prompts)  # its error message is the clearest
    plain = plain_config(config)
    problem_text = json.dumps([{k: v for k, v in asdict(one).items() if v is not UNSET} for one in problems])
    name = config.model.name_or_path
    endpoints = cast("dict[str, object]", plain.get("endpoints", {}))
    built = weights is None and name is None
    found = {
        "debate": plain.get("debate", {}),
        "prompts": checksum(prompt_path(config.debate.prompts)),
        "model": plain.get("model", {}),
        "files": [] if name is None else _files(Path(name).expanduser()),
        "built": {"seed": config.seed, "env": plain.get("env", {})} if built else {},
        "weights": None if weights is None else checksum(weights / "manifest.json"),
        "problems": {"count": len(problems), "sha256": sha256(problem_text.encode()).hexdigest()},
        "seeds": list(seeds),
    }
    found |= {"direct": True} if direct else {}
    found |= {"sandbox": plain.get("sandbox", {})} if config.debate.tools != "none" else {}
    for part in ("remote", "summarizer"):
        if endpoint := getattr(config, part).endpoint:
            found[part] = endpoints[endpoint]
    return found


def series_of(what: Mapping[str, object], mode: Mode = IN_A_BOX) -> str:
    """Return a checksum of everything but the weights. Evaluations with equal checksums are comparable.

    ``mode``: the mode of the grader, which changes the figures but not the replies.
    """
    shared = {key: value for key, value in what.items() if key not in ("weights", "built")}
    shared |= {} if mode == IN_A_BOX else {"grader": mode}
    return sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:16]


def _files(home: Path) -> list[list[object]]:
    """Return the name, size and time of each file in a folder, or of a single file, or [] for a hub id."""
    files = sorted(path for path in (home.iterdir() if home.is_dir() else [home]) if path.is_file())
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def default_folder(home: Path, weights: Path | None, what: Mapping[str, object]) -> Path:
    """Return the folder of an evaluation, named by its weights and a checksum of ``what``."""
    name = MODEL if weights is None else START if weights.parent.name == WARM_START else weights.name
    digest = sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
    return home / f"{name}-{digest}"


@contextmanager
def training_folder(run: Path, step: int, data: str, what: Mapping[str, object]) -> Iterator[Path]:
    """Lock and yield the folder of an evaluation during training on a held-out set ("" for the first set).

    Replies that an earlier launch of the run stored for this step are removed.
    """
    weights = f"step_{step:06d}" if step else START
    folder = run / "evaluations" / f"{weights}-training{f'_{data}' if data else ''}"
    if (folder / IDENTITY).is_file() and not folder.is_symlink():
        for path in [path for path in folder.iterdir() if path.name != IDENTITY]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        (folder / IDENTITY).unlink()  # removed last, because the process may be killed at any time
    with open_folder(folder, what):
        yield folder
        for part in sorted(path for path in folder.iterdir() if path.is_dir()):
            seal_before(part, 1)  # nothing is appended to this file


@contextmanager
def open_folder(folder: Path, what: Mapping[str, object]) -> Iterator[Path]:
    """Lock and yield the folder of an evaluation.

    EvaluationError if the folder belongs to another evaluation, or contains something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_other(folder, what)
        with locked(folder):
            if not (folder / IDENTITY).exists():
                facts = {"of": what, "versions": versions(), "commit": source_commit()}
                write_whole(folder / IDENTITY, json.dumps(facts, indent=1).encode())
            yield folder
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror}" if error.strerror else str(error)
        raise EvaluationError(f"{reason}; choose another --out, or make room") from error


def _refuse_other(folder: Path, what: Mapping[str, object]) -> None:
    """Raise EvaluationError if a folder belongs to another evaluation, or contains something else."""
    path = folder / IDENTITY
    begun = (LOCK, half_written(path).name)  # the only files left by a launch on a full disk
    entries = sorted(entry.name for entry in folder.iterdir() if entry.name not in begun)
    if entries and IDENTITY not in entries:
        raise EvaluationError(f"{folder}: contains {entries[0]} but no evaluation; choose another --out")
    if not entries:
        return
    try:
        before = read_json(path)["of"]
        different = sorted(key for key in {*before, *what} if before.get(key) != what.get(key))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise EvaluationError(f"{path}: is damaged; choose another --out") from error
    if different:
        raise EvaluationError(
            f"{folder}: contains an evaluation with other {', '.join(different)}; nothing was changed; "
            f"choose another --out, or omit it"
        )


class Reply(msgspec.Struct, frozen=True):
    """One line of the file. ``request``: a checksum of the whole request, including its seed."""

    request: str
    reply: Completion


class KeptReplies(WrappedPolicy):
    """A policy that stores each reply of an inner policy in a file, and returns stored replies.

    A killed process loses no finished reply, and equal requests are sampled once. If the block ends without
    an error, the file is removed unless ``stay`` is set.
    """

    def __init__(self, policy: Policy, path: Path, *, stay: bool = False) -> None:
        super().__init__(policy)
        self._path, self._stay = path, stay
        self._lines = _reply_lines(path)
        self._file = LineFile(path)

    async def sample(self, request: SampleRequest) -> Completion:
        """Return the stored reply to a request, or sample a reply and store it."""
        key = sha256(repr(request).encode(errors="backslashreplace")).hexdigest()[:32]
        if key in self._lines:
            return msgspec.json.decode(self._file.read(*self._lines[key]), type=Reply).reply
        reply = (await self.inner.sample(request)).whole()
        begin = self._file.end
        self._file.write(msgspec.json.encode(Reply(key, reply)))
        self._lines[key] = begin, self._file.end
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None and not self._stay:
            self._path.unlink()


def _reply_lines(path: Path) -> dict[str, tuple[int, int]]:
    """Return the byte range of each reply in the file, by request, without an incomplete last line."""
    lines, begin = dict[str, tuple[int, int]](), 0
    for number, line in enumerate(plain_lines(path) if path.exists() else (), start=1):
        try:
            kept = msgspec.json.decode(line, type=Reply)
        except msgspec.DecodeError as error:
            if not line.endswith(b"\n"):
                break
            raise EvaluationError(
                f"{path}:{number}: not a reply ({error}); remove the file, and its replies are sampled again"
            ) from error
        lines[kept.request] = begin, begin + len(line)
        begin += len(line)
    return lines
