"""Suites: several data sets in one table, each with its role and its own keys of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import Field, field_validator

from debate.settings import Settings, did_you_mean
from debate_rl.config.recipes import ConfigError, as_overrides, find_suite, read_config
from debate_rl.formatting import printable
from envs.data.catalog import find_data_set
from envs.types import MODES, Mode

Table: TypeAlias = dict[str, Any]
WHOLE = 1_000_000_000
"""Default ``held_out.limit`` of a suite's set, which means all of its problems."""
TABLES = ("held_out", "debate", "grader", "shots")
"""The tables of a recipe that an evaluation depends on."""
ANEW = ("held_out", "grader", "shots")
"""Tables that a set replaces as a whole, so that no keys of the recipe remain in them."""


class SuiteSet(Settings):
    """One data set of a suite: its role, and how it is evaluated."""

    role: str = Field(default="", max_length=60)
    """The role of the set: "train-like", "held-out", "canary", "floor", "ceiling", "temporal OOD", ..."""
    direct: bool = False
    """One agent alone solves the problems, without debates."""
    samples: int = Field(default=0, ge=0)
    """Minimum number of direct solutions per problem, like ``--samples``."""
    greedy: bool = False
    """Also sample one solution per problem at temperature 0."""
    held_out: Table = Field(default_factory=dict)
    """The problems: keys of a recipe's ``held_out``. By default, ``kind`` is the set's name, and all of its
    problems are used."""
    debate: Table = Field(default_factory=dict)
    """Keys of a recipe's ``debate``, such as prompts, temperature and max_tokens."""
    grader: Table = Field(default_factory=dict)
    """Keys of a recipe's ``grader``: the mode, and further modes in ``beside``."""
    shots: Table = Field(default_factory=dict)
    """Keys of a recipe's ``shots``: examples before each problem."""

    @field_validator("role")
    @classmethod
    def _printable(cls, value: str) -> str:
        return printable(value)


class Suite(Settings):
    """Data sets that are evaluated together."""

    all: SuiteSet = SuiteSet()
    """Defaults for every set."""
    sets: dict[str, SuiteSet] = Field(min_length=1)
    """The sets by name, in the order of the table."""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A data set with the settings of its evaluation.

    ``before`` and ``after`` are ``key=value`` overrides of the recipe, which apply before and after the
    overrides of the command line. ``key`` names the data set in error messages. ``modes``
    are further grading modes. The other fields are as in ``SuiteSet``.
    """

    name: str
    key: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    role: str = ""
    direct: bool = False
    samples: int = 0
    greedy: bool = False
    modes: tuple[Mode, ...] = ()


def read_suite(name: str, only: Sequence[str] = ()) -> list[EvalSet]:
    """Return the sets of a suite, in the suite's order. The suite is a file or one of the shipped suites.

    With ``only``, return only the sets with these names. ConfigError, in one line, for an invalid suite, and
    for a name without a set.
    """
    path = find_suite(name)
    suite = read_config(Suite, path)
    for wanted in only:
        if wanted not in suite.sets:
            hint = did_you_mean(wanted, suite.sets, f"it has {', '.join(suite.sets)}")
            raise ConfigError(f"{path}: has no set {wanted!r}; {hint}")
    usual = suite.all.model_dump(exclude_unset=True)
    return [
        _eval_set(set_name, SuiteSet(**_merged(usual, each.model_dump(exclude_unset=True))), path)
        for set_name, each in suite.sets.items()
        if not only or set_name in only
    ]


def _eval_set(name: str, settings: SuiteSet, path: Path) -> EvalSet:
    """Return a set of a suite.

    The defaults are the reply limit and the grading mode of the data set's published figures.
    """
    where = f"{path}: sets.{name}"
    tables = {key: getattr(settings, key) for key in TABLES}
    tables["held_out"] = {"kind": name, "limit": WHOLE, **settings.held_out}
    if entry := find_data_set(str(tables["held_out"]["kind"])):
        usual: Table = {"debate": {"max_tokens": entry.max_tokens}} if entry.max_tokens else {}
        tables = _merged(usual | ({"grader": {"mode": entry.mode}} if entry.mode else {}), tables)
    anew = (f"{key}=none" for key in ANEW if tables[key])
    before = (*anew, *(text for key in tables for text in as_overrides(key, tables[key], where)))
    same = {key: getattr(settings, key) for key in ("role", "direct", "samples", "greedy")}
    return EvalSet(name, f"{where}.held_out.kind", before, **same)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Table:
    """Merge two nested tables. Values of ``above`` take precedence."""
    nested = {
        key: _merged(below[key], above[key])
        for key in below.keys() & above
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **nested}


def swept(sets: Iterable[EvalSet], sweep: str) -> list[EvalSet]:
    """Return each set once per value of ``sweep`` (KEY=A,B,C), with the value in its name.

    An empty ``sweep`` leaves the sets unchanged.

    >>> [one.name for one in swept([EvalSet("gsm8k", "--on")], "debate.max_tokens=256,1024")]
    ['gsm8k, debate.max_tokens=256', 'gsm8k, debate.max_tokens=1024']
    """
    if not sweep:
        return list(sets)
    key, _, values = sweep.partition("=")
    each = [value.strip() for value in values.split(",")]
    if key.partition(".")[0] not in TABLES or len(set(each)) < len(each) or "" in each:
        raise ValueError(
            f"--sweep {sweep}: write KEY=A,B,C with a key of {', '.join(TABLES)} and different values, as in "
            "--sweep debate.max_tokens=256,1024"
        )
    none = {"shots.count=0": "shots=none"}  # without examples, no other setting of them applies
    texts = [f"{key}={value}" for value in each]
    return [
        replace(one, name=f"{one.name}, {text}", after=(*one.after, none.get(text, text)))
        for one in sets
        for text in texts
    ]


def modes_named(names: Iterable[str]) -> tuple[Mode, ...]:
    """Return the modes with these names, in the order of ``MODES``. ValueError for an unknown name."""
    wanted = list(names)
    for name in wanted:
        if name not in MODES:
            raise ValueError(f"--modes {name}: unknown; valid: {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in wanted)
