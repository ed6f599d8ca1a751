"""What a sweep runs: a recipe, its arms and its seeds, from a TOML file or the command line."""

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
    """An experiment of several runs: every arm is run with every seed."""

    recipe: str = Field(min_length=1)
    """The recipe that the arms change: its name, or its file seen from where the command is given."""
    out: str = ""
    """The folder of all runs; "" is runs/sweeps/NAME, named by the file of the sweep or by the recipe."""
    seeds: int | tuple[int, ...] = 3
    """The seeds that each arm is run with, as [7, 13]; or how many: the recipe's and those that follow it."""
    at_once: int = Field(default=1, ge=1, le=256)
    """How many runs at a time, each in its own process."""
    devices: tuple[str, ...] = ()
    """CUDA_VISIBLE_DEVICES of each of the runs at a time, as ["0", "1"]; it sets how many these are."""
    figures: tuple[str, ...] = ()
    """The held-out figures of the table, as in RUN/held_out.jsonl; () takes accuracy of one agent alone and,
    where there are votes, of winners and judges."""
    all: Table = Field(default_factory=dict)
    """Tables of a recipe with what holds for every arm."""
    arms: dict[str, Table] = Field(default_factory=dict)
    """Tables of a recipe with what each arm changes, by its name; the first is what others differ from. An
    arm may have a ``recipe`` of its own, and begin ``after`` another arm: with the weights of its run of the
    same seed, "sft" with those of its last step, "sft@best" with the best."""
    grid: Table = Field(default_factory=dict)
    """Tables of a recipe with lists of values: every arm is run with each combination of them."""

    @property
    def places(self) -> tuple[str, ...]:
        """CUDA_VISIBLE_DEVICES of each of the runs at a time, "" if none is set."""
        return self.devices or ("",) * self.at_once

    @field_validator("seeds")
    @classmethod
    def _some_seeds(cls, value: int | tuple[int, ...]) -> int | tuple[int, ...]:
        count = value if isinstance(value, int) else len(set(value))
        if not 1 <= count <= 1000 or (isinstance(value, tuple) and count < len(value)):
            raise ValueError("must be a number from 1 to 1000, or a list of 1 to 1000 different seeds")
        return value

    def seeds_from(self, first: int) -> tuple[int, ...]:
        """Return the seeds of every arm; ``first``: the recipe's.

        >>> Sweep(recipe="r", seeds=2).seeds_from(7), Sweep(recipe="r", seeds=[9, 3]).seeds_from(7)
        ((7, 8), (9, 3))
        """
        return tuple(range(first, first + self.seeds)) if isinstance(self.seeds, int) else self.seeds


@dataclass(frozen=True, slots=True)
class Arm:
    """A variant of a recipe. ``overrides``: all that it changes, as ``key=value`` texts.

    ``recipe``: its own, "" that of the sweep. ``after``: the folder of the arm whose weights it begins with,
    and ``weights`` which of them.
    """

    name: str
    overrides: tuple[str, ...]
    recipe: str = ""
    after: str = ""
    weights: str = ""

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return folder_of(self.name)

    @property
    def changes(self) -> list[str]:
        """All that makes it differ from the recipe of the sweep, as ``key=value`` texts."""
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
    """Return a sweep and its arms: from a sweep's file, shipped or one's own, or from a recipe.

    ``given``: ``key=value`` texts. A key of ``Sweep`` sets that; one of the recipe holds for every arm, and
    with several values, as in ``learner.lr=1e-5,3e-5``, makes an arm of each. ConfigError for a name that is
    neither sweep nor recipe, for arms of one name, and for an invalid configuration.
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
    """Return the arms of a sweep, each a valid configuration; ``given`` as in ``open_sweep``.

    >>> sweep = Sweep(recipe="quickstart")
    >>> [arm.name for arm in arms_of(sweep, ["learner.lr=1e-4,3e-4", "learner.beta=0.0,0.1"], "x")][:2]
    ['lr=1e-4 beta=0.0', 'lr=1e-4 beta=0.1']
    >>> arms_of(sweep, ["learner.lr=1e-4"], "x")
    [Arm(name='recipe', overrides=('learner.lr=1e-4',), recipe='', after='', weights='')]
    """
    shared = [*as_overrides("", sweep.all, f"{where}: all")]
    axes = [*_grid_axes(sweep, where)]
    for text in given:
        parse_override(text)  # says what is no key=value
        key, _, raw = text.partition("=")
        values = split_values(raw)
        shared += [] if len(values) > 1 else [text]
        axes += [(key.strip(), values)] if len(values) > 1 else []
    count = prod(len(values) for _, values in axes) * max(len(sweep.arms), 1)
    if count > MOST_ARMS:
        raise ConfigError(f"{where}: {count:,} arms are more than {MOST_ARMS:,}")
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
    """Return an arm's own recipe, the arm that it continues, and which of its weights."""
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
    """Return the values between commas that stand in no brackets and no quotes.

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
            f"{where}: arm {arm.name!r}: after = {arm.after!r}: is not an arm before this one: {known}"
        )
    if config.held_out.limit == 0 or config.held_out.every == 0:
        raise ConfigError(
            f"{where}: arm {arm.name!r}: arms are compared on held-out problems, but held_out.limit or "
            f"held_out.every is 0"
        )


def is_supervised(config: Config) -> bool:
    """Return whether a configuration learns replies, and holds no debates."""
    return bool(config.sft.data)


def config_of(sweep: Sweep, arm: Arm, more: Sequence[str] = ()) -> Config:
    """Return the configuration of an arm; ConfigError names the arm."""
    try:
        return load_config(Config, arm.recipe or sweep.recipe, (*arm.overrides, *more))
    except ConfigError as error:
        raise ConfigError(f"arm {arm.name!r}: {error}") from error
