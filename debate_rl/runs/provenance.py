"""What a run ran on and what it read: package versions, commit, machine, checksums of files and problems.

No secrets, and nothing of the environment.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import UNSET

from debate import Problem
from debate.files import LARGEST_DATA, LARGEST_TOML, open_plain, read_plain
from debate.prompting.texts import SHIPPED, load_prompts, prompt_path
from debate_rl.config import Config
from debate_rl.config.recipes import find_shots
from envs import DataError
from envs.data.records import files_of

PACKAGES = (
    "debate-rl",
    "torch",
    "transformers",
    "peft",
    "safetensors",
    "tokenizers",
    "datasets",
    "numpy",
    "vllm",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a run's numbers, where installed."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    return numbers


def source_commit() -> str | None:
    """Return the git commit of this code, "-dirty" behind it when it was changed; None outside of git.

    A wheel installed inside somebody else's repository has no commit: git must know this very file.
    """
    here = Path(__file__)
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    commit = _git(here.parent, "rev-parse", "HEAD")
    changed = _git(here.parent, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def machine() -> dict[str, object]:
    """Return the processor, its usable cores, memory in GiB and the names of the GPUs."""
    facts: dict[str, object] = {"system": platform.platform(), "cpu": _cpu_name(), "cores": usable_cores()}
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        facts["memory_gib"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    return facts | {"gpus": _gpus()}


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _gpus() -> list[str]:
    try:
        import torch
    except ImportError:
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def checksum(path: Path, most: int | None = None) -> str:
    """Return the SHA-256 of a plain file, in hexadecimal; OSError for another, and above ``most`` bytes."""
    with open_plain(path, most) as file:
        return file_digest(file, "sha256").hexdigest()


def problems_checksum(problems: Iterable[Problem]) -> str:
    """Return the SHA-256 of problems in their order, in hexadecimal: the same wherever they were read from.

    >>> problems_checksum([Problem("1", "1 + 1?", "2")])[:8]
    '0598b0bd'
    """
    digest = sha256()
    for problem in problems:
        parts = (problem.id, problem.question, problem.answer, problem.source, problem.level, problem.kind)
        told = [text for text in (problem.rubric, problem.reference) if text is not UNSET]
        digest.update(json.dumps([*parts, *problem.choices, *told]).encode())
    return digest.hexdigest()


TRAIN_ONLY = ("limit", "decontaminate", "max_prompt_tokens", "test_time_learning", "mix", "difficulty")
"""Keys of ``env`` that say nothing of the held-out problems."""


def is_split_off(config: Config) -> bool:
    """Whether the held-out problems are a part of what ``env.path`` holds."""
    return config.env.path is not None and config.held_out.path is None and config.held_out.kind is None


def file_checksums(config: Config) -> dict[str, str]:
    """Return the checksums of the files a run reads: data, each shard of it, and the prompt set."""
    further = (settings.path for settings in config.held_out.more.values())
    shots = config.shots.path and str(find_shots(config.shots.path))
    mixed = (one.path for one in config.env.mix or ())
    measured = config.env.difficulty.path if config.env.difficulty else None
    paths = (config.env.path, config.held_out.path, *further, *mixed, shots)
    files = {str(file): _checksum(file) for path in paths if path is not None for file in files_of(path)}
    if measured is not None:
        files[measured] = _checksum(Path(measured))
    load_prompts(config.debate.prompts)  # says best what is wrong with the file
    if config.verifier.rubric_file is not None:
        files[config.verifier.rubric_file] = _checksum(Path(config.verifier.rubric_file))
    return files | {prompts_key(config.debate.prompts): prompts_checksum(config.debate.prompts)}


def prompts_key(name: str) -> str:
    """Return what run.json calls a prompt set: "prompts: default", or the path of an own one.

    ValueError where there is no shipped one of that name.
    """
    path = prompt_path(name)
    return f"prompts: {name}" if path.parent == SHIPPED else str(path)


def prompts_checksum(name: str) -> str:
    """Return the checksum of a prompt set; OSError or ValueError where it cannot be read."""
    return sha256(read_plain(prompt_path(name), LARGEST_TOML)).hexdigest()


NOT_DRAWN_BY = {"every", "direct", "samples", "strategies", "more", "judge_pairs"}
"""Keys of ``held_out`` that do not decide which problems are drawn."""


def problems_checksums(
    config: Config,
    train: Sequence[Problem],
    held_out: Sequence[Problem],
    more: Mapping[str, Sequence[Problem]] | None = None,
) -> Mapping[str, str]:
    """Return the checksums of all parts under names that say all they were drawn by.

    ``more``: further held-out sets by name.

    So a name that a run had before must have the same problems, from the hub as from a file.
    """
    env = config.env.model_dump(exclude_none=True)
    if not config.env.test_time_learning:
        del env["test_time_learning"]
    part = config.held_out.model_dump(exclude_none=True, exclude=NOT_DRAWN_BY)
    beside = {f"held_out.{key}": part[key] for key in ("limit", "seed")} if is_split_off(config) else {}
    drawn_by = {
        "train": {**env, "seed": config.seed, **beside},
        "held out": {key: value for key, value in env.items() if key not in TRAIN_ONLY} | part,
    }
    others = {f"held out {name}": problems for name, problems in (more or {}).items()}
    drawn_by |= {
        f"held out {name}": settings.model_dump(exclude_none=True, exclude=NOT_DRAWN_BY)
        for name, settings in config.held_out.more.items()
    }
    return {
        f"{name}: {' '.join(f'{key}={value}' for key, value in drawn_by[name].items())}": problems_checksum(
            problems
        )
        for name, problems in {"train": train, "held out": held_out, **others}.items()
        if problems
    }


def _checksum(file: Path) -> str:
    """Return the SHA-256 of a file; DataError where there is none, or one whose end may never come."""
    try:
        return checksum(file, LARGEST_DATA)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        why = getattr(error, "strerror", error)
        raise DataError(f"{file}: {why}; give an existing JSONL, JSON or Parquet file") from error
