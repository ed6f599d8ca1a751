"""What a configuration names by dotted path: "package.module:NAME". To look it up runs the module's code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module


def load_dotted(path: str, *, key: str) -> object:
    """Return the object that a path names; ValueError with the configuration's key where there is none.

    >>> load_dotted("debate.personas:PRESETS", key="debate.personas") is not None
    True
    >>> load_dotted("debate.personas:FIVE", key="debate.personas")
    Traceback (most recent call last):
        ...
    ValueError: debate.personas: the module 'debate.personas' has no 'FIVE'
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f'{key}: {path!r} is no dotted path; write it as "package.module:NAME"')
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


def require_call(function: Callable[..., object], place: str, *args: object, **settings: object) -> None:
    """ValueError where a function could not be called with these arguments; it is not called.

    >>> require_call(sorted, "rule", [2, 1], reverse=True)
    >>> require_call(sorted, "rule", [2, 1], alpha=0.1)
    Traceback (most recent call last):
        ...
    ValueError: rule does not take what it is called with: got an unexpected keyword argument 'alpha'
    """
    try:
        inspect.signature(function).bind(*args, **settings)
    except TypeError as error:
        raise ValueError(f"{place} does not take what it is called with: {error}") from error
