"""Read a TOML recipe, apply ``key=value`` overrides, and say in one line what is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from debate.settings import Settings

S = TypeVar("S", bound=Settings)


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names file, key and value."""


def find_recipe(name: str) -> Path:
    """Return the TOML file for a path or for the bare name of a shipped recipe."""
    here = Path(__file__).parent
    shipped = [folder / f"{Path(name).stem}.toml" for folder in (here / "recipes", here.parent / "configs")]
    for path in [Path(name), *shipped]:
        if path.is_file():
            return path
    raise ConfigError(f"{name}: no such configuration file, nor a shipped recipe of that name")


def read_toml(path: Path) -> dict[str, object]:
    """Return the tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def parse_override(text: str) -> tuple[list[str], object]:
    """Return the key path and the value of ``a.b=value``; the value is TOML, or else a plain string.

    >>> parse_override("learner.lr=1e-5")
    (['learner', 'lr'], 1e-05)
    >>> parse_override("env.path=data/train.jsonl")
    (['env', 'path'], 'data/train.jsonl')
    """
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text!r}: an override is written key=value, for instance learner.lr=1e-5")
    try:
        value: object = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw
    return [part.strip() for part in key.split(".")], value


def apply_overrides(tables: Mapping[str, object], overrides: Iterable[str]) -> dict[str, object]:
    """Return the tables with every override put in, left to right.

    >>> apply_overrides({"debate": {"num_agents": 3}}, ["debate.num_agents=5", "seed=2"])
    {'debate': {'num_agents': 5}, 'seed': 2}
    """
    result: dict[str, object] = dict(tables)
    for text in overrides:
        path, value = parse_override(text)
        node = result
        for depth, part in enumerate(path[:-1]):
            child = node.get(part, {})
            if not isinstance(child, dict):
                raise ConfigError(f"{text!r}: {'.'.join(path[: depth + 1])} is a value, not a table")
            node[part] = dict(child)
            node = node[part]  # type: ignore[assignment]
        node[path[-1]] = value
    return result


def explain(error: ValidationError, place: str) -> str:
    """Return one line: where, which key, what was wrong, what was given."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    given = first["input"]
    shown = "" if isinstance(given, dict | Settings) or "unknown key" in message else f" (got {given!r})"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {key + ': ' if key else ''}{message}{shown}{more}"


def load_config(model: type[S], name: str, overrides: Iterable[str] = ()) -> S:
    """Return the validated configuration; ConfigError with one clear line otherwise."""
    path = find_recipe(name)
    tables = apply_overrides(read_toml(path), overrides)
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(explain(error, str(path))) from error
