"""What every configuration builds on: the base of its models, and what it names by dotted path."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Settings(BaseModel):
    """A group of settings: frozen, with the defaults in its fields. An unknown key is refused."""

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
                hint = did_you_mean(str(key), known, f"valid keys: {', '.join(known)}")
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


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint for an unknown name: the known name nearest to it, or ``otherwise`` where none is near.

    >>> did_you_mean("lerner", ("learner", "train"), "valid: learner, train")
    "did you mean 'learner'?"
    """
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def load_dotted(path: str, *, key: str) -> object:
    """Return the object at "package.module:NAME", running the module's code; ValueError where there is none.

    ``key`` is the configuration's key that has the path.

    >>> load_dotted("debate.personas:PRESETS", key="debate.personas") is not None
    True
    >>> load_dotted("debate.personas:FIVE", key="debate.personas")
    Traceback (most recent call last):
        ...
    ValueError: debate.personas: the module 'debate.personas' has no 'FIVE'
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f'{key}: {path!r} is not a dotted path; write it as "package.module:NAME"')
    try:
        module = import_module(module_name)
    except Exception as error:  # whatever somebody's module does when it runs
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            reason += "; PYTHONPATH=. finds the modules of this folder"
        raise ValueError(f"{key}: cannot import {module_name!r} of {path!r}: {reason}") from error
    if not hasattr(module, name):
        raise ValueError(f"{key}: the module {module_name!r} has no {name!r}")
    return getattr(module, name)


def require_call(function: Callable[..., object], name: str, *args: object, **settings: object) -> None:
    """Raise ValueError if the function cannot be called with these arguments. It is not called.

    ``name`` is what the message calls it.

    >>> require_call(sorted, "rule", [2, 1], reverse=True)
    >>> require_call(sorted, "rule", [2, 1], alpha=0.1)
    Traceback (most recent call last):
        ...
    ValueError: rule does not take what it is called with: got an unexpected keyword argument 'alpha'
    """
    try:
        inspect.signature(function).bind(*args, **settings)
    except TypeError as error:
        raise ValueError(f"{name} does not take what it is called with: {error}") from error
