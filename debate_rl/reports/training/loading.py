"""One run as the training report sees it: whatever of it there is, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from debate.files import read_plain
from debate_rl.alarms import Curves, Reading, readings
from debate_rl.alarms.curves import joined
from debate_rl.alarms.metrics_file import finite, parsed, read_metrics
from debate_rl.alarms.settings import group_size, setting
from debate_rl.alarms.stored import read_stored
from debate_rl.metrics.held_out import HeldOut, read_held_out
from debate_rl.reports.document import Behind
from debate_rl.reports.training.debates import Sample
from debate_rl.reports.training.files import read_config, read_json

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
    read: int = 0
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
        return setting(self.settings, key, kind)

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
    info, evaluations = read_json(path / "run.json"), _read_evaluations(path / "evaluations")
    run = Run(path, name or path.name, curves, settings, info, evaluations=evaluations)
    run.notes = notes + stored.notes
    if stored.steps is not None:
        run.sample, run.debates, run.stored, run.read = sample, stored.debates, stored.steps, stored.read
    run.held_out = read_held_out(path, run.notes)
    run.readings = readings(run.curves)
    return run


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs, each with a name of its own."""
    names = [path.resolve().name for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    shown = [f"{n} ({path})" if n in twice else n for n, path in zip(names, paths, strict=True)]
    return [load_run(path, name) for path, name in zip(paths, shown, strict=True)]


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
