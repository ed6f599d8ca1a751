"""Load configurations from recipes and run folders, with ``key=value`` overrides and errors in one line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

import tomli_w
from pydantic import ValidationError

from debate.files import DEEPEST, read_json, read_toml
from debate.settings import Settings, explain, is_known_here
from debate_rl.config import Config
from debate_rl.config.engine import EngineConfig
from debate_rl.config.judges import JUDGE, judge_tables
from debate_rl.config.keys import key_type, takes_none_as_a_word
from debate_rl.config.stages import merged, with_recipes

S = TypeVar("S", bound=Settings)
OF_A_RUN = ("run.json", "transcripts", "checkpoints")
"""Names of files and folders that only a run folder contains."""


CONFIGS = Path("configs")
SUITES = CONFIGS / "suites"
SWEEPS = CONFIGS / "sweeps"
SHOTS = CONFIGS / "shots"
MOST_BASES = 32
"""Maximum length of a chain of ``base`` recipes."""
_KEY = re.compile(r"[A-Za-z_]\w*")


OWN_CODE = (
    "env.kind",
    "held_out.kind",
    "debate.personas",
    "rewards.peer",
    "model.policy",
    "learner.loss",
)
"""Keys that may name custom code."""
OF_VERL: dict[str, object] = {"engine.python": EngineConfig().python, "engine.overrides": []}
"""Keys that select the programs of verl, with their defaults, which are safe to run."""


class ConfigError(ValueError):
    """An invalid configuration. The message gives the file, the key and the value."""


def load_config(model: type[S], name: str, overrides: Iterable[str] = ()) -> S:
    """Return the validated configuration of a recipe. Raise ConfigError if it is invalid."""
    return read_config(model, find_recipe(name), overrides)


def find_recipe(name: str) -> Path:
    """Return the TOML file for a path or the bare name of a shipped recipe."""
    return _find(name, shipped_recipes(), CONFIGS, "recipes")


def find_suite(name: str) -> Path:
    """Return the TOML file for a path or the bare name of a shipped suite."""
    return _find(name, shipped_suites(), SUITES, "suites")


def find_shots(name: str) -> Path:
    """Return the file of solved examples for a path or a shipped name ("arithmetic", "mathematics").

    >>> find_shots("arithmetic").name
    'arithmetic.jsonl'
    """
    shipped = _shipped(SHOTS) / f"{name}.jsonl"
    return shipped if Path(name).name == name and not Path(name).exists() and shipped.exists() else Path(name)


def _find(name: str, shipped: Mapping[str, Path], home: Path, what: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise ConfigError(f"{name}: is a folder, but a configuration must be a TOML file")
    own = (path.relative_to(home) if path.is_relative_to(home) else path).with_suffix("").as_posix()
    if own in shipped:
        return shipped[own]
    raise ConfigError(
        f"{name}: no such file; {nearest(own, shipped)}the shipped {what} are in {_shipped(home)}"
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with up to three similar names, or "" if no name is similar.

    >>> nearest("gsm8k_smok", ["gsm8k_smoke", "words"]), nearest("ord", ["words"]), nearest("x", ["words"])
    ("did you mean 'gsm8k_smoke'? ", "did you mean 'words'? ", '')
    """
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.75) or [one for one in names if name in one][:3]
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def shipped_recipes() -> dict[str, Path]:
    """Return the paths of the shipped recipes by name.

    The files are in configs/ of a checkout or debate_rl/configs/ of a wheel. Names include the subfolder, as
    in "rlvr/tiny".
    """
    home = _shipped(CONFIGS)
    paths = (
        path
        for form in ("", "aimo3/", "curriculum/", "rlvr/", "seeds/", "sft/", "smollm2/", "writing/")
        for path in sorted(home.glob(f"{form}*.toml"))
    )
    return {path.relative_to(home).with_suffix("").as_posix(): path for path in paths}


def shipped_suites() -> dict[str, Path]:
    """Return the paths of the shipped evaluation suites (configs/suites/) by name."""
    return {path.stem: path for path in sorted(_shipped(SUITES).glob("*.toml"))}


def shipped_sweeps() -> dict[str, Path]:
    """Return the paths of the shipped sweeps (configs/sweeps/) by name."""
    return {path.stem: path for path in sorted(_shipped(SWEEPS).glob("*.toml"))}


def _shipped(folder: Path) -> Path:
    package = Path(__file__).parents[1]
    return (package if (package / "configs").is_dir() else package.parent) / folder


def read_config(model: type[S], path: Path, overrides: Iterable[str] = ()) -> S:
    """Return the validated configuration of a TOML file. Raise ConfigError with a one-line message if it is
    invalid.

    A run folder may come from an untrusted source. A configuration in a run folder that names custom code is
    therefore refused before anything is loaded, unless ``DEBATE_OWN_CODE=1`` is set.
    """
    return _read(model, path, overrides, of_a_run=_is_of_a_run(path))


def _is_of_a_run(path: Path) -> bool:
    home = path.resolve().parent
    return any((home / name).exists() for name in OF_A_RUN)


def _read(model: type[S], path: Path, overrides: Iterable[str], *, of_a_run: bool) -> S:
    whole = model is Config and not of_a_run
    tables, given = _whole(path) if whole else read_tables(path), list(overrides)
    if of_a_run and os.environ.get("DEBATE_OWN_CODE", "0") in ("", "0"):
        _refuse_own_code(tables, path)
    try:
        settings = model.model_validate(apply_overrides(tables, given, model))
    except ValidationError as error:
        raise ConfigError(explain(error, str(path), model, given)) from error
    if not isinstance(settings, Config) or of_a_run:
        return settings
    named = settings.run.model_copy(update={"dir": run_name(settings, path.stem)})
    return settings.model_copy(update={"run": named})


def _whole(path: Path) -> dict[str, object]:
    """Return the tables of a recipe, merged over its base, and each stage merged over the recipe it names."""
    tables = _with_base(path)

    def of_stage(name: object, key: str) -> dict[str, object]:
        under = _named_in(path, name, key)
        if under.resolve() == path.resolve():
            raise ConfigError(f"{path}: {key}: {name!r} is this recipe")
        return _with_base(under)

    try:
        return with_recipes(tables, of_stage)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def _with_base(path: Path, above: Sequence[Path] = ()) -> dict[str, object]:
    """Return the tables of a recipe, merged over the tables of its ``base`` if it has one."""
    tables, above = read_tables(path), (*above, path.resolve())
    if "base" not in tables:
        return tables
    base = tables.pop("base")
    under = _named_in(path, base, "base")
    if under.resolve() in above:
        raise ConfigError(f"{path}: base: {base!r} is based on this recipe")
    if len(above) == MOST_BASES:
        raise ConfigError(
            f"{path}: base: {base!r} makes a chain of more than {MOST_BASES} recipes; use fewer"
        )
    return merged(_with_base(under, above), tables)


def _named_in(path: Path, name: object, key: str) -> Path:
    """Return the file of the recipe ``name``, which is shipped or relative to the folder of ``path``."""
    if not isinstance(name, str):
        raise ConfigError(f"{path}: {key}: must be the name or path of a recipe (got {name!r})")
    own = path.parent / name
    try:
        found = own if own.is_file() else find_recipe(name)
    except ConfigError as error:
        raise ConfigError(f"{path}: {key}: {error}") from error
    if _is_of_a_run(found):
        raise ConfigError(f"{path}: {key}: {name!r} is the configuration of a run, not a recipe")
    return found


PART = re.compile(r"\{([^{}]*)\}")


def run_name(settings: Config, recipe: str) -> str:
    """Return ``run.dir`` with each field in braces replaced by the recipe's name or a key's value.

    >>> tables = {"run": {"dir": "runs/{recipe}-{learner.lr}-{seed}"}, "model": {"tiny": {}}, "seed": 3}
    >>> run_name(Config.model_validate(tables), "words")
    'runs/words-3e-05-3'
    """
    return PART.sub(
        lambda match: recipe if match[1] == "recipe" else _of_key(settings, match[1]), settings.run.dir
    )


def _of_key(settings: Config, key: str) -> str:
    """Return the value of a key as text for a folder name."""
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name, None) if name in getattr(type(value), "model_fields", ()) else None
    if not isinstance(value, str | int | float):
        raise ConfigError(
            f"run.dir = {settings.run.dir!r}: {{{key}}} must be {{recipe}} or a key with a single value"
        )
    return str(value).replace("/", "-")


def read_tables(path: Path) -> dict[str, object]:
    """Return the tables of a TOML file. Raise ConfigError with a one-line message if it is invalid."""
    try:
        return read_toml(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except ValueError as error:  # for example, a number with thousands of digits
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def parse_override(text: str) -> tuple[list[str], object]:
    """Return the key path and the value of ``a.b=value``. The value is parsed as TOML; if that fails, it is a
    string. The value of ``a.b=none`` is None, which restores the default.

    >>> parse_override("learner.lr=1e-5")
    (['learner', 'lr'], 1e-05)
    >>> parse_override("env.path=data/train.jsonl"), parse_override("env.path=none")
    ((['env', 'path'], 'data/train.jsonl'), (['env', 'path'], None))
    """
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text!r}: must have the form key=value, such as learner.lr=1e-5")
    try:
        value: object = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = None if raw.strip() == "none" else raw
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{key}: {raw[:40]!r}... cannot be read as TOML: {error}") from error
    if key.count(".") >= DEEPEST:
        raise ConfigError(f"{key[:40]!r}...: the key has too many parts")
    return [part.strip() for part in key.split(".")], value


def as_overrides(key: str, value: object, where: str) -> Iterator[str]:
    """Yield the values of a recipe's table as ``key=value`` strings. Raise ConfigError for an unknown key;
    the message includes ``where``.

    >>> list(as_overrides("learner", {"lr": 1e-05, "loss": "grpo"}, "a.toml"))
    ['learner.lr=1e-05', 'learner.loss="grpo"']
    """
    if isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            if not _KEY.fullmatch(name):
                raise ConfigError(f"{where}.{key}: {name!r} is not a key of a recipe")
            yield from as_overrides(f"{key}.{name}" if key else name, inner, where)
        return
    inline = (
        tomli_w.dumps({"value": [value]}, indent=0).split("[", 1)[1].rstrip()[:-1]
    )  # writes a table inside a list on one line
    yield f"{key}={inline.strip().removesuffix(',')}".replace("\n", " ")


def apply_overrides(
    tables: Mapping[str, object], overrides: Iterable[str], model: type[Settings] | None = None
) -> dict[str, object]:
    """Return the tables with every override applied from left to right. The value ``none`` removes a key or a
    table. It is a plain string if the key accepts the literal "none" (``logging.progress``) or is unknown.

    >>> apply_overrides({"debate": {"num_agents": 3}}, ["debate.num_agents=5", "seed=2"])
    {'debate': {'num_agents': 5}, 'seed': 2}
    >>> apply_overrides({"learner": {"eps_hi": 0.28, "lr": 1e-4}}, ["learner.eps_hi=none"])
    {'learner': {'lr': 0.0001}}
    """
    result = dict(tables)
    for text in overrides:
        path, value = parse_override(text)
        if value is None and model is not None and _is_a_word(model, path):
            value = "none"
        result = _with(result, path, value, text)
    return result


def _is_a_word(model: type[Settings], path: list[str]) -> bool:
    kind = key_type(model, path)
    return kind is None or takes_none_as_a_word(kind)


def _with(table: Mapping[str, object], path: list[str], value: object, text: str) -> dict[str, object]:
    """Return a copy of the table with the value at the key path, or without the key if the value is None."""
    first, *rest = path
    if not rest:
        others = {key: old for key, old in table.items() if key != first}
        return others if value is None else {**table, first: value}
    inner = table.get(first, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"{text!r}: {first} is a single value, not a table")
    return {**table, first: _with(cast("dict[str, object]", inner), rest, value, text)}


def read_facts(model: type[S], path: Path, way_out: str) -> S:
    """Return the validated content of a JSON file of a run. Raise OSError if it cannot be read. Raise
    ConfigError if it is damaged; the message names the file, the field and the value, and ends with
    ``way_out``.
    """
    try:
        return model.model_validate(read_json(path))
    except ValidationError as error:
        reason = explain(error, f"{path}: damaged", model, ())
    except ValueError as error:
        reason = f"{path}: damaged: {str(error).removeprefix(f'{path}: ')}"
    raise ConfigError(f"{reason}; {way_out}")


def read_run_config(run: Path, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration of a run. Raise ConfigError if it cannot be read."""
    path = run / "config.toml"
    if not path.is_file():
        raise ConfigError(f"{run}: not the folder of a run (no config.toml in it)")
    return _read(Config, path, overrides, of_a_run=True)


def open_run_or_recipe(name: str, overrides: Iterable[str]) -> tuple[Path | None, Config]:
    """Return (folder, configuration) for a run, or (None, configuration) for a recipe. A model folder from
    ``debate export`` is treated as a recipe with this model and default settings. A judge folder
    (``--judge``) also sets the keys that affect ballots.
    """
    if (Path(name) / "config.toml").is_file():
        return Path(name), read_run_config(Path(name), overrides)
    if (Path(name) / "config.json").is_file():
        return None, _of_model(name, list(overrides))
    return None, load_config(Config, name, overrides)


def _of_model(folder: str, overrides: Sequence[str]) -> Config:
    path = Path(folder)
    tables: dict[str, Any] = dict(judge_tables(path))
    if os.environ.get("DEBATE_OWN_CODE", "0") in ("", "0"):
        _refuse_own_code(tables, path / JUDGE)
    tables |= {"model": {**tables.get("model", {}), "name_or_path": folder}, "run": {"dir": folder}}
    try:
        return Config.model_validate(apply_overrides(tables, overrides, Config))
    except ValidationError as error:
        raise ConfigError(explain(error, folder, Config, overrides)) from error


def _refuse_own_code(tables: Mapping[str, object], path: Path) -> None:
    """Raise ConfigError if a configuration names custom code."""
    for key, value in named_code(tables):
        raise ConfigError(
            f"{path}: {key}={value!r} names code. Code of a run is not loaded, because the run may come "
            f"from elsewhere; DEBATE_OWN_CODE=1 allows it"
        )


def named_code(tables: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield each key that names custom code, with its value."""
    for key, harmless in OF_VERL.items():
        if (value := _value_at(tables, key)) not in (None, harmless):
            yield key, value
    for key in _keys_of_code(tables):
        value = _value_at(tables, key)
        if isinstance(value, str) and ":" in value and not is_known_here(value):
            yield key, value


def _keys_of_code(tables: Mapping[str, object]) -> list[str]:
    """Return the keys that may name custom code, including keys of stages."""
    stages = _value_at(tables, "stages")
    own = [*OWN_CODE, *_further_keys(tables)]
    for index, stage in enumerate(cast("list[object]", stages) if isinstance(stages, list) else ()):
        changed = cast("dict[str, object]", stage) if isinstance(stage, dict) else {}
        own += [f"stages.{index}.{key}" for key in (*OWN_CODE, *_further_keys(changed))]
    return own


def _value_at(tables: Mapping[str, object], key: str) -> object:
    """Return the value at a dotted key, or None if there is none. Numbers in the key index lists."""
    value: object = tables
    for part in key.split("."):
        if isinstance(value, list):
            value = dict(enumerate(cast("list[object]", value))).get(int(part) if part.isdecimal() else -1)
        else:
            value = cast("dict[str, object]", value).get(part) if isinstance(value, dict) else None
    return value


def _further_keys(tables: Mapping[str, object]) -> list[str]:
    """Return the keys that may name custom code in held-out sets, endpoints and the sets of a mixture."""
    more, mix = _value_at(tables, "held_out.more"), _value_at(tables, "env.mix")
    kinds = [f"held_out.more.{name}.kind" for name in more] if isinstance(more, dict) else []
    endpoints = _value_at(tables, "endpoints")
    kinds += [f"endpoints.{name}.policy" for name in endpoints] if isinstance(endpoints, dict) else []
    return kinds + [f"env.mix.{index}.kind" for index in range(len(mix) if isinstance(mix, list) else 0)]
