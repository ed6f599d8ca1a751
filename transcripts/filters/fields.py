"""The fields of the filter language, defined in fields.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from envs.causes.rules import CAUSES
from transcripts.index.facts import REALS

Kind: TypeAlias = Literal["id", "number", "step", "word", "name", "words"]
"""The kinds of values.

id: STEP.INDEX. number: can be compared, and can be ``none`` if ``absent``. step: compared like a number.
word: one of a few. name: exact, with *. words: full text.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``sql``: the column that is compared. ``words`` maps each word to its condition.

    For a name, the condition replaces ``{}`` in ``sql``.
    """

    name: str
    about: str
    example: str
    kind: Kind = "number"
    sql: str = ""
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    absent: bool = False


def _field(name: str, table: dict[str, Any]) -> Field:
    column = name.replace(".", "_")
    values: dict[str, Any] = {"sql": column, **table}
    return Field(name, **values, absent="kind" not in table and column in REALS)


_TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text(encoding="utf-8")
)
_TABLES["cause"]["words"] = {
    cause: f"accuracy < 1 AND caused(debates.key, debates.start, '{cause}')" for cause in CAUSES
}
FIELDS: dict[str, Field] = {name: _field(name, table) for name, table in _TABLES.items()}
"""All fields by name, in the order of the docs page."""
