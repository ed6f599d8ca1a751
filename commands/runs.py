"""The folder of a run, as a command's argument."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from commands.config import ConfigError, load_config

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
    from learner.config import Config

    run = Path(name)
    if not (run / "config.toml").is_file():
        raise ConfigError(f"{name}: not the folder of a run (no config.toml in it)")
    return run, load_config(Config, str(run / "config.toml"), overrides)
