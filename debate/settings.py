"""The base class of all configurations, its errors, and loading of objects that it names by dotted path."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic._internal._model_construction import ModelMetaclass

T = TypeVar("T")
_TYPE = re.compile(r"\[|^(constrained-.*|bool|float|int|str)$")
"""Matches parts of pydantic's error locations that are types instead of keys."""
_GOT = re.compile(r"\bgot ")
"""Matches messages that already contain the invalid value."""
_OBJECTS: dict[str, object] = {}
"""Functions and classes that were passed to settings in this process, by path."""


class _OneLineErrors(ModelMetaclass):
    def __call__(cls: type[T], *args: Any, **values: Any) -> T:
        """Construct settings in Python. ValueError has one line, like the errors of files."""
        try:
            return super().__call__(*args, **values)  # type: ignore[misc]
        except ValidationError as error:
            model = cast("type[Settings]", cls)
            raise ValueError(explain(error, model.__name__, model, ())) from None


class Settings(BaseModel, metaclass=_OneLineErrors):
    """A group of settings: frozen, with the defaults in its fields. Unknown keys are refused.

    A function or class becomes its dotted path.
    """

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

    @model_validator(mode="before")
    @classmethod
    def _name_objects(cls, data: Any) -> Any:
        given = {key: path_of(value, key=key) for key, value in _items(data) if is_code(value)}
        return {**data, **given} if given else data


class Seeded(Settings):
    """Settings of random draws."""

    seed: int = 0
    """Seed of random draws."""


def _items(data: object) -> list[tuple[str, object]]:
    return list(cast("dict[str, object]", data).items()) if isinstance(data, dict) else []


def explain(error: ValidationError, source: str, model: type[BaseModel], overrides: Sequence[str]) -> str:
    """Return a one-line message with the file, the key's overrides, the key, the error, and the value."""
    found = {_key_of(one["loc"]): one for one in reversed(error.errors())}
    inner = [name for name in found if not any(other.startswith(f"{name}.") for other in found)]
    key = inner[-1]
    first = found[key]
    message = _rule([one["msg"] for one in error.errors() if _key_of(one["loc"]) == key])
    message = message.removeprefix(f"{key}: ")
    if first["type"] == "missing":
        message = _missing(model, key)
    elif first["type"] in ("model_type", "dict_type"):
        written = f", written {key}.<name>=<value> or [{key}]" if key else ""
        message = f"must be a table of settings{written}"
    given = first["input"]
    told = isinstance(given, dict | Settings) or "unknown key" in message or _GOT.search(message)
    shown = "" if told else f" (got {given!r})"
    more = f" (and {len(inner) - 1} more)" if len(inner) > 1 else ""
    where = " ".join((source, *(text for text in overrides if text.startswith(key))))
    return f"{where}: {key + ': ' if key else ''}{message}{shown}{more}"


def _missing(model: type[BaseModel], key: str) -> str:
    """Return the error message for a missing key."""
    field = model.model_fields.get(key)
    inner = table_of(field.annotation) if field else None
    if inner is not None:
        return f"is missing; add a table [{key}] with some of {', '.join(inner.model_fields)}"
    return f"is missing and has no default; set it in the file, or as {key}=<value>"


def _key_of(location: Sequence[str | int]) -> str:
    """Return the dotted key of an error, without the type names that pydantic adds to its location.

    >>> _key_of(("train", "on_alarm", "literal['warn','stop']")), _key_of(("arms", 0, "lr"))
    ('train.on_alarm', 'arms.0.lr')
    >>> _key_of(("learner", "tis_cap", "constrained-float"))
    'learner.tis_cap'
    """
    return ".".join(str(part) for part in location if not _TYPE.search(str(part)))


def _rule(messages: Sequence[str]) -> str:
    """Return the requirement on a value, combined from pydantic's messages for each possible type.

    >>> _rule(["Input should be 'auto'", "Input should be a valid boolean"])
    "Input should be 'auto' or a valid boolean"
    """
    first, *others = dict.fromkeys(message.removeprefix("Value error, ") for message in messages)
    begin = "Input should be "
    if not first.startswith(begin):
        return first
    return " or ".join((first, *(one.removeprefix(begin) for one in others if one.startswith(begin))))


def table_of(kind: Any) -> type[Settings] | None:
    """Return the settings class in ``kind`` or in ``kind | None``, or None if there is none."""
    if get_origin(kind) in (dict, tuple):
        return None
    options = (option for option in (kind, *get_args(kind)) if isinstance(option, type))
    return next((option for option in options if issubclass(option, Settings)), None)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint for an unknown name: the nearest known name, or ``otherwise`` if none is near.

    >>> did_you_mean("lerner", ("learner", "train"), "valid: learner, train")
    "did you mean 'learner'?"
    """
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def path_of(given: object, *, key: str) -> str:
    """Return the dotted path of a function or class, which configuration files name it by.

    What a notebook or script defines can be loaded by its path in this process only. ValueError for a
    lambda or a local function.

    >>> path_of(did_you_mean, key="rewards.peer")
    'debate.settings:did_you_mean'
    """
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", "")
    path = f"{module}:{name}"
    if _of_python(str(module)):
        raise ValueError(f"{key}: {path!r} is part of Python itself and cannot be used here")
    found = getattr(sys.modules.get(str(module)), name, None)
    if found is not given and not (module == "__main__" and name.isidentifier()):
        raise ValueError(f"{key}: {name!r} needs a name of its own at the top level of a module or notebook")
    _OBJECTS[path] = given
    return path


def is_known_here(path: str) -> bool:
    """Return whether this process has passed the object at a path to settings, so that it may be used."""
    return path in _OBJECTS


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
    if path in _OBJECTS:
        return _OBJECTS[path]
    module_name, colon, name = path.partition(":")
    if module_name == "__main__":
        raise ValueError(f"{key}: {path!r} was defined in another notebook or script; move it to a module")
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
    if is_code(named) and _of_python(getattr(named, "__module__", None) or ""):
        raise ValueError(f"{key}: {path!r} is part of Python itself and cannot be used here")
    return named


def is_code(value: object) -> bool:
    """Return whether a value is a function or a class."""
    return inspect.isclass(value) or inspect.isroutine(value)


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
