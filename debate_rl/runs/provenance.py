"""The versions, commit, machine and data of a run, and the settings that may change when it resumes.

No secrets and no environment variables are recorded.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

from msgspec import UNSET

from debate import Problem
from debate.files import LARGEST_DATA, LARGEST_TOML, open_plain, read_plain
from debate.prompting.texts import SHIPPED, load_prompts, prompt_path
from debate_rl.config import DATA, Config
from debate_rl.config.recipes import find_shots
from envs import DataError
from envs.data.records import files_of

PACKAGES = ("debate-rl", "torch", "transformers", "peft", "safetensors")
PACKAGES += ("tokenizers", "datasets", "numpy", "vllm")
TRAIN_ONLY = ("limit", "decontaminate", "max_prompt_tokens", "mix", "difficulty")
"""Keys of ``env`` that do not affect held-out problems."""
NOT_DRAWN_BY = {"every", "direct", "samples", "strategies", "more", "judge_pairs"}
"""Keys of ``held_out`` that do not affect which problems are drawn."""
Change: TypeAlias = tuple[object, object]
"""The value before and now; None if it is unset."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that affect a run's numbers."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            numbers[package] = version(package)
    return numbers


def source_commit() -> str | None:
    """Return the git commit of this code, with "-dirty" if files were changed; None if git does not track it.

    A wheel that is installed inside another repository therefore has no commit.
    """
    here = Path(__file__)
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    commit = _git(here.parent, "rev-parse", "HEAD")
    changed = _git(here.parent, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def machine() -> dict[str, object]:
    """Return the processor, its usable cores, memory in GiB and the names of the GPUs."""
    cpu = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        cpu = next(names, cpu)
    facts: dict[str, object] = {"system": platform.platform(), "cpu": cpu, "cores": usable_cores()}
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        facts["memory_gib"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    facts["gpus"] = []
    with suppress(ImportError):
        import torch

        facts["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return facts


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checksum(path: Path, most: int | None = None) -> str:
    """Return the SHA-256 of a file, in hexadecimal. OSError if it is not plain or exceeds ``most`` bytes."""
    with open_plain(path, most) as file:
        return file_digest(file, "sha256").hexdigest()


def problems_checksum(problems: Iterable[Problem]) -> str:
    """Return the SHA-256 of problems in their order, in hexadecimal. It does not depend on their source.

    >>> problems_checksum([Problem("1", "1 + 1?", "2")])[:8]
    '0598b0bd'
    """
    digest = sha256()
    for problem in problems:
        parts = (problem.id, problem.question, problem.answer, problem.source, problem.level, problem.kind)
        more = [text for text in (problem.rubric, problem.reference) if text is not UNSET]
        digest.update(json.dumps([*parts, *problem.choices, *more]).encode())
    return digest.hexdigest()


def is_split_off(config: Config) -> bool:
    """Return whether the held-out problems are split off the problems in ``env.path``."""
    return config.env.path is not None and config.held_out.path is None and config.held_out.kind is None


def file_checksums(config: Config) -> dict[str, str]:
    """Return the checksums of the files a run reads: data, each shard of it, and the prompt set."""
    further = (settings.path for settings in config.held_out.more.values())
    shots = config.shots.path and str(find_shots(config.shots.path))
    mixed = (one.path for one in config.env.mix or ())
    paths = (config.env.path, config.held_out.path, *further, *mixed, shots)
    files = [str(file) for path in paths if path is not None for file in files_of(path)]
    files += [config.env.difficulty.path] if config.env.difficulty else []
    load_prompts(config.debate.prompts)  # says best what is wrong with the file
    files += [config.verifier.rubric_file] if config.verifier.rubric_file is not None else []
    known: dict[str, str] = {}
    for file in files:
        try:
            known[file] = checksum(Path(file), LARGEST_DATA)
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
            why = getattr(error, "strerror", error)
            raise DataError(f"{file}: {why}; give an existing JSONL, JSON or Parquet file") from error
    return known | {prompts_key(config.debate.prompts): prompts_checksum(config.debate.prompts)}


def prompts_key(name: str) -> str:
    """Return the key of a prompt set in run.json: "prompts: default", or the path of the user's own set.

    ValueError if no shipped set has that name.
    """
    path = prompt_path(name)
    return f"prompts: {name}" if path.parent == SHIPPED else str(path)


def prompts_checksum(name: str) -> str:
    """Return the checksum of a prompt set; OSError or ValueError if it cannot be read."""
    return sha256(read_plain(prompt_path(name), LARGEST_TOML)).hexdigest()


def problems_checksums(
    config: Config,
    train: Sequence[Problem],
    held_out: Sequence[Problem],
    more: Mapping[str, Sequence[Problem]] | None = None,
) -> Mapping[str, str]:
    """Return the checksum of each problem set, by a name that contains all settings that select its problems.

    If a resumed run has a set of the same name, the set must have the same problems, from whatever source.
    ``more``: further held-out sets by name.
    """
    env = config.env.model_dump(exclude_none=True)
    part = config.held_out.model_dump(exclude_none=True, exclude=NOT_DRAWN_BY)
    split = {f"held_out.{key}": part[key] for key in ("limit", "seed")} if is_split_off(config) else {}
    sets: dict[str, tuple[dict[str, object], Sequence[Problem]]] = {
        "train": ({**env, "seed": config.seed, **split}, train),
        "held out": ({key: env[key] for key in env if key not in TRAIN_ONLY} | part, held_out),
    }
    for name, problems in (more or {}).items():
        settings = config.held_out.more[name].model_dump(exclude_none=True, exclude=NOT_DRAWN_BY)
        sets[f"held out {name}"] = settings, problems
    found: dict[str, str] = {}
    for name, (drawn_by, problems) in sets.items():
        if problems:
            ordered = sorted(drawn_by.items(), key=lambda item: (item[0] != "kind", item[0] == "seed"))
            settings = " ".join(f"{key}={value}" for key, value in ordered)
            found[f"{name}: {settings}"] = problems_checksum(problems)
    return found


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """Which keys of a resumed run may have another value.

    ``may_change``: keys or tables that may have any value; "data" means the problems. ``may_grow``: keys that
    may have a larger value. ``notes``: what a change means, by key.
    """

    may_change: tuple[str, ...] = ("run", "logging")
    may_grow: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def allow(self, key: str, change: Change) -> bool:
        """Return whether a key may have changed in this way.

        >>> rules = ChangeRules(("logging",), ("train.steps",))
        >>> rules.allow("logging.progress", (None, "bar")), rules.allow("train.steps", (4, 6))
        (True, True)
        >>> rules.allow("train.steps", (6, 4)), rules.allow("learner.lr", (1e-5, 1e-4))
        (False, False)
        """
        if any(key == free or key.startswith(f"{free}.") for free in self.may_change):
            return True
        before, now = change
        numbers = isinstance(before, int | float) and isinstance(now, int | float)
        return numbers and key in self.may_grow and now > before  # type: ignore[operator]


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, Change]:
    """Return the differences between two configurations, by dotted key.

    >>> differences({"seed": 1, "stages": [{"target": 0.6}]}, {"seed": 1, "stages": [{"target": 0.7}]})
    {'stages.0.target': (0.6, 0.7)}
    """

    def flat(tables: Mapping[str, object], prefix: str = "") -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in tables.items():
            if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
                value = {str(number): row for number, row in enumerate(value)}
            whole = {f"{prefix}{key}": value}
            result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else whole
        return result

    before, after = flat(old), flat(new)
    keys = sorted(before.keys() | after.keys())
    return {k: (before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)}


def refusal(changed: Mapping[str, Change], rules: ChangeRules) -> str | None:
    """Return the refused changes and what to do about them, in one line; None if all are allowed."""
    refused = [key for key, change in changed.items() if not rules.allow(key, change)]
    if not refused:
        return None
    shown: list[str] = []
    for key in refused[:5]:
        before, now = ("unset" if value is None else repr(value) for value in changed[key])
        note = f" ({rules.notes[key]})" if key in rules.notes else ""
        shown.append(f"{key} was {before}, now {now}{note}")
    if len(refused) > 5:  # another recipe, not another setting
        more = f"(and {len(refused) - 5} more)"
        return f"{'; '.join(shown)} {more}; choose another run.dir, or restore these values"
    # a key in a list of tables is allowed with its list: stages.1.debate.num_agents by stages
    names = json.dumps(list(dict.fromkeys(re.sub(r"\.\d+(\..*)?$", "", key) for key in refused)))
    return (
        f"{'; '.join(shown)}; choose another run.dir, restore these values, or allow the changes: "
        f"'run.allow_changes={names}'"
    )


def data_changes(known: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Change]:
    """Return the checksums that differ, by the names of the data.

    >>> data_changes({"a.jsonl": "1", "b.jsonl": "2"}, {"a.jsonl": "3", "c.jsonl": "4"})
    {'data: a.jsonl': ('1', '3')}
    """
    changed = {name: known[name] for name in now if known.get(name, now[name]) != now[name]}
    return {f"{DATA}: {name}": (before, now[name]) for name, before in changed.items()}


def data_refusal(changed: Mapping[str, Change], rules: ChangeRules) -> str | None:
    """Return the refused changes of data and what to do, in one line; None if all are allowed."""
    if not changed or rules.allow(DATA, (None, None)):
        return None
    names = ", ".join(sorted(name.removeprefix(f"{DATA}: ") for name in changed))
    return (
        f"the data changed since this run began: {names}; restore the files (or the version of this code "
        "that read the old data), choose another run.dir, or continue with the changed problems: "
        f"'run.allow_changes={json.dumps([DATA])}'"
    )
