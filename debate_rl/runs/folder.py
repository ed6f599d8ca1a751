"""The folder of one run: used by one process at a time, and never overwritten by another configuration.

run.dir/config.toml       the resolved configuration
        run.json          versions, commit, hardware, checksums of the data, seed; time, end and wall seconds
                          of each launch ("starts"); overlaps of held-out problems with training
        metrics.jsonl     one line per step
        alarms.jsonl      one line per alarm of a detector, with the action taken
        likelihood.jsonl  one line per problem: the baseline of the likelihood reward
        held_out.jsonl    one line per evaluation; the first evaluation may precede the first step
        transcripts/      step_000012.jsonl
        checkpoints/      step_000012/
"""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ValidationError

from debate.files import naming, read_json, read_toml
from debate_rl.formatting import duration
from debate_rl.metrics.step_log import read_rows
from debate_rl.runs.provenance import (
    Change,
    ChangeRules,
    data_changes,
    data_refusal,
    differences,
    machine,
    refusal,
    source_commit,
    versions,
)

LOCK = ".lock"
LOOK_S = 0.05
"""Seconds to wait before a held lock is tried once more."""
NOT_YET_A_RUN = (LOCK, "run.json", ".run.json.new", ".config.toml.new", "engines.log", "verl.log")
"""Files that a launch may leave if it ends before the folder is a run. The same command then begins again."""


Start = dict[str, Any]
"""The record of one launch of a run, under ``starts`` in run.json."""


class RunFolderError(ValueError):
    """A run folder that cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of a run. ``resumed``: whether the run existed before. ``texts``: what ``record`` writes."""

    path: Path
    resumed: bool = False
    texts: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    config = property(lambda self: self.path / "config.toml", doc="The resolved configuration.")
    facts = property(lambda self: self.path / "run.json", doc="Versions, machine, data and launches.")
    metrics = property(lambda self: self.path / "metrics.jsonl", doc="One line per step.")
    alarms = property(lambda self: self.path / "alarms.jsonl", doc="One line per alarm of a detector.")
    labels = property(lambda self: self.path / "labels.jsonl", doc="Problems whose gold answer was used.")
    held_out = property(lambda self: self.path / "held_out.jsonl", doc="One line per evaluation.")
    transcripts = property(lambda self: self.path / "transcripts", doc="One shard per step.")
    checkpoints = property(lambda self: self.path / "checkpoints", doc="One folder per checkpoint.")

    @property
    def starts(self) -> list[Start]:
        """The launches of the run in run.json, the latest last."""
        return starts_of(_read_facts(self.facts))

    def record(self) -> None:
        """Write facts, then the configuration, which makes the folder a run.

        Call this before any other file of a new run is written, or once an old run has been loaded.
        """
        with _write_errors_named(self.path):
            for name, text in self.texts.items():
                write_whole(self.path / name, text)

    def record_end(self, reason: str, *, step: int, why: str, **more: object) -> None:
        """Write into run.json why this launch ends, after how many steps, and its wall seconds."""
        end = {"reason": reason, "step": step, "why": why, **more}
        facts = ended(_read_facts(self.facts), end, now=time.time())
        with _write_errors_named(self.path):
            write_whole(self.facts, json.dumps(facts, indent=2).encode())


@contextmanager
def open_run(
    path: Path | str,
    config: BaseModel,
    *,
    seed: int,
    data_checksums: Mapping[str, str] | None = None,
    findings: Mapping[str, object] | None = None,
    rules: ChangeRules | None = None,
    since: float | None = None,
) -> Iterator[RunFolder]:
    """Make the folder, or reopen it for the same configuration, and hold its lock until the block ends.

    Nothing but the lock is written until ``RunFolder.record``, so a launch that fails changes nothing else.
    run.json gets the allowed changes of the configuration and the ``findings`` of this launch, which began
    ``since`` (seconds since 1970; None: now). Raise RunFolderError for any other change, for changed data,
    for a folder that is not a run, if another process holds its lock, and for write errors.
    """
    folder = Path(path)
    with ExitStack() as stack:  # what the run itself raises passes through as it is
        with _write_errors_named(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not any((folder / name).exists() for name in (LOCK, "config.toml")):
                _refuse_foreign(folder)  # before a lock is left in it
            stack.enter_context(locked(folder))
            known = {"seed": seed, "data": dict(data_checksums or {}), **(findings or {})}
            began = datetime.now(UTC) if since is None else datetime.fromtimestamp(since, UTC)
            run = _enter(folder, config, known, rules or ChangeRules(), began)
        yield run


@contextmanager
def _write_errors_named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"run.dir={folder}: cannot write {error.filename or folder}: {error.strerror}; "
            "choose another run.dir"
        ) from error


def _enter(
    folder: Path, config: BaseModel, known: dict[str, Any], rules: ChangeRules, began: datetime
) -> RunFolder:
    """Return the run with the texts to write.

    For a resumed run, the recorded data and launches are kept and extended.
    """
    run = RunFolder(folder, resumed=(folder / "config.toml").exists())
    start: Start = {"time": began.isoformat(timespec="seconds"), "commit": source_commit()}
    start |= {"versions": versions(), "hardware": machine(), "changed": {}}
    facts: dict[str, Any] = {**known, "starts": [start]}
    if not run.resumed:
        _refuse_foreign(folder)
    else:
        changed = changed_settings(folder, config)
        if refused := refusal(changed, rules):
            raise RunFolderError(f"run.dir={folder} contains a run with another configuration: {refused}")
        stored = _read_facts(run.facts)
        before = stored["data"] if isinstance(stored.get("data"), dict) else {}
        earlier = closed(starts_of(stored), folder / "metrics.jsonl")
        others = data_changes(before, known["data"])
        if refused := data_refusal(others, rules):
            raise RunFolderError(f"run.dir={folder}: {refused}")
        start["changed"] = {key: list(values) for key, values in {**changed, **others}.items()}
        latest = {key: value for key, value in known.items() if key != "seed"}  # which stays the first
        latest |= {"wall_seconds": wall_seconds(earlier), "data": before | known["data"]}
        facts = known | stored | latest | {"starts": [*earlier, start]}
    texts = {"run.json": json.dumps(facts, indent=2), "config.toml": tomli_w.dumps(plain_config(config))}
    return replace(run, texts={name: text.encode() for name, text in texts.items()})


def plain_config(config: BaseModel) -> dict[str, object]:
    """Return a configuration as tables for TOML, without the keys that are None."""
    return config.model_dump(mode="json", exclude_none=True)


def changed_settings(folder: Path, config: BaseModel) -> dict[str, Change]:
    """Return the differences from a run's stored configuration; RunFolderError if that is damaged.

    Keys that the run's version did not have yet are assumed to have their defaults.
    """
    path = folder / "config.toml"
    try:
        stored = read_toml(path)
    except ValueError as error:
        raise RunFolderError(f"{path}: damaged: {error}; choose another run.dir") from error
    with suppress(ValidationError):  # for keys that are gone, which are shown as differences
        stored = plain_config(type(config).model_validate(stored))
    return differences(stored, plain_config(config))


def _refuse_foreign(folder: Path) -> None:
    others = sorted(entry.name for entry in folder.iterdir() if entry.name not in NOT_YET_A_RUN)
    if others:
        raise RunFolderError(
            f"run.dir={folder} is not empty and contains no run (it has {others[0]}); choose another run.dir"
        )


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = read_json(path)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise RunFolderError(f"{path}: damaged: {error}; choose another run.dir") from error
    return facts if isinstance(facts, dict) else {}


def half_written(path: Path) -> Path:
    """Return the path of the temporary file that ``write_whole`` leaves behind if it is interrupted."""
    return path.with_name(f".{path.name}.new")


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically: even after a crash, it has either its old content or the new."""
    fresh = half_written(path)
    try:
        fresh.unlink(missing_ok=True)  # a leftover, or a link to somebody's file
        with fresh.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    fresh.replace(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it however the process ends."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with open(os.open(folder / LOCK, flags | os.O_NOFOLLOW, 0o644), "ab") as file:  # a link may be hostile
        _take(file.fileno(), folder)
        with naming(folder / LOCK):
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the folder's lock, without writing; False if that is unknown."""
    try:
        import fcntl

        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _take(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system: nothing to hold
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody may just be looking (``is_locked``)
            time.sleep(LOOK_S)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = (folder / LOCK).read_text(encoding="utf-8") or "another process"
        raise RunFolderError(
            f"{folder} is in use by {owner}; wait for it to end, or choose another folder"
        ) from error
    except OSError as error:
        warnings.warn(f"{folder}: this file system has no locks ({error.strerror})", stacklevel=4)


def ended(facts: Mapping[str, Any], end: Mapping[str, object], *, now: float) -> dict[str, Any]:
    """Return the facts of a run whose latest launch ends ``now``, in seconds since 1970."""
    starts = starts_of(facts)
    if starts:
        starts[-1] = starts[-1] | {"seconds": round(_since(starts[-1], now), 1), "end": dict(end)}
    return {**facts, "starts": starts, "wall_seconds": wall_seconds(starts)}


def closed(starts: Sequence[Start], metrics: Path) -> list[Start]:
    """Return the earlier launches of a resumed run; if the latest was killed, record its end."""
    result = [dict(start) for start in starts]
    if result and "end" not in result[-1]:
        try:
            last = read_rows(metrics)[-1]
        except (OSError, ValueError, IndexError):
            last = {}
        step, at = last.get("step"), last.get("time")
        spent = _since(result[-1], at) if isinstance(at, int | float) else 0.0
        done = step + 1 if isinstance(step, int) else 0
        end = {"reason": "killed", "step": done, "why": "it was killed"}
        result[-1] |= {"seconds": round(spent, 1), "end": end}
    return result


def starts_of(facts: Mapping[str, Any]) -> list[Start]:
    """Return the readable launches in run.json."""
    starts = facts.get("starts")
    return [start for start in starts if isinstance(start, dict)] if isinstance(starts, list) else []


def wall_seconds(starts: Sequence[Mapping[str, Any]]) -> float:
    """Return the wall seconds of all launches that have ended.

    >>> wall_seconds([{"seconds": 2.5}, {}, {"seconds": 1}])
    3.5
    """
    known = [start.get("seconds") for start in starts]
    return round(sum(value for value in known if isinstance(value, int | float)), 1)


def time_words(starts: Sequence[Mapping[str, Any]]) -> str:
    """Return the wall time of all launches in words.

    >>> time_words([{"seconds": 90.0}]), time_words([{"seconds": 7200}, {"seconds": 30}])
    ('1.5 min of wall time', '2 h of wall time in 2 starts')
    """
    starts = [start for start in starts if "seconds" in start]
    times = f" in {len(starts)} starts" if len(starts) > 1 else ""
    return f"{duration(wall_seconds(starts))} of wall time{times}"


def ends_by(starts: Sequence[Mapping[str, Any]], reason: str) -> int:
    """Return how many launches ended for this reason."""
    ends = [start.get("end") for start in starts]
    return sum(isinstance(end, dict) and end.get("reason") == reason for end in ends)


def _since(start: Start, at: float) -> float:
    """Return the seconds from a launch to ``at``; 0 if the launch's time is unreadable or after ``at``."""
    try:
        return max(at - datetime.fromisoformat(str(start.get("time"))).timestamp(), 0.0)
    except ValueError:
        return 0.0
