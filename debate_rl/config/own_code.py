"""The keys of a configuration that may name code of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

OWN_CODE = (
    "env.kind",
    "held_out.kind",
    "debate.personas",
    "rewards.peer",
    "model.policy",
    "learner.loss",
)
"""The keys that may name code of one's own."""


def named_code(tables: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each key whose value names code, and that value."""
    for key in _keys_of_code(tables):
        value = _value_at(tables, key)
        if isinstance(value, str) and ":" in value:
            yield key, value


def _keys_of_code(tables: Mapping[str, object]) -> list[str]:
    """Return the keys that may name code, those of each stage of a curriculum among them."""
    stages = _value_at(tables, "stages")
    own = [*OWN_CODE, *_further_keys(tables)]
    for index, stage in enumerate(cast("list[object]", stages) if isinstance(stages, list) else ()):
        changed = cast("dict[str, object]", stage) if isinstance(stage, dict) else {}
        own += [f"stages.{index}.{key}" for key in (*OWN_CODE, *_further_keys(changed))]
    return own


def _value_at(tables: Mapping[str, object], key: str) -> object:
    """Return the value at a dotted key, in which lists are indexed by numbers; None where there is none."""
    value: object = tables
    for part in key.split("."):
        if isinstance(value, list):
            value = dict(enumerate(cast("list[object]", value))).get(int(part) if part.isdecimal() else -1)
        else:
            value = cast("dict[str, object]", value).get(part) if isinstance(value, dict) else None
    return value


def _further_keys(tables: Mapping[str, object]) -> list[str]:
    """Return the keys of code in tables with names: held-out sets, endpoints, and the sets of a mixture."""
    more, mix = _value_at(tables, "held_out.more"), _value_at(tables, "env.mix")
    kinds = [f"held_out.more.{name}.kind" for name in more] if isinstance(more, dict) else []
    endpoints = _value_at(tables, "endpoints")
    kinds += [f"endpoints.{name}.policy" for name in endpoints] if isinstance(endpoints, dict) else []
    return kinds + [f"env.mix.{index}.kind" for index in range(len(mix) if isinstance(mix, list) else 0)]
