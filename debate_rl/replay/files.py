"""What a replay leaves to look at: replays/NAME/replay.json, the figures, and debates.jsonl, every debate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from debate.files import naming, read_json
from debate_rl.formatting import json_number
from debate_rl.replay.comparing import Columns, DebateChange
from debate_rl.runs.folder import write_whole

FACTS, DEBATES = "replay.json", "debates.jsonl"
SCHEMA = 1
"""Of replay.json and debates.jsonl."""
_FRESH = f".{DEBATES}.new"
_LONGEST = 80


def replay_name(overrides: Iterable[str], asked: Mapping[str, object]) -> str:
    """Return the name of a replay's folder: its overrides as far as they go, and what tells it from others.

    >>> replay_name(["rewards.truth_weight=0.3", 'rewards.peer="copeland"'], {"filter": ""})
    'rewards.truth_weight=0.3,rewards.peer=copeland-d70137e7'
    """
    text = re.sub(r"[^\w.,=-]+", "", ",".join(overrides), flags=re.ASCII)[:_LONGEST].lstrip(".-")
    return f"{text or 'own'}-{_mark(asked)}"


def _mark(asked: Mapping[str, object]) -> str:
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]


def refuse_another(folder: Path, asked: Mapping[str, object]) -> None:
    """Raise ValueError where a folder holds anything but a replay that asked for the same, whole or cut off.

    One that was cut off has no figures: only the name that ``replay_name`` gave it says what it asked.
    """
    ours = {_FRESH, DEBATES, f".{FACTS}.new"} if folder.name.endswith(f"-{_mark(asked)}") else {_FRESH}
    if not folder.exists() or all(entry.name in ours for entry in folder.iterdir()):
        return
    held: object = None
    with suppress(OSError, ValueError):
        facts = read_json(folder / FACTS)
        held = facts.get("asked") if isinstance(facts, dict) else None
    if held is None:
        raise ValueError(f"{folder}: is not empty and holds no replay; choose another --out")
    if held != json.loads(json.dumps(asked)):
        raise ValueError(f"{folder}: holds the replay of another question; choose another --out")


def write_debates(folder: Path, changes: Iterable[DebateChange]) -> None:
    """Write a line for each debate; the file is there once it is whole, and nothing new where that fails."""
    made = [one for one in (folder, folder.parent) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / _FRESH
    try:
        fresh.unlink(missing_ok=True)  # what was left, or a link to somebody's file
        with naming(folder / DEBATES), fresh.open("xb") as file:
            for change in changes:
                file.write(orjson.dumps(line_of(change), option=orjson.OPT_APPEND_NEWLINE))
        fresh.replace(folder / DEBATES)
    except BaseException:
        fresh.unlink(missing_ok=True)
        for one in made:
            one.rmdir()
        raise


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the figures, after the debates: a folder with them is whole."""
    write_whole(folder / FACTS, facts_json(facts).encode())


def facts_json(facts: Mapping[str, Any]) -> str:
    """Return the figures as JSON; a number that is not finite is null."""
    return json.dumps(_finite(facts), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Return a value with None for each number that JSON has not."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return json_number(value)


def line_of(change: DebateChange) -> dict[str, object]:
    """Return a debate's line; of ``new`` it holds the streams that are not as in ``old``."""
    return {
        "id": change.id,
        "step": change.step,
        "problem": change.problem,
        "change": change.change,
        "differs": change.differs,
        "personas": change.personas,
        "rounds": change.rounds,
        "turns": [[turn.agent, turn.round] for turn in change.turns],
        "old": {"rewards": change.old.rewards, "advantages": change.old.advantages},
        "new": _news(change.old, change.new),
    }


def _news(old: Columns, new: Columns) -> dict[str, object]:
    return {
        "rewards": {name: column for name, column in new.rewards.items() if column != old.rewards[name]},
        "advantages": {
            name: column for name, column in new.advantages.items() if column != old.advantages[name]
        },
    }
