"""One run as the training report sees it: whatever of it there is, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from debate.files import read_plain
from debate_rl.metrics.held_out import HeldOut, read_held_out
from debate_rl.reports.document import Behind
from debate_rl.reports.training.curves import Curves, joined, no_curves
from debate_rl.reports.training.debates import WORST, Sample, figures_of_index, read_sample
from debate_rl.reports.training.detectors import Reading, readings
from debate_rl.reports.training.files import finite, parsed, read_config, read_json, read_metrics
from transcripts import RunStore, TranscriptError

EVALUATIONS = 200
"""The most folders of evaluations that are read."""


@dataclass(slots=True)
class Run:
    """A run: figures by step, settings by dotted key, run.json, a sample of debates, and what detectors say.

    ``stored``: the steps whose debates are there, lowest and highest. ``held_out``: evaluations by step that
    can be compared by problem; ``evaluations``: those made apart from training, by label, figures by name as
    (value, low, high). ``notes``: what is missing or damaged.
    """

    path: Path
    name: str
    curves: Curves
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sample: Sample | None = None
    debates: int = 0
    stored: tuple[int, int] | None = None
    evaluations: Mapping[str, Mapping[str, tuple[float, float, float]]] = field(
        default_factory=dict[str, Mapping[str, tuple[float, float, float]]]
    )
    held_out: Sequence[HeldOut] = ()
    notes: list[str] = field(default_factory=list[str])
    readings: Sequence[Reading] = ()

    def behind(self, filter: str = "") -> Behind | None:
        """Return the link to this run's debates; None where none are stored."""
        return Behind(str(self.path), filter) if self.debates else None

    def setting(self, key: str, kind: type = object) -> Any:
        """Return a setting of this kind (float takes whole numbers too); None where there is none."""
        value = self.settings.get(key)
        if type(value) is int and abs(value) > 1 << 53:  # no count of ours, and too large for a float
            return None
        if kind is float and type(value) is int:
            return value
        return value if isinstance(value, kind) and (kind is object or not isinstance(value, bool)) else None

    @property
    def debates_per_problem(self) -> int | None:
        """How many debates each problem has, at least; None where it is not known."""
        chunk: int | None = self.setting("train.adaptive.chunk", int)
        return chunk or self.setting("train.debates_per_problem", int)

    @property
    def steps(self) -> int:
        """How many steps have any figure."""
        return len(self.curves.steps)


NO_METRICS = "no metrics.jsonl: figures are those of the stored debates"


TEST_TIME = "env.test_time_learning"
"""The setting that declares that held-out problems are trained on."""


def load_run(path: Path, name: str = "") -> Run:
    """Return what there is of a run; what is missing, damaged or foreign becomes a note. Changes nothing."""
    notes: list[str] = []
    metrics = path / "metrics.jsonl"
    curves, wrong = read_metrics(metrics) if metrics.is_file() else (no_curves(), [])
    notes += wrong or ([] if len(curves.steps) else [NO_METRICS])
    settings, wrong = read_config(path / "config.toml")
    notes += wrong
    if settings.get(TEST_TIME) is True:
        notes.append("test-time learning: the held-out figures are of problems that are trained on")
    run = Run(path, name or path.name, curves, settings, read_json(path / "run.json"), notes=notes)
    indexed, sampled = _read_debates(run)
    agents, debates = run.setting("debate.num_agents", int), run.debates_per_problem
    group = agents * debates if agents and debates else None
    run.curves = joined([curves, indexed, sampled], group)
    run.evaluations = _read_evaluations(path / "evaluations")
    run.held_out = read_held_out(path, run.notes)
    run.readings = readings(run.curves)
    return run


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, each with a name of its own."""
    names = [path.resolve().name for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    shown = [f"{n} ({path})" if n in twice else n for n, path in zip(names, paths, strict=True)]
    return [load_run(path, name) for path, name in zip(paths, shown, strict=True)]


def _read_debates(run: Run) -> tuple[Curves, Curves]:
    try:
        with RunStore.open(run.path) as store:
            indexed, run.debates = figures_of_index(store)
            if not run.debates:
                run.notes.append("no stored debates: what is counted from them is left out")
                return no_curves(), no_curves()
            run.stored = (int(indexed.steps[0]), int(indexed.steps[-1]))
            run.sample = read_sample(store, indexed.steps)
            if store.damage:
                run.notes.append(f"{len(store.damage)} damaged lines in the transcripts: {store.damage[0]}")
    except (TranscriptError, OSError, *WORST) as error:
        run.notes.append(f"stored debates are left out: {' '.join(str(error).split())[:200]}")
        return no_curves(), no_curves()
    if run.sample.skipped:
        run.notes.append(f"{run.sample.skipped} records of the sample could not be read")
    return indexed, run.sample.curves


def _read_evaluations(folder: Path) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Return the figures of the evaluations that were made afterwards, by their label."""
    figures: dict[str, dict[str, tuple[float, float, float]]] = {}
    for path in sorted(folder.glob("*/figures.json"))[:EVALUATIONS] if folder.is_dir() else ():
        try:
            rows = parsed(read_plain(path))
        except OSError:
            continue
        for row in cast("list[Any]", rows) if isinstance(rows, list) else ():
            _take(figures, row, path.parent.name)
    return figures


def _take(figures: dict[str, dict[str, tuple[float, float, float]]], row: Any, folder: str) -> None:
    if not isinstance(row, dict):
        return
    cells = cast("dict[str, Any]", row)
    found_numbers = [cells.get(key) for key in ("value", "low", "high")]
    numbers = [finite(cell) if type(cell) in (int, float) else None for cell in found_numbers]
    if None in numbers or not isinstance(cells.get("name"), str):
        return
    label = f"{folder} ({cells['evaluation']})" if isinstance(cells.get("evaluation"), str) else folder
    value, low, high = (number for number in numbers if number is not None)
    figures.setdefault(label, {})[cells["name"]] = (value, low, high)
