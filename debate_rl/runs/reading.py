"""What a run folder says of itself, read without changing it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.config.recipes import ConfigError, read_config, read_toml

if TYPE_CHECKING:
    from debate_rl.config import Config


def read_run_config(run: Path, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration of a run; ConfigError, in one line, where it has none that can be read."""
    from debate_rl.config import Config

    if not (run / "config.toml").is_file():
        raise ConfigError(f"{run}: not the folder of a run (no config.toml in it)")
    return read_config(Config, run / "config.toml", overrides)


def refuse_own_rule(run: Path) -> None:
    """Raise ConfigError where a run names code as its peer rule, unless ``DEBATE_OWN_CODE=1`` is set.

    A run made elsewhere may name any code: to look at it, or to replay it, loads none unasked.
    """
    path = run / "config.toml"
    if os.environ.get("DEBATE_OWN_CODE") or not path.is_file():
        return
    rewards = read_toml(path).get("rewards")
    rule = rewards.get("peer") if isinstance(rewards, dict) else None
    if isinstance(rule, str) and ":" in rule:
        raise ConfigError(
            f"{path}: rewards.peer={rule!r} names code, which is not loaded to look at a run; "
            "DEBATE_OWN_CODE=1 loads it"
        )
