"""The definition of a sweep: recipe, arms and seeds, from a TOML file or the command line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

from pydantic import Field, ValidationError, field_validator

from debate.settings import Settings
from debate_rl.config import Config
from debate_rl.config.recipes import (
    ConfigError,
    apply_overrides,
    as_overrides,
    explain,
    find_recipe,
    load_config,
    nearest,
    parse_override,
    read_config,
    read_tables,
    shipped_sweeps,
)

Table = dict[str, Any]
_PIECE = re.compile(r"""[^,\[\]{}"']+|"(?:\\.|[^"\\])*"|'[^']*'|.""", re.DOTALL)
_UNSAFE = re.compile(r"[^\w.=+-]+")
MOST_ARMS = 1000


class Sweep(Settings):
    """The settings of a sweep, which runs every arm with every seed."""

    recipe: str = Field(min_length=1)
    """Name or file of the recipe that the arms change."""
    out: str = ""
    """Folder of all runs. "": runs/sweeps/NAME, with the name of the sweep file or of the recipe."""
    seeds: int | tuple[int, ...] = 3
    """A list of seeds such as [7, 13], or the number of consecutive seeds from the seed of the recipe."""
    at_once: int = Field(default=1, ge=1, le=256)
    """Number of concurrent runs, each in a separate process."""
    devices: tuple[str, ...] = ()
    """CUDA_VISIBLE_DEVICES of each concurrent run, such as ["0", "1"]. The length replaces ``at_once``."""
    figures: tuple[str, ...] = ()
    """Held-out figures of the tables, as named in RUN/held_out.jsonl. (): accuracy of one agent alone and, if
    there are votes, of winners and judges."""
    all: Table = Field(default_factory=dict)
    """Settings of all arms, as tables of a recipe."""
    arms: dict[str, Table] = Field(default_factory=dict)
    """Settings of each arm by its name, as tables of a recipe. The first arm is the baseline. An arm may set
    ``recipe`` to another recipe. It may set ``after`` to another arm, to start from the weights of that arm's
    run with the same seed: the last weights ("sft") or the best weights ("sft@best")."""
    grid: Table = Field(default_factory=dict)
    """Lists of values, as tables of a recipe. Every arm is combined with each combination of the values."""

    @property
    def places(self) -> tuple[str, ...]:
        """CUDA_VISIBLE_DEVICES of each concurrent run, "" if not set."""
        return self.devices or ("",) * self.at_once

    @field_validator("seeds")
    @classmethod
    def _some_seeds(cls, value: int | tuple[int, ...]) -> int | tuple[int, ...]:
        count = value if isinstance(value, int) else len(set(value))
        if not 1 <= count <= 1000 or (isinstance(value, tuple) and count < len(value)):
            raise ValueError("must be a number from 1 to 1000, or a list of 1 to 1000 different seeds")
        return value

    def seeds_from(self, first: int) -> tuple[int, ...]:
        """Return the seeds of every arm. ``first``: the seed of the recipe.

        >>> Sweep(recipe="r", seeds=2).seeds_from(7), Sweep(recipe="r", seeds=[9, 3]).seeds_from(7)
        ((7, 8), (9, 3))
        """
        return tuple(range(first, first + self.seeds)) if isinstance(self.seeds, int) else self.seeds


@dataclass(frozen=True, slots=True)
class Arm:
    """A variant of a recipe. ``overrides``: its changes, as ``key=value`` texts.

    ``recipe``: the recipe of the arm, or "" for that of the sweep. ``after``: folder of the arm with the
    start weights. ``weights``: "newest" or "best" of them.
    """

    name: str
    overrides: tuple[str, ...]
    recipe: str = ""
    after: str = ""
    weights: str = ""

    @property
    def folder(self) -> str:
        """The name of the arm's folder."""
        return folder_of(self.name)

    @property
    def changes(self) -> list[str]:
        """All differences from the recipe of the sweep, as ``key=value`` texts."""
        begins = f"{self.after}@{self.weights}" if self.after else ""
        own = [("recipe", self.recipe), ("after", begins)]
        return [*(f"{key}={value}" for key, value in own if value), *self.overrides]


def folder_of(name: str) -> str:
    """Return the name of an arm's folder.

    >>> folder_of("sft lr=1e-4"), folder_of("../..")
    ('sft_lr=1e-4', '_')
    """
    return _UNSAFE.sub("_", name).strip("._") or "_"


def open_sweep(name: str, given: Sequence[str]) -> tuple[Sweep, list[Arm]]:
    """Return a sweep and its arms, from a shipped sweep, a TOML file or a recipe.

    ``given``: ``key=value`` texts. A key of ``Sweep`` changes the sweep. A key of the recipe changes all
    arms, and several values, as in ``learner.lr=1e-5,3e-5``, make one arm each. Raise ConfigError for an
    unknown name, for arms with the same name, and for an invalid configuration.
    """
    own = [text for text in given if text.partition("=")[0].partition(".")[0].strip() in Sweep.model_fields]
    rest = [text for text in given if text not in own]
    path = Path(name) if Path(name).is_file() else shipped_sweeps().get(name)
    if path is not None and "recipe" in read_tables(path):
        sweep, where = read_config(Sweep, path, own), str(path)
    else:
        where, there = name, f"{nearest(name, shipped_sweeps())}the shipped sweeps are in sweeps/ there"
        try:
            find_recipe(name)
        except ConfigError as error:
            raise ConfigError(f"{error}; {there}") from error
        try:
            sweep = Sweep.model_validate(apply_overrides({"recipe": name}, own, Sweep))
        except ValidationError as error:
            raise ConfigError(explain(error, name, Sweep, own)) from error
    if not sweep.out:
        sweep = sweep.model_copy(update={"out": f"runs/sweeps/{Path(where).stem}"})
    return sweep, arms_of(sweep, rest, where)


def arms_of(sweep: Sweep, given: Sequence[str], where: str) -> list[Arm]:
    """Return the arms of a sweep, whose configurations are valid. ``given`` is that of ``open_sweep``.

    >>> sweep = Sweep(recipe="quickstart")
    >>> [arm.name for arm in arms_of(sweep, ["learner.lr=1e-4,3e-4", "learner.beta=0.0,0.1"], "x")][:2]
    ['lr=1e-4 beta=0.0', 'lr=1e-4 beta=0.1']
    >>> arms_of(sweep, ["learner.lr=1e-4"], "x")
    [Arm(name='recipe', overrides=('learner.lr=1e-4',), recipe='', after='', weights='')]
    """
    shared = [*as_overrides("", sweep.all, f"{where}: all")]
    axes = [*_grid_axes(sweep, where)]
    for text in given:
        parse_override(text)  # raises ConfigError unless the text is key=value
        key, _, raw = text.partition("=")
        values = split_values(raw)
        shared += [] if len(values) > 1 else [text]
        axes += [(key.strip(), values)] if len(values) > 1 else []
    count = prod(len(values) for _, values in axes) * max(len(sweep.arms), 1)
    if count > MOST_ARMS:
        raise ConfigError(f"{where}: {count:,} arms are too many; use at most {MOST_ARMS:,}")
    last = Counter(key.rpartition(".")[2] for key, _ in axes)
    short = {key: name if last[name := key.rpartition(".")[2]] == 1 else key for key, _ in axes}
    arms: list[Arm] = []
    for name, table in (sweep.arms or {"": {}}).items():
        recipe, after, weights = _begins(table, f"{where}: arms.{name}")
        own = {key: value for key, value in table.items() if key not in ("recipe", "after")}
        texts = [*as_overrides("", own, f"{where}: arms.{name}")]
        for values in product(*(values for _, values in axes)):
            combined = [(key, value) for (key, _), value in zip(axes, values, strict=True)]
            words = [f"{short[key]}={value}" for key, value in combined]
            full = " ".join((*((name,) if name else ()), *words)) or "recipe"
            begun = folder_of(" ".join((after, *words))) if after else ""
            overrides = (*shared, *texts, *(f"{key}={value}" for key, value in combined))
            arm = Arm(full, overrides, recipe, begun, weights)
            _check_arm(sweep, arm, arms, where)
            arms.append(arm)
    return arms


def _begins(table: Table, where: str) -> tuple[str, str, str]:
    """Return the recipe of an arm, the arm that it continues, and the weights to continue from."""
    for key in ("recipe", "after"):
        if not isinstance(table.get(key, ""), str):
            raise ConfigError(f"{where}.{key}: must be a name (got {table[key]!r})")
    after, _, weights = str(table.get("after", "")).partition("@")
    if "after" in table and (not after or weights not in ("", "newest", "best")):
        raise ConfigError(
            f"{where}.after: must be the name of an arm, optionally with @best (got {table['after']!r})"
        )
    return str(table.get("recipe", "")), after, weights or ("newest" if after else "")


def _grid_axes(sweep: Sweep, where: str) -> Iterator[tuple[str, list[str]]]:
    def leaves(key: str, value: object) -> Iterator[tuple[str, object]]:
        if isinstance(value, dict):
            for name, inner in cast("Table", value).items():
                yield from leaves(f"{key}.{name}" if key else name, inner)
        else:
            yield key, value

    for key, values in leaves("", sweep.grid):
        if not isinstance(values, list) or not values:
            raise ConfigError(
                f"{where}: grid.{key}: must be a list of values, one for each arm (got {values!r})"
            )
        texts = [next(as_overrides(key, value, where)) for value in cast("list[object]", values)]
        yield key, [text.partition("=")[2] for text in texts]


def split_values(raw: str) -> list[str]:
    """Split a text at commas outside of brackets and quotes.

    >>> split_values("1e-5,3e-5"), split_values("[1,2],[3]"), split_values('"a,b"')
    (['1e-5', '3e-5'], ['[1,2]', '[3]'], ['"a,b"'])
    """
    parts, depth = [""], 0
    for piece in _PIECE.findall(raw):
        depth += (piece in "[{") - (piece in "]}")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def _check_arm(sweep: Sweep, arm: Arm, earlier: Sequence[Arm], where: str) -> None:
    if arm.folder in [one.folder for one in earlier]:
        raise ConfigError(
            f"{where}: two arms have the name {arm.name!r} or the same folder; use different names"
        )
    config = config_of(sweep, arm)
    if arm.after and arm.after not in [one.folder for one in earlier]:
        known = ", ".join(repr(one.name) for one in earlier) or "none"
        raise ConfigError(
            f"{where}: arm {arm.name!r}: after = {arm.after!r}: is not an earlier arm; earlier arms: {known}"
        )
    if config.held_out.limit == 0 or config.held_out.every == 0:
        raise ConfigError(
            f"{where}: arm {arm.name!r}: arms are compared on held-out problems, but held_out.limit or "
            f"held_out.every is 0; set both"
        )


def is_supervised(config: Config) -> bool:
    """Return True if a configuration trains on replies instead of debates."""
    return bool(config.sft.data)


def config_of(sweep: Sweep, arm: Arm, more: Sequence[str] = ()) -> Config:
    """Return the configuration of an arm. Raise ConfigError with the name of the arm."""
    try:
        return load_config(Config, arm.recipe or sweep.recipe, (*arm.overrides, *more))
    except ConfigError as error:
        raise ConfigError(f"arm {arm.name!r}: {error}") from error
