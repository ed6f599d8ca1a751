"""``debate keys``: list the keys of recipes, which the command line can override."""

from __future__ import annotations

import re
from math import isfinite
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import typer
from pydantic_core import PydanticUndefined
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from debate.ramps import Points
from debate.settings import did_you_mean
from debate_rl.commands.console import STDOUT_NAME, write_json
from debate_rl.commands.options import writable
from debate_rl.config import Config
from debate_rl.config.keys import BASIC, Key, all_keys, listed_keys, table_of


def keys(
    part: Annotated[
        str | None,
        typer.Argument(metavar="WORD", help="A key, a table such as learner, or a word to search for."),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="List all keys, not only the twelve basic keys.")
    ] = False,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Write these keys, or all keys without WORD, to this file; - is stdout, without the list.",
        ),
    ] = None,
) -> None:
    """List twelve basic keys of a recipe, or all keys, with type, default and meaning."""
    console = Console(highlight=False, quiet=json == STDOUT_NAME)
    every = {name: key for name, key in all_keys(Config).items() if table_of(key.field.annotation) is None}
    listed = listed_keys(Config)
    if part is not None:
        shown = _chosen(every, part)
    else:
        shown = {name: every[name] for name in (listed if show_all else BASIC)}
    for name, key in shown.items():
        console.print(_head(name, key), soft_wrap=True)
        same = [other for other in listed.get(name, ()) if other != name and ".NAME." not in other]
        also = f" Also {', '.join(same)}." if show_all and same else ""
        console.print(Padding(Text(_meaning(key) + also), (0, 0, 0, 4)))
    if part is None and not show_all:
        console.print(
            f"\n{len(listed)} keys in total: debate keys --all lists them, debate keys WORD searches them."
        )
    if json is not None:
        write_json(json, {"keys": [_plain(name, key) for name, key in (shown if part else every).items()]})


def _plain(name: str, key: Key) -> dict[str, object]:
    """Return a key as a dict for JSON. The default has the form of the command line; None: no default."""
    default = None if key.default is PydanticUndefined else _value(key.default)
    return {"name": name, "default": default, "type": _kind(key.field.annotation), "meaning": _meaning(key)}


def _chosen(keys: dict[str, Key], part: str) -> dict[str, Key]:
    """Return the keys of a table, or the keys with a word in their name or meaning.

    Raise ValueError if there are none.
    """
    named = {name: key for name, key in keys.items() if f"{name}.".startswith(f"{part}.")}
    word = part.lower()
    chosen = named or {name: key for name, key in keys.items() if word in f"{name} {_meaning(key)}".lower()}
    if not chosen:
        hint = did_you_mean(part, keys, "debate keys --all lists all keys")
        raise ValueError(f"no key contains {part!r} in its name or meaning; {hint}")
    return chosen


def _meaning(key: Key) -> str:
    text = " ".join((key.field.description or "").replace("``", "").split())
    return re.sub(r"\bNone\b", "none", text)


def _head(name: str, key: Key) -> Text:
    required = key.default is PydanticUndefined
    default = "required" if required else "= " + _value(key.default).replace("\n", r"\n")
    facts = ", ".join((_kind(key.field.annotation), *_bounds(key)))
    return Text.assemble((name, "bold"), f" {default}  ", (f"({facts})", "dim"))


def _value(default: object) -> str:
    """Return a default in the form of the command line.

    >>> _value(None), _value(True), _value("k3"), _value((1, 2))
    ('none', 'true', 'k3', '[1, 2]')
    """
    if default is None or isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return str(list(default))
    return str(default)


def _bounds(key: Key) -> list[str]:
    """Return the bounds of a field, from the field or from its type."""
    inner = (part for option in get_args(key.field.annotation) for part in get_args(option))
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    found = (
        (signs[name], getattr(rule, name, None)) for rule in (*key.field.metadata, *inner) for name in signs
    )
    return [f"{sign} {bound:g}" for sign, bound in found if bound is not None and isfinite(bound)]


def _kind(annotation: object) -> str:
    """Return a type as recipes write it.

    >>> _kind(int | None), _kind(Literal["k1", "k2"]), _kind(tuple[float, ...])
    ('int or none', 'k1 | k2', 'list of float')
    """
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return " | ".join(str(part) for part in parts)
    if get_origin(annotation) is Annotated:
        return _kind(parts[0])
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_kind(part) for part in parts)
    if get_origin(annotation) is tuple:
        inner = dict.fromkeys(_kind(part) for part in parts if part is not ...)
        return f"list of {' and '.join(inner)}"
    if annotation is type(None):
        return "none"
    if annotation is Points:
        return "points"
    return getattr(annotation, "__name__", str(annotation))
