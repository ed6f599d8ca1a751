"""The base of every configuration model: frozen, and an unknown key is refused with the nearest valid one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Settings(BaseModel):
    """A group of settings. Defaults live in the fields, once."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _name_the_nearest_key(cls, data: Any) -> Any:
        known = list(cls.model_fields)
        for key, _ in _items(data):
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(known)}"
                raise ValueError(f"unknown key {key!r}; {hint}")
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_true_for_a_number(cls, data: Any) -> Any:
        for key, value in _items(data):
            kind = cls.model_fields[key].annotation if key in cls.model_fields else None
            kinds = {kind, *get_args(kind)}
            if isinstance(value, bool) and bool not in kinds and not kinds.isdisjoint((int, float)):
                raise ValueError(f"{key}: needs a number (got {value})")
        return data


def _items(data: object) -> list[tuple[str, object]]:
    return list(cast("dict[str, object]", data).items()) if isinstance(data, dict) else []
