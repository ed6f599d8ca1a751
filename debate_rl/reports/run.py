"""One run as the training report sees it: whatever of it there is, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from debate import Problem
from debate.files import read_plain, read_toml
from debate_rl.alarms import Curves, Reading, readings
from debate_rl.alarms.curves import joined
from debate_rl.alarms.metrics_file import STREAMS, finite, parsed, read_metrics
from debate_rl.alarms.settings import flat, group_size, setting
from debate_rl.alarms.stored import read_stored
from debate_rl.metrics.held_out import HeldOut, read_held_out
from debate_rl.metrics.intervals import Bounded, thirds
from debate_rl.reports.document import Behind
from debate_rl.reports.rows import Study
from envs.causes.rules import CauseName, cause_of
from transcripts import Record
from transcripts.causes import wrong_replies

EVALUATIONS = 200
"""The most folders of evaluations that are read."""
MOST_WRONG = 20
"""Debates of a step of which one wrong solution is asked for its cause."""
NO_METRICS = "no metrics.jsonl: figures are those of the stored debates"
TEST_TIME = "env.test_time_learning"
"""The setting that declares that held-out problems are trained on."""


class WrongSolution(NamedTuple):
    """A wrong solution: in which debate, to what problem, its answer, why it is wrong, and what shows it."""

    step: int
    debate: str
    problem: Problem
    answer: str | None
    cause: CauseName
    quote: str


class Sample:
    """What was read of some debates, evenly over the steps.

    ``rewards`` by stream: (step, value) of each turn; ``study`` the judgment rows; ``texts`` by problem id:
    (step, text in round 0), 20 at most; ``wrong``: wrong solutions with their causes, one of a debate, drawn
    by its seed.
    """

    def __init__(self) -> None:
        self.study = Study()
        self.rewards: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.wrong: list[WrongSolution] = []
        self._asked = Counter[int]()

    def look(self, step: int, id: str, record: Record) -> None:
        """Take what a debate says."""
        self.study.add(record)
        problem = record.debate.problem
        for turn in record.debate.turns:
            if turn.id.round == 0 and len(self.texts[problem.id]) < 20:
                self.texts[problem.id].append((step, turn.completion.text[:1000]))
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


@dataclass(slots=True)
class Run:
    """A run: figures by step, settings by dotted key, run.json, a sample of debates, and what detectors say.

    ``stored``: the steps whose debates are there, lowest and highest; ``debates`` are stored, ``read`` of
    them were read. ``held_out``: evaluations by step that can be compared by problem; ``evaluations``: those
    made apart from training, by label, figures by name. ``notes``: what is missing or damaged.
    """

    path: Path
    name: str
    curves: Curves
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sample: Sample | None = None
    debates: int = 0
    read: int = 0
    stored: tuple[int, int] | None = None
    evaluations: Mapping[str, Mapping[str, Bounded]] = field(default_factory=dict[str, Mapping[str, Bounded]])
    held_out: Sequence[HeldOut] = ()
    notes: list[str] = field(default_factory=list[str])
    readings: Sequence[Reading] = ()

    def behind(self, filter: str = "") -> Behind | None:
        """Return the link to this run's debates; None where none are stored."""
        return Behind(str(self.path), filter) if self.debates else None

    def setting(self, key: str, kind: type = object) -> Any:
        """Return a setting of this kind (float takes whole numbers too); None where there is none."""
        return setting(self.settings, key, kind)

    @property
    def thirds(self) -> list[tuple[str, int, int]]:
        """(name, first step, last step) of each third of the stored steps; fewer than 3 steps are one."""
        if self.stored is None:
            return []
        low, high = self.stored
        if high - low < 2:
            return [("all", low, high)]
        names = ("early", "middle", "late")
        parts = thirds(range(low, high + 1))
        return [(name, part[0], part[-1]) for name, part in zip(names, parts, strict=True)]


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, each with a name of its own."""
    names = [path.resolve().name for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    shown = [f"{n} ({path})" if n in twice else n for n, path in zip(names, paths, strict=True)]
    return [load_run(path, name) for path, name in zip(paths, shown, strict=True)]


def load_run(path: Path, name: str = "") -> Run:
    """Return what there is of a run; what is missing, damaged or foreign becomes a note. Changes nothing."""
    notes: list[str] = []
    metrics = path / "metrics.jsonl"
    curves, wrong = read_metrics(metrics) if metrics.is_file() else (Curves(), [])
    notes += wrong or ([] if len(curves.steps) else [NO_METRICS])
    settings, wrong = read_config(path / "config.toml")
    notes += wrong
    if settings.get(TEST_TIME) is True:
        notes.append("test-time learning: the held-out figures are of problems that are trained on")
    sample = Sample()
    stored = read_stored(path, sample.look)
    agents, debates = setting(settings, "debate.num_agents", int), group_size(settings)
    curves = joined([curves, stored.curves], agents * debates if agents and debates else None)
    info = _read_json(path / "run.json")
    run = Run(path, name or path.name, curves, settings, info if isinstance(info, dict) else {})
    run.evaluations = _read_evaluations(path / "evaluations")
    run.notes = notes + stored.notes
    if stored.steps is not None:
        run.sample, run.debates, run.read, run.stored = sample, stored.debates, stored.read, stored.steps
    run.held_out = read_held_out(path, run.notes)
    run.readings = readings(run.curves)
    return run


def read_config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a config.toml by dotted key, lists as they are, and what was wrong."""
    if not path.is_file():
        return {}, [f"no {path.name}: settings are not known"]
    try:
        return flat(read_toml(path)), []
    except OSError as error:
        return {}, [f"{path.name}: {error.strerror or 'cannot be read'}"]
    except ValueError as error:
        return {}, [f"{path.name} is not TOML: {str(error)[:120]}"]


def _read_json(path: Path) -> Any:
    """Return what a file of JSON says; None where there is none."""
    try:
        return parsed(read_plain(path))
    except OSError:
        return None


def _read_evaluations(folder: Path) -> dict[str, dict[str, Bounded]]:
    """Return the figures of the evaluations that were made afterwards, by their label."""
    figures: dict[str, dict[str, Bounded]] = defaultdict(dict)
    for path in sorted(folder.glob("*/figures.json"))[:EVALUATIONS] if folder.is_dir() else ():
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
