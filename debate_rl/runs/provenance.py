"""What a run ran on: package versions, the commit of this code, the machine. No secrets, no environment."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from debate import Problem

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
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


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
    facts: dict[str, object] = {"system": platform.platform(), "cpu": _cpu_name(), "cores": os.cpu_count()}
    if hasattr(os, "sched_getaffinity"):
        facts["cores"] = len(os.sched_getaffinity(0))
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        facts["memory_gib"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    return facts | {"gpus": _gpus()}


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


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def problems_checksum(problems: Iterable[Problem]) -> str:
    """Return the SHA-256 of problems in their order, in hexadecimal: the same wherever they were read from.

    >>> problems_checksum([Problem("1", "1 + 1?", "2")])[:8]
    '0598b0bd'
    """
    found = sha256()
    for problem in problems:
        parts = (problem.id, problem.question, problem.answer, problem.source, problem.level, problem.kind)
        found.update(json.dumps([*parts, *problem.choices]).encode())
    return found.hexdigest()
