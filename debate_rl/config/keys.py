"""Dotted keys of a configuration: their types, their meanings, and suggestions for misspelled keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from debate.settings import Settings, did_you_mean, table_of

BASIC = (
    "model.name_or_path",
    "model.policy",
    "env.kind",
    "debate.num_agents",
    "debate.num_rounds",
    "debate.max_tokens",
    "rewards.truth_weight",
    "train.steps",
    "train.batch_size",
    "train.group_size",
    "learner.lr",
    "run.dir",
)
"""The twelve keys that a first recipe sets."""


def key_type(model: type[Settings], path: Sequence[str]) -> Any:
    """Return the type of the value at a key path: ``Any`` in a table of free keys, None for an unknown key.

    >>> from learner.update.config import LearnerConfig
    >>> key_type(LearnerConfig, ["lr"]), key_type(LearnerConfig, ["rl"])
    (<class 'float'>, None)
    """
    kind: Any = model
    for part in path:
        if (named := named_tables_of(kind)) is not None:
            kind = named
            continue
        inner = table_of(kind)
        if inner is None:
            return Any if any(get_origin(option) is dict for option in (kind, *get_args(kind))) else None
        if part not in inner.model_fields:
            return None
        kind = inner.model_fields[part].annotation
    return kind


def named_tables_of(kind: Any) -> type[Settings] | None:
    """Return the settings class of the values if the type is a dict of tables, else None.

    >>> from debate_rl.config.endpoints import EndpointConfig
    >>> named_tables_of(dict[str, EndpointConfig] | None).__name__, named_tables_of(dict[str, int])
    ('EndpointConfig', None)
    """
    dicts = (option for option in (kind, *get_args(kind)) if get_origin(option) is dict)
    return next((table for option in dicts if (table := table_of(get_args(option)[1]))), None)


def takes_none_as_a_word(kind: Any) -> bool:
    """Return True if the string "none" is one of the type's literal values.

    >>> from typing import Literal
    >>> takes_none_as_a_word(Literal["none", "group"] | None), takes_none_as_a_word(str | None)
    (True, False)
    """
    return kind == "none" or any(takes_none_as_a_word(part) for part in get_args(kind))


def check_key(model: type[Settings], key: str) -> None:
    """Raise ValueError with a suggestion if a dotted key or table does not exist."""
    path = key.split(".")
    if key_type(model, path) is None:
        table = table_of(key_type(model, path[:-1])) if path[1:] else model
        if table is not None and path[-1] in table.renamed:
            raise ValueError(f"no key is named {key!r}; it is now {table.renamed[path[-1]]}")
        hint = did_you_mean(key, all_keys(model), "keys are written as in learner.lr")
        raise ValueError(f"no key is named {key!r}; {hint}")


class Key(NamedTuple):
    """A key of a configuration: its field, its default (PydanticUndefined if required), and its table."""

    field: FieldInfo
    default: object
    table: type[Settings]


def all_keys(model: type[Settings], settings: object = None) -> dict[str, Key]:
    """Return every dotted key, each table before its keys. ``settings`` overrides the defaults of the class.

    >>> from learner.advantages import AdvantageConfig
    >>> keys = all_keys(AdvantageConfig)
    >>> list(keys)[:2], keys["peer.scale"].default, keys["truth.scale"].default
    (['peer', 'peer.baseline'], 'none', 'group')
    """
    keys: dict[str, Key] = {}
    for name, field in model.model_fields.items():
        default = getattr(settings, name) if isinstance(settings, model) else field.default
        keys[name] = Key(field, default, model)
        inner, prefix = table_of(field.annotation), name
        if inner is None:
            inner, prefix = named_tables_of(field.annotation), f"{name}.NAME"
        if inner is not None:
            keys |= {f"{prefix}.{key}": value for key, value in all_keys(inner, default).items()}
    return keys


def listed_keys(model: type[Settings]) -> dict[str, dict[str, Key]]:
    """Return each key once, together with the equal keys of other tables. Tables themselves are left out.

    Keys are equal if their tables inherit them from one class, as ``env.levels`` and ``held_out.levels``, or
    declare them in ``same``.

    >>> from learner.advantages import AdvantageConfig
    >>> list(listed_keys(AdvantageConfig))[:4], list(listed_keys(AdvantageConfig)["peer.key"])[:2]
    (['peer.baseline', 'peer.scale', 'peer.key', 'discount'], ['peer.key', 'truth.key'])
    """
    same: dict[tuple[type, str], dict[str, Key]] = {}
    for name, key in all_keys(model).items():
        last = name.rpartition(".")[2]
        if table_of(key.field.annotation) is None:
            bases = key.table.same.get(last, key.table).__mro__
            first = [one for one in bases if last in getattr(one, "model_fields", ())][-1]
            same.setdefault((first, last), {})[name] = key
    listed = {next(iter(keys)): keys for keys in same.values()}
    return {name: keys for name, keys in listed.items() if not any(k.startswith(f"{name}.") for k in listed)}
