"""The data of one run for the training report: figures and their changes, and notes on missing parts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from debate import Problem
from debate.files import read_plain, read_toml
from debate_rl.alarms import Curves, Reading, readings
from debate_rl.alarms.curves import STREAMS, finite, joined, parsed, read_metrics
from debate_rl.alarms.settings import flat, group_size, setting
from debate_rl.alarms.stored import read_stored
from debate_rl.metrics import intervals
from debate_rl.metrics.held_out import Gain, HeldOut, gain, read_held_out
from debate_rl.metrics.intervals import Bounded, Numbers, apart, thirds
from debate_rl.reports.document import Behind, Rows, Table, bounded, table_of
from debate_rl.reports.findings import LEVEL, chance
from debate_rl.reports.rows import Study
from envs.causes.rules import CauseName, cause_of
from transcripts import Record
from transcripts.causes import wrong_replies

EVALUATIONS = 200
"""Maximum number of evaluation folders that are read."""
MOST_WRONG = 20
"""Maximum number of debates per step that contribute a wrong solution to the causes."""
MOST_TEXTS, LONGEST_TEXT = 20, 1000
NO_METRICS = "no metrics.jsonl: figures are from the stored debates"
TEST_TIME = "env.decontaminate", "never"
"""The key and the value of test-time learning."""
"""The setting that declares training on held-out problems."""
LEAST = 12
"""Minimum number of values for judging a change: four in each third."""
BLOCKS = 6


class WrongSolution(NamedTuple):
    """A wrong solution: its debate, problem, answer, cause and evidence."""

    step: int
    debate: str
    problem: Problem
    answer: str | None
    cause: CauseName
    quote: str


class Sample:
    """A sample of debates from evenly spaced steps. ``rewards``: by stream, (step, value) of each turn.

    ``study``: the judgment rows. ``texts``: by problem id, (step, text in round 0), at most 20. ``wrong``:
    wrong solutions with their causes, one per debate, chosen by its seed.
    """

    def __init__(self) -> None:
        self.study = Study()
        self.rewards: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.wrong: list[WrongSolution] = []
        self._asked = Counter[int]()

    def look(self, step: int, id: str, record: Record) -> None:
        """Add a debate."""
        self.study.add(record)
        problem = record.debate.problem
        for turn in record.debate.turns:
            if turn.id.round == 0 and len(self.texts[problem.id]) < MOST_TEXTS:
                self.texts[problem.id].append((step, turn.completion.text[:LONGEST_TEXT]))
        for stream in STREAMS if record.rewards else ():
            values = (value for row in getattr(record.rewards, stream) for value in row)
            self.rewards[stream] += [(step, float(v)) for v in values if v is not None and isfinite(v)]
        wrong = list(wrong_replies(record)) if self._asked[step] < MOST_WRONG else []
        if wrong:
            turn, reply = Random(record.debate.seed).choice(wrong)
            cause = cause_of(reply)
            quote = cause.where.of(reply.solution) if cause.where else ""
            self.wrong.append(WrongSolution(step, id, problem, turn.parsed.answer, cause.name, quote))
            self._asked[step] += 1


@dataclass(frozen=True, slots=True)
class Change:
    """Means of a figure over each third of its steps, and last minus first third with its interval.

    The bounds are infinite if there are fewer than 12 values. ``p``: the p-value for no change.
    """

    early: float
    middle: float
    late: float
    low: float
    high: float
    n: int
    p: float = 1.0

    @property
    def value(self) -> float:
        """The last third minus the first."""
        return self.late - self.early

    @property
    def gain(self) -> Bounded:
        """The last third minus the first, with its interval."""
        return self.value, self.low, self.high

    @property
    def direction(self) -> str:
        """The change as "up", "down" (p-value as for findings), "flat" or "too few steps"."""
        if self.n < LEAST:
            return "too few steps"
        return "flat" if self.p > LEVEL else "up" if self.value > 0 else "down"


@np.errstate(over="ignore", invalid="ignore")  # a foreign file may contain huge numbers
def change(values: Numbers) -> Change | None:
    """Return the change of ``values``, which are in the order of steps, or None without values.

    The interval is Welch's, on means of up to 6 blocks of neighbouring steps in each third.
    """
    if not len(values):
        return None
    early, middle, late = thirds(values)
    found = None
    if len(values) >= LEAST:
        after, before = (
            np.array([part.mean() for part in np.array_split(third, min(BLOCKS, len(third)))])
            for third in (late, early)
        )
        order = np.arange(len(after) + len(before))
        found = intervals.difference(np.concatenate([after, before]), order < len(after), order)
    low, high, p = (found.low, found.high, chance(found)) if found else (-inf, inf, 1.0)
    return Change(float(early.mean()), float(middle.mean()), float(late.mean()), low, high, len(values), p)


@dataclass(slots=True)
class Run:
    """A run: figures by step, settings by dotted key, run.json, a sample of debates, detector readings.

    ``index``: the run's number in a report, from 1. ``stored``: the lowest and highest step with debates.
    ``debates``, ``read``: number of stored debates and of debates read. ``held_out``: evaluations by step
    that can be compared by problem. ``evaluations``: figures by name of the separate evaluations, by label.
    ``notes``: missing or damaged parts.
    """

    path: Path
    name: str
    curves: Curves
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    index: int = 1
    sample: Sample | None = None
    debates: int = 0
    read: int = 0
    stored: tuple[int, int] | None = None
    evaluations: Mapping[str, Mapping[str, Bounded]] = field(default_factory=dict[str, Mapping[str, Bounded]])
    held_out: Sequence[HeldOut] = ()
    notes: list[str] = field(default_factory=list[str])
    readings: Sequence[Reading] = ()

    def behind(self, filter: str = "") -> Behind | None:
        """Return the link to this run's debates, or None if none are stored."""
        return Behind(str(self.path), filter) if self.debates else None

    def setting(self, key: str, kind: type = object) -> Any:
        """Return a setting if it has this type, else None. The type float also accepts integers."""
        return setting(self.settings, key, kind)

    def table(self, key: str, rows: Rows, *more: str, **words: object) -> Table:
        """Return a table of tables.toml about this run."""
        return table_of(key, rows, *more, at=self.index, run=self.name, **words)

    @property
    def thirds(self) -> list[tuple[str, int, int]]:
        """(name, first step, last step) of each third of the stored steps; one part with fewer than 3."""
        if self.stored is None:
            return []
        low, high = self.stored
        if high - low < 2:
            return [("all", low, high)]
        parts = zip(("early", "middle", "late"), thirds(range(low, high + 1)), strict=True)
        return [(name, part[0], part[-1]) for name, part in parts]

    def change(self, name: str) -> Change | None:
        """Return how a figure changed, or None if unknown."""
        return change(self.curves.of(name)[1])

    def evaluated(self, name: str) -> list[tuple[int, Bounded]]:
        """Return (steps, (value, low, high)) of each held-out evaluation of a metric.

        Evaluations that can be compared by problem are preferred to those in metrics.jsonl.
        """
        kept = [(one.step, bounded(one.estimate(name.removeprefix("eval/")))) for one in self.held_out]
        if any(found for _, found in kept):
            return [(step, found) for step, found in kept if found is not None]
        steps, values = self.curves.of(name)
        known = zip(values.tolist(), *(ends.tolist() for ends in self.curves.bounds(name)), strict=True)
        return list(zip((steps + 1).tolist(), known, strict=True))

    def paired(self, name: str) -> Gain | None:
        """Return the gain over the problems with a value in the first and last evaluation, or None."""
        if len(self.held_out) < 2:
            return None
        return gain(self.held_out[0], self.held_out[-1], name.removeprefix("eval/"))

    def gained(self, name: str) -> Bounded | None:
        """Return the last evaluation minus the first, paired if possible, or None with only one."""
        evaluated = self.evaluated(name)
        if len(evaluated) < 2:
            return None
        found = self.paired(name)
        return bounded(found.difference) if found else apart(evaluated[-1][1], evaluated[0][1])


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, each with a unique name."""
    names = [path.resolve().name for path in paths]
    shown = [f"{n} ({p})" if names.count(n) > 1 else n for n, p in zip(names, paths, strict=True)]
    return [load_run(path, name, at) for at, (path, name) in enumerate(zip(paths, shown, strict=True), 1)]


def load_run(path: Path, name: str = "", index: int = 1) -> Run:
    """Return the data of a run without changing it. Missing, damaged or foreign parts become notes."""
    metrics = path / "metrics.jsonl"
    curves, notes = read_metrics(metrics) if metrics.is_file() else (Curves(), list[str]())
    notes = notes or ([] if len(curves.steps) else [NO_METRICS])
    settings, wrong = read_config(path / "config.toml")
    notes += wrong
    if settings.get(TEST_TIME[0]) == TEST_TIME[1]:
        notes.append("test-time learning: the run trains on its held-out problems")
    sample = Sample()
    stored = read_stored(path, sample.look)
    agents, debates = setting(settings, "debate.num_agents", int), group_size(settings)
    curves = joined([curves, stored.curves], agents * debates if agents and debates else None)
    info = _read_json(path / "run.json")
    run = Run(path, name or path.name, curves, settings, info if isinstance(info, dict) else {}, index)
    run.evaluations = _read_evaluations(sorted((path / "evaluations").glob("*/figures.json"))[:EVALUATIONS])
    run.notes = notes + stored.notes
    if stored.steps is not None:
        run.sample, run.debates, run.read, run.stored = sample, stored.debates, stored.read, stored.steps
    run.held_out = read_held_out(path, run.notes)
    run.readings = readings(run.curves)
    return run


def read_config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a config.toml by dotted key, with lists unchanged, and the errors."""
    if not path.is_file():
        return {}, [f"no {path.name}: settings are unknown"]
    try:
        return flat(read_toml(path)), []
    except OSError as error:
        return {}, [f"{path.name}: {error.strerror or 'cannot be read'}"]
    except ValueError as error:
        return {}, [f"{path.name} is not TOML: {str(error)[:120]}"]


def _read_json(path: Path) -> Any:
    try:
        return parsed(read_plain(path))
    except OSError:
        return None


def _read_evaluations(paths: Iterable[Path]) -> dict[str, dict[str, Bounded]]:
    figures: dict[str, dict[str, Bounded]] = defaultdict(dict)
    for path in paths:
        rows = _read_json(path)
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict) or not isinstance(row.get("name"), str):
                continue
            found = [row.get(key) for key in ("value", "low", "high")]
            known = [finite(one) for one in found if type(one) in (int, float)]
            evaluation = row.get("evaluation")
            label = f"{path.parent.name} ({evaluation})" if isinstance(evaluation, str) else path.parent.name
            if len(known) == 3 and None not in known:
                figures[label][row["name"]] = (known[0], known[1], known[2])  # type: ignore[assignment]
    return dict(figures)
