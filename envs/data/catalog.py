"""The known data sets, from catalog.toml: their locations, their fields, and how to parse their rows."""

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
    """One data set: where it is, its splits (the hub's names by ours), and how to parse its rows."""

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
    """Fields that may hold a row's own id; ``subject`` and ``level`` list fields as well."""
    subject: tuple[str, ...] = ()
    level: tuple[str, ...] = ("level",)
    row_kind: Callable[[Record], Kind] | None = None
    """The kind of each row, if the data set mixes kinds; ``kind`` is then ignored."""
    mode: Mode | None = None
    """The grader mode of the published figures for this data set; None if there is no special mode."""
    max_tokens: int | None = None
    """The token limit of replies in the published figures; None if there is no usual limit."""
    shuffled: bool = False
    """Whether rows list the right choice first; the seed then determines the order of the choices."""
    split_field: str | None = None
    """The field that names each row's split, for local files with several splits."""
    keep: Callable[[Record], bool] | None = None
    """Whether a row belongs to the data set; None if all rows do."""
    loose: bool = False
    """Whether unusable rows (a proof has no answer) are left out with a warning instead of an error."""
    streamed: bool = False
    """Whether to stream rows until ``limit`` is reached, with each question once and an id from its text."""
    own: bool = False
    """Whether the rows are a user's own: with any split, and perhaps with choices and a kind in each row."""
    home: str = ""
    """The location of the files if the data set is not on the hub (``hub_id`` is then "")."""


def _read(name: str, tables: Mapping[str, Mapping[str, Any]]) -> DataSet:
    values: dict[str, Any] = {}
    table = dict(tables[name])
    if "like" in table:
        table = {**tables[table.pop("like")], **table}
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


_TABLES = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8"))
DATA_SETS: Mapping[str, DataSet] = MappingProxyType({name: _read(name, _TABLES) for name in _TABLES})
"""The data sets of catalog.toml by name."""
OWN_FILE = DataSet(
    "file", {}, ids=("id", "unique_id"), subject=("subject", "type"), split_field="split", own=True
)
"""A user's own rows; each row may name its split."""


def find_data_set(name: str) -> DataSet | None:
    """Return the data set with this name or hub id.

    Case, blanks, hyphens and underscores are ignored in names. Any other "owner/name" or
    "owner/name/configuration" is a hub data set with rows like a user's own. Return None for any other text.

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
