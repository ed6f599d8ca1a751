"""The base class of all configurations, and loading of objects that they name by dotted path."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, model_validator

T = TypeVar("T")


class Settings(BaseModel):
    """A group of settings: frozen, with the defaults in its fields. Unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )
    renamed: ClassVar[Mapping[str, str]] = {}
    """Former keys and what replaces them. A former key is refused with a message that names both."""
    same: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """Keys that mean the same in another model, and are documented together with it."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_nearest_key(cls, data: Any) -> Any:
        known = list(cls.model_fields)
        for key, _ in _items(data):
            if key in cls.renamed:
                raise ValueError(f"unknown key {key!r}; it is now {cls.renamed[key]}")
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


class Seeded(Settings):
    """Settings of random draws."""

    seed: int = 0
    """Seed of random draws."""


def _items(data: object) -> list[tuple[str, object]]:
    return list(cast("dict[str, object]", data).items()) if isinstance(data, dict) else []


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint for an unknown name: the nearest known name, or ``otherwise`` if none is near.

    >>> did_you_mean("lerner", ("learner", "train"), "valid: learner, train")
    "did you mean 'learner'?"
    """
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def load_dotted(path: str, *, key: str) -> object:
    """Return the object at "package.module:NAME", running the module's code. ValueError if there is none.

    ``key`` is the configuration key that contains the path. Modules of the standard library are refused
    before they are imported, and so are their functions and classes in other modules. None of them is made
    for a debate, and calls of many have side effects.

    >>> load_dotted("debate.personas:PRESETS", key="debate.personas") is not None
    True
    >>> load_dotted("debate.personas:FIVE", key="debate.personas")
    Traceback (most recent call last):
        ...
    ValueError: debate.personas: the module 'debate.personas' has no 'FIVE'
    >>> load_dotted("shutil:rmtree", key="env.kind")
    Traceback (most recent call last):
        ...
    ValueError: env.kind: 'shutil:rmtree' is part of Python itself and cannot be used here
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f'{key}: {path!r} is not a dotted path; write it as "package.module:NAME"')
    if _of_python(module_name) or module_name.endswith("__main__"):
        raise ValueError(f"{key}: {path!r} is part of Python itself and cannot be used here")
    try:
        module = import_module(module_name)
    except Exception as error:  # the module may raise anything when it runs
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            reason += "; PYTHONPATH=. finds the modules of this folder"
        raise ValueError(f"{key}: cannot import {module_name!r} of {path!r}: {reason}") from error
    if not hasattr(module, name):
        raise ValueError(f"{key}: the module {module_name!r} has no {name!r}")
    named: object = getattr(module, name)
    code = inspect.isclass(named) or inspect.isroutine(named)
    if code and _of_python(getattr(named, "__module__", None) or ""):
        raise ValueError(f"{key}: {path!r} is part of Python itself and cannot be used here")
    return named


def _of_python(module: str) -> bool:
    """Return whether a module belongs to the standard library.

    >>> [_of_python(name) for name in ("os.path", "builtins", "numpy")]
    [True, True, False]
    """
    return module.partition(".")[0] in sys.stdlib_module_names


class LoadedTable(Mapping[str, T]):
    """A table of objects by name. Each object is imported on first use.

    >>> LoadedTable({"seed": "debate.seeds:derive_seed"})["seed"].__name__
    'derive_seed'
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self._paths[name].partition(":")
        return getattr(import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def load_function(path: str, *, key: str) -> Callable[..., Any]:
    """Return the callable at a path. ValueError if it is a class or not callable.

    >>> load_function("debate.personas:PRESETS", key="rewards.peer")
    Traceback (most recent call last):
        ...
    ValueError: rewards.peer: 'debate.personas:PRESETS' is not a function, but dict
    """
    named = load_dotted(path, key=key)
    if not callable(named) or inspect.isclass(named):
        kind = "a class" if inspect.isclass(named) else type(named).__name__
        raise ValueError(f"{key}: {path!r} is not a function, but {kind}")
    return named


def load_factory(path: str, *, key: str, methods: Sequence[str]) -> Callable[..., Any]:
    """Return the class at a path, or the function annotated to return one. It is not called.

    ValueError unless the class has these ``methods``: a path may name any code, and only code made for this
    purpose should be called with the settings of a configuration.

    >>> load_factory("envs.registry:DataSetEnvironment", key="env.kind", methods=["problems"]).__name__
    'DataSetEnvironment'
    """
    factory = load_dotted(path, key=key)
    made = factory if inspect.isclass(factory) else _returned(factory)
    if not (callable(factory) and all(callable(getattr(made, method, None)) for method in methods)):
        needs = " and ".join(map(repr, methods))
        raise ValueError(
            f"{key}: {path!r} is neither a class with {needs} nor a function annotated to return one"
        )
    return factory


def _returned(function: object) -> object:
    """Return the return annotation of a function, or None if it is unknown."""
    try:
        return get_type_hints(function).get("return")
    except Exception:  # an annotation may be any expression, with undefined names
        return None


def require_call(function: Callable[..., object], name: str, *args: object, **settings: object) -> None:
    """Raise ValueError if the function cannot be called with these arguments. It is not called.

    ``name`` is the function's name in the message.

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


def install_hint(extra: str) -> str:
    """Return the command that installs an extra from source, because the package is not published.

    >>> install_hint("inspect")
    'pip install ".[inspect]" in the folder of the source'
    """
    return f'pip install ".[{extra}]" in the folder of the source'
