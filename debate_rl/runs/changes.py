"""Which settings of a run may change when it is resumed, and the message of a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from debate_rl.config import DATA

Change: TypeAlias = tuple[object, object]
"""The value before and now; None where it is unset."""


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """In which keys a resumed run may have another value.

    ``may_change``: any value; keys or tables, and "data" for the problems. ``may_grow``: a larger one.
    ``notes`` say of a key what its change would mean.
    """

    may_change: tuple[str, ...] = ("run", "logging")
    may_grow: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def allow(self, key: str, change: Change) -> bool:
        """Return whether this key may have changed so.

        >>> rules = ChangeRules(("logging",), ("train.steps",))
        >>> rules.allow("logging.progress", (None, "bar")), rules.allow("train.steps", (4, 6))
        (True, True)
        >>> rules.allow("train.steps", (6, 4)), rules.allow("learner.lr", (1e-5, 1e-4))
        (False, False)
        """
        if any(key == free or key.startswith(f"{free}.") for free in self.may_change):
            return True
        before, now = change
        if not isinstance(before, int | float) or not isinstance(now, int | float):
            return False
        return key in self.may_grow and now > before

    def note(self, key: str) -> str:
        """Return what is to be said behind a refused key."""
        return f" ({self.notes[key]})" if key in self.notes else ""


def flat(tables: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return dotted keys and their values.

    >>> flat({"seed": 1, "debate": {"num_agents": 3}, "stages": [{"target": 0.6}]})
    {'seed': 1, 'debate.num_agents': 3, 'stages.0.target': 0.6}
    """
    result: dict[str, object] = {}
    for key, value in tables.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            value = {str(number): row for number, row in enumerate(value)}
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = value
    return result


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, Change]:
    """Return what differs between two configurations, by dotted key."""
    before, after = flat(old), flat(new)
    keys = sorted(before.keys() | after.keys())
    return {k: (before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)}


def refusal(changed: Mapping[str, Change], rules: ChangeRules) -> str | None:
    """Return what is refused of the changes and the ways out, in one line; None when all are allowed."""
    refused = [key for key, change in changed.items() if not rules.allow(key, change)]
    if not refused:
        return None
    shown = "; ".join(
        f"{key} was {_word(changed[key][0])}, now {_word(changed[key][1])}{rules.note(key)}"
        for key in refused[:5]
    )
    more = f" (and {len(refused) - 5} more)" if len(refused) > 5 else ""
    if more:  # another recipe, not another setting
        return f"{shown}{more}; choose another run.dir, or set these back"
    return (
        f"{shown}; choose another run.dir, set these back, or allow them by name: "
        f"'run.allow_changes={json.dumps(list(dict.fromkeys(map(_allowable, refused))))}'"
    )


def _allowable(key: str) -> str:
    """Return the name by which a key is allowed: of a key in a list of tables, the list.

    >>> _allowable("learner.lr"), _allowable("stages.1.debate.num_agents"), _allowable("env.mix.0.weight")
    ('learner.lr', 'stages', 'env.mix')
    """
    parts = key.split(".")
    return ".".join(parts[: next((i for i, part in enumerate(parts) if part.isdecimal()), None)])


def data_changes(known: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Change]:
    """Return the checksums that are others than before, by the names of the data.

    >>> data_changes({"a.jsonl": "1", "b.jsonl": "2"}, {"a.jsonl": "3", "c.jsonl": "4"})
    {'data: a.jsonl': ('1', '3')}
    """
    return {
        f"{DATA}: {name}": (known[name], checksum)
        for name, checksum in now.items()
        if known.get(name, checksum) != checksum
    }


def data_refusal(changed: Mapping[str, Change], rules: ChangeRules) -> str | None:
    """Return what is refused of changed data and the ways out, in one line; None when all is allowed."""
    if not changed or rules.allow(DATA, (None, None)):
        return None
    names = ", ".join(sorted(name.removeprefix(f"{DATA}: ") for name in changed))
    return (
        f"the data changed since this run began: {names}; bring back the files (or the version of this code "
        "that read them so), choose another run.dir, or go on with the problems as they are read now: "
        f"'run.allow_changes={json.dumps([DATA])}'"
    )


def _word(value: object) -> str:
    return "unset" if value is None else repr(value)
