"""Where the shards of a folder lie: step_000012.jsonl, tokens/step_000012.jsonl, and .zst once sealed."""

from __future__ import annotations

import re
from pathlib import Path

SEALED = ".zst"
TOKENS = "tokens"
ASIDE = "superseded"
SHARD_NAME = re.compile(r"step_([0-9]{6,11})\.jsonl(?:\.zst)?")


def shard_name(step: int) -> str:
    """Return the file name of a step.

    >>> shard_name(12)
    'step_000012.jsonl'
    """
    return f"step_{step:06d}.jsonl"


def shard_step(path: Path) -> int | None:
    """Return the step of a shard's name, sealed or not; None for any other file.

    >>> shard_step(Path("step_000012.jsonl.zst")), shard_step(Path("notes.jsonl"))
    (12, None)
    """
    match = SHARD_NAME.fullmatch(path.name)
    step = int(match[1]) if match else -1
    return step if plain_name(path).name == shard_name(step) else None


def plain_name(path: Path) -> Path:
    """Return the path of a shard before it is sealed."""
    return path.with_name(path.name.removesuffix(SEALED))


def sealed_name(path: Path) -> Path:
    """Return the path of a shard once it is sealed."""
    return path.with_name(path.name.removesuffix(SEALED) + SEALED)


def tokens_name(path: Path) -> Path:
    """Return the plain path of the token arrays that belong to a shard of debates."""
    return path.parent / TOKENS / plain_name(path).name


def shard_paths(folder: Path) -> list[Path]:
    """Return the shards of a transcripts folder, or of a run folder, by step.

    Where a step is there twice, because sealing was cut off, it is the plain file, which always is whole.
    """
    inner = folder / "transcripts"
    paths: dict[int, Path] = {}
    for path in (inner if inner.is_dir() else folder).iterdir():
        step = shard_step(path)
        if step is not None and (step not in paths or path.suffix != SEALED):
            paths[step] = path
    return [paths[step] for step in sorted(paths)]
