"""Checksums of what a run reads: its files, and the problems it trains on and holds out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from debate import Problem
from debate.prompting.texts import SHIPPED, load_prompts, prompt_path
from debate_rl.config import Config
from debate_rl.runs.provenance import checksum, problems_checksum
from envs import DataError
from envs.data.shards import files_of

TRAIN_ONLY = ("limit", "decontaminate")
"""Keys of ``env`` that say nothing of the held-out problems."""


def is_split_off(config: Config) -> bool:
    """Whether the held-out problems are a part of what ``env.path`` holds."""
    return config.env.path is not None and config.held_out.path is None and config.held_out.kind is None


def file_checksums(config: Config) -> dict[str, str]:
    """Return the checksums of the files a run reads: data, each shard of it, and prompts of one's own."""
    paths = (config.env.path, config.held_out.path)
    files = {str(file): _checksum(file) for path in paths if path is not None for file in files_of(path)}
    if (prompts := prompt_path(config.debate.prompts)).parent != SHIPPED:
        load_prompts(config.debate.prompts)  # tells best what is wrong with the file
        files[str(prompts)] = _checksum(prompts)
    return files


def problems_checksums(
    config: Config, train: Sequence[Problem], held_out: Sequence[Problem]
) -> Mapping[str, str]:
    """Return the checksums of both parts under names that say all they were drawn by.

    So a name that a run had before must have the same problems, from the hub as from a file.
    """
    env = config.env.model_dump(exclude_none=True)
    part = config.held_out.model_dump(exclude_none=True, exclude={"every"})
    beside = {f"held_out.{key}": part[key] for key in ("limit", "seed")} if is_split_off(config) else {}
    drawn_by = {
        "train": {**env, "seed": config.seed, **beside},
        "held out": {key: value for key, value in env.items() if key not in TRAIN_ONLY} | part,
    }
    return {
        f"{name}: {' '.join(f'{key}={value}' for key, value in drawn_by[name].items())}": problems_checksum(
            problems
        )
        for name, problems in (("train", train), ("held out", held_out))
        if problems
    }


def _checksum(file: Path) -> str:
    """Return the SHA-256 of a file; DataError where there is none, or one whose end may never come."""
    advice = "give an existing JSONL, JSON or Parquet file"
    if file.is_fifo() or file.is_char_device():
        raise DataError(f"{file}: is a pipe or a device; {advice}")
    try:
        return checksum(file)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise DataError(f"{file}: {getattr(error, 'strerror', error)}; {advice}") from error
