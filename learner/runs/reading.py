"""What a run folder says of itself, read without changing it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from learner.recipes import ConfigError, read_config

if TYPE_CHECKING:
    from learner.config import Config


def read_run_config(run: Path, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration of a run; ConfigError, in one line, where it has none that can be read."""
    from learner.config import Config

    if not (run / "config.toml").is_file():
        raise ConfigError(f"{run}: not the folder of a run (no config.toml in it)")
    return read_config(Config, run / "config.toml", overrides)
