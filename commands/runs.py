"""The folder of a run, as a command's argument."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from commands.config import load_config
from learner.runs.reading import read_run_config

if TYPE_CHECKING:
    from learner.config import Config


def open_run_or_recipe(name: str, overrides: Sequence[str]) -> tuple[Path | None, Config]:
    """Return the folder of a run, None for a recipe, and the configuration of either."""
    from learner.config import Config

    if (Path(name) / "config.toml").is_file():
        return open_run_folder(name, overrides)
    return None, load_config(Config, name, overrides)


def open_run_folder(name: str, overrides: Sequence[str]) -> tuple[Path, Config]:
    """Return the folder of a run and its configuration; ConfigError where it is not one."""
    return Path(name), read_run_config(Path(name), overrides)
