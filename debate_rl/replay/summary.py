"""The results of a replay over all debates, and its files replays/NAME/replay.json and debates.jsonl."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from debate.files import naming, read_json
from debate_rl.formatting import json_number
from debate_rl.replay.scheme import CLOSE, CRITIC, DebateChange
from debate_rl.runs.folder import write_whole
from transcripts.record import PARTS

MOST = 10
"""Maximum number of debates that are listed by id."""
FACTS, DEBATES = "replay.json", "debates.jsonl"
SCHEMA = 1
"""The format version of replay.json and debates.jsonl."""
_FRESH = f".{DEBATES}.new"
SUMS = ("sign_changed", "gained", "lost", "old", "new", "moved")
PLACES = ("stream", "persona", "round")
"""The parts of a cell's key."""


def tally(old: float | None, new: float | None) -> dict[str, float]:
    """Return the counts of a turn with advantage ``old`` under the run's scheme and ``new`` under another.

    None (no signal) and values that are 0 up to rounding count as 0. ``turns``: 1 if either scheme gives a
    signal. ``sign_changed``: from positive to negative or back. ``gained``: it changed from 0 to another
    value. ``lost``: it changed from another value to 0.

    >>> tally(1.0, -0.5)["sign_changed"], tally(None, None)
    (True, {})
    """
    if old is None and new is None:
        return {}
    a, b = old or 0.0, new or 0.0
    changed = (a > CLOSE and b < -CLOSE) or (a < -CLOSE and b > CLOSE)
    gained, lost = abs(a) <= CLOSE < abs(b), abs(b) <= CLOSE < abs(a)
    counts = {"turns": 1, "sign_changed": changed, "gained": gained, "lost": lost}
    return counts | {"old": a, "new": b, "moved": abs(b - a)}


@dataclass(slots=True)
class Summary:
    """The accumulated figures of a replay. ``cells``: sums of ``tally`` by (stream, persona, round).

    ``rounds``: the maximum number of rounds R of a debate; round R is the final ballot.
    """

    debates: int = 0
    rounds: int = 0
    checked: int = 0
    changed: int = 0
    differ: int = 0
    not_finite: int = 0
    differing: list[str] = field(default_factory=list[str])
    cells: dict[tuple[str, str, int], Counter[str]] = field(default_factory=dict[Any, Any])
    _most: list[tuple[float, int, str]] = field(default_factory=list[Any])

    def counting(self, changes: Iterable[DebateChange]) -> Iterator[DebateChange]:
        """Yield the changes of debates, and add each of them to the figures."""
        for change in changes:
            self.add(change)
            yield change

    def add(self, change: DebateChange) -> None:
        """Add a debate to the figures."""
        self.debates += 1
        self.rounds = max(self.rounds, change.rounds)
        self.checked += change.checked
        self.differ += change.differs
        self.not_finite += change.not_finite
        if change.differs and len(self.differing) < MOST:
            self.differing.append(change.id)
        for name, old in change.old.advantages.items():
            for turn, a, b in zip(change.turns, old, change.new.advantages[name], strict=True):
                if counts := tally(a, b):
                    key = name, change.personas[turn.agent], turn.round
                    self.cells.setdefault(key, Counter()).update(counts)  # type: ignore[arg-type]
        if change.change > CLOSE:
            self.changed += 1
            entry = (change.change, -self.debates, change.id)  # prefers the earlier debate of equal changes
            (heapq.heappush if len(self._most) < MOST else heapq.heappushpop)(self._most, entry)

    def check_lines(self, run: str, damage: int) -> list[str]:
        """Return lines that compare stored with recomputed values. ``damage``: number of unreadable lines."""
        lines = [f"{run}: {damage} lines cannot be read, so their groups lack debates"] if damage else []
        if self.not_finite:
            lines.append(f"{run}: {self.not_finite} rewards are infinite or not a number; they count as none")
        if not self.debates:
            return [*lines, f"{run}: found no debates"]
        if not self.checked:
            return [*lines, f"{run}: has no stored rewards to compare with"]
        if not self.differ:
            return [*lines, f"stored = recomputed under the run's own scheme: all of {self.checked} debates"]
        named = ", ".join(self.differing) + (", ..." if self.differ > len(self.differing) else "")
        differ = f"stored and recomputed under the run's own scheme differ in {self.differ} of {self.checked}"
        return [*lines, f"{differ} debates: {named}"]

    @property
    def most_changed(self) -> list[tuple[str, float]]:
        """The ids of the debates with the largest changes, and the changes."""
        return [(id, change) for change, _, id in sorted(self._most, reverse=True)]

    def by(self, *parts: str) -> dict[tuple[str | int, ...], dict[str, float]]:
        """Return shares of turns and means of ``SUMS``, grouped by ``parts`` of ``PLACES``, in order."""
        found: dict[tuple[str | int, ...], Counter[str]] = {}
        streams = (*PARTS, CRITIC)
        for cell in sorted(self.cells, key=lambda cell: (streams.index(cell[0]), *cell[1:])):
            key = tuple(cell[PLACES.index(part)] for part in parts)
            found.setdefault(key, Counter()).update(self.cells[cell])
        return {
            key: {"turns": counts["turns"], **{name: counts[name] / counts["turns"] for name in SUMS}}
            for key, counts in found.items()
        }

    def facts(self) -> dict[str, object]:
        """Return all figures as plain values."""
        names = ("debates", "rounds", "changed", "checked", "differ", "not_finite")
        streams, cells = (
            [dict(zip(places, key, strict=True)) | figures for key, figures in self.by(*places).items()]
            for places in (PLACES[:1], PLACES)
        )
        return {name: getattr(self, name) for name in names} | {
            "first_differing": self.differing,
            "most_changed": [{"id": id, "change": change} for id, change in self.most_changed],
            "streams": streams,
            "cells": cells,
        }


def replay_name(overrides: Iterable[str], asked: Mapping[str, object]) -> str:
    """Return the name of a replay's folder: its overrides, shortened, and a checksum of the request.

    >>> replay_name(["rewards.truth_weight=0.3", 'rewards.peer="copeland"'], {"filter": ""})
    'rewards.truth_weight=0.3,rewards.peer=copeland-d70137e7'
    """
    text = re.sub(r"[^\w.,=-]+", "", ",".join(overrides), flags=re.ASCII)[:80].lstrip(".-")
    mark = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
    return f"{text or 'own'}-{mark}"


def refuse_another(folder: Path, asked: Mapping[str, object]) -> None:
    """Raise ValueError if a folder contains files other than a replay, or a replay of another request."""
    known = {FACTS, DEBATES, _FRESH, f".{FACTS}.new"}
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set[str]()
    held: object = None
    if FACTS in names:
        with suppress(OSError, ValueError):
            facts = read_json(folder / FACTS)
            held = facts.get("asked") if isinstance(facts, dict) else None
    if not names <= known or (FACTS in names and held is None):
        raise ValueError(f"{folder}: is not empty and contains no replay; choose another --out")
    if held is not None and held != json.loads(json.dumps(asked)):
        raise ValueError(f"{folder}: contains another replay; choose another --out")


def write_debates(folder: Path, changes: Iterable[DebateChange]) -> None:
    """Write a line for each debate. The file appears when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / _FRESH
    try:
        fresh.unlink(missing_ok=True)  # a file left by a crash, or a link to another file
        with naming(folder / DEBATES), fresh.open("xb") as file:
            for change in changes:
                file.write(orjson.dumps(line_of(change), option=orjson.OPT_APPEND_NEWLINE))
        fresh.replace(folder / DEBATES)
    finally:
        fresh.unlink(missing_ok=True)


def line_of(change: DebateChange) -> dict[str, object]:
    """Return the line of a debate, in which ``new`` has only the streams that differ from ``old``."""
    names = ("id", "step", "problem", "change", "differs", "personas", "rounds")
    old, new = change.old._asdict(), change.new._asdict()
    return {name: getattr(change, name) for name in names} | {
        "turns": [[turn.agent, turn.round] for turn in change.turns],
        "old": old,
        "new": {
            kind: {name: column for name, column in columns.items() if column != old[kind][name]}
            for kind, columns in new.items()
        },
    }


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the figures. They are written last, so a folder with figures is complete."""
    write_whole(folder / FACTS, facts_json(facts).encode())


def facts_json(facts: Mapping[str, Any]) -> str:
    """Return the figures as JSON, with null for numbers that are not finite."""

    def finite(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: finite(one) for key, one in value.items()}
        return [finite(one) for one in value] if isinstance(value, list) else json_number(value)

    return json.dumps(finite(facts), indent=1, allow_nan=False) + "\n"
