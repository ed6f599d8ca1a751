"""Find a recipe by its path or name, or the folder of a run, and read its configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from debate.settings import did_you_mean
from debate_rl.config.recipes import ConfigError, S, read_config, read_run_config

if TYPE_CHECKING:
    from debate_rl.config import Config


def open_run_or_recipe(name: str, overrides: Iterable[str]) -> tuple[Path | None, Config]:
    """Return the folder of a run, None for a recipe, and the configuration of either."""
    from debate_rl.config import Config

    if (Path(name) / "config.toml").is_file():
        return Path(name), read_run_config(Path(name), overrides)
    return None, load_config(Config, name, overrides)


def load_config(model: type[S], name: str, overrides: Iterable[str] = ()) -> S:
    """Return the validated configuration of a recipe; ConfigError says in one line what is wrong with it."""
    return read_config(model, find_recipe(name), overrides)


def find_recipe(name: str) -> Path:
    """Return the TOML file for a path or for the bare name of a shipped recipe."""
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise ConfigError(f"{name}: is a folder, and a configuration is a TOML file")
    if path.parent in (Path(), Path("configs")) and path.stem in shipped_recipes():
        return shipped_recipes()[path.stem]
    shipped = f"shipped recipes: {', '.join(shipped_recipes())}"
    hint = did_you_mean(path.stem, shipped_recipes(), "")
    raise ConfigError(f"{name}: no such file; {f'{hint} {shipped}' if hint else shipped}")


def shipped_recipes() -> dict[str, Path]:
    """Return the recipes that come with the package, by name.

    They lie in configs/ of a checkout, and in debate_rl/commands/recipes/ of an installed wheel.
    """
    here = Path(__file__).parent
    folder = here / "recipes" if (here / "recipes").is_dir() else here.parents[1] / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}
