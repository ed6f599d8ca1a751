"""The data sets by name, from catalog.toml: where each is, where its fields are, and how a row is read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from debate.types import Kind
from envs.data import golds, questions
from envs.data.golds import Choices, Gold
from envs.data.records import Record
from envs.types import Mode

_HUB_ID = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:/(\w[\w.-]*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set: the hub's id, its configurations, our split names to the hub's, and how to read a row."""

    name: str
    splits: Mapping[str, str]
    hub_id: str = ""
    configs: tuple[str | None, ...] = (None,)
    kind: Literal["number", "expression", "choice", "instructions", "overlap", "code", "open", "auto"] = (
        "auto"
    )
    question: Callable[[Record], str] = questions.question
    gold: Gold = golds.plain
    choices: Callable[[Record], Choices] | None = None
    ids: tuple[str, ...] = ()
    """Fields that may hold a row's own id; so for ``subject`` and ``level``."""
    subject: tuple[str, ...] = ()
    level: tuple[str, ...] = ("level",)
    row_kind: Callable[[Record], Kind] | None = None
    """The kind of each row where a set mixes several; then ``kind`` says nothing."""
    mode: Mode | None = None
    """The grader mode that published figures of it were made with; None: any, as for its kind."""
    max_tokens: int | None = None
    """The tokens of a reply that published figures of it allow; None: none is usual."""
    shuffled: bool = False
    """Whether the row lists the right choice first: then the seed draws the order of the choices."""
    split_field: str | None = None
    """The field that names each row's split where a local file holds several."""
    keep: Callable[[Record], bool] | None = None
    """Which rows belong to it; None: all."""
    loose: bool = False
    """Some published rows cannot be used (a proof has no answer): they are left out with a warning."""
    streamed: bool = False
    """Too large to hold: read until ``limit`` is reached, each question once, its id from its text."""
    own: bool = False
    """A user's rows, by field names: any split, choices where the row has some, and the kind it names."""
    home: str = ""
    """Where the files of a set are that the hub does not have (``hub_id`` is then "")."""


def _read(name: str, table: Mapping[str, Any]) -> DataSet:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key == "splits":
            values[key] = MappingProxyType(value if isinstance(value, dict) else {one: one for one in value})
        elif key in ("question", "gold", "choices", "keep", "row_kind") and isinstance(value, str):
            values[key] = next(vars(room)[value] for room in (golds, questions) if value in vars(room))
        elif key == "question":
            values[key] = questions.of_fields(*value)
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    return DataSet(name, **values)


DATA_SETS: Mapping[str, DataSet] = MappingProxyType(
    {
        name: _read(name, table)
        for name, table in tomllib.loads(
            Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
        ).items()
    }
)
"""Data sets whose fields and homes are known, by name."""
OWN_FILE = DataSet(
    "file", {}, ids=("id", "unique_id"), subject=("subject", "type"), split_field="split", own=True
)
"""A user's own rows; each may name its split."""


def find_data_set(name: str) -> DataSet | None:
    """Return the data set of this name, however it is spelled, or of this hub id.

    Any other "owner/name" or "owner/name/configuration" is a data set of the hub whose rows are read as a
    user's own. None for any other text.

    >>> [find_data_set(name).name for name in ("MATH-500", "NuminaMath-CoT", "openai/gsm8k")]
    ['math500', 'numinamath_cot', 'gsm8k']
    >>> entry = find_data_set("someone/my-problems/hard")
    >>> entry.name, entry.hub_id, entry.configs
    ('someone--my-problems--hard', 'someone/my-problems', ('hard',))
    """
    for entry in DATA_SETS.values():
        if _plain(entry.name) == _plain(name) or entry.hub_id.lower() == name.lower() != "":
            return entry
    match = _HUB_ID.fullmatch(name)
    return match and replace(OWN_FILE, name=name.replace("/", "--"), hub_id=match[1], configs=(match[2],))


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())
