"""Sends a run's metrics to metrics.jsonl, to the screen, and to W&B and TensorBoard if configured.

The x-axis of charts is the number of steps done: step 0 is at 1, and the evaluation before it at 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partialmethod
from pathlib import Path
from typing import Any

from rich.console import Console

from debate.settings import install_hint
from debate_rl.config import LoggingConfig
from debate_rl.metrics.chart_names import charted
from debate_rl.metrics.group_table import group_table
from debate_rl.metrics.held_out import evaluated_first
from debate_rl.metrics.progress import step_display
from debate_rl.metrics.step_log import MetricsLog, SamplesLog, draw_debates, read_metrics, rewind, samples_of
from debate_rl.metrics.wandb_tracker import WandbTracker
from transcripts import Record
from transcripts.errors import TranscriptWriteError


class TensorBoardTracker:
    """Writes event files for ``tensorboard --logdir RUN``. Old events from ``first_step`` on are dropped."""

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError(
                f"logging.tensorboard is set, but tensorboard is not installed: {install_hint('tensorboard')}"
            ) from error
        try:
            self._writer = SummaryWriter(str(folder), purge_step=first_step + 1)
        except OSError as error:
            raise TranscriptWriteError.of(error, folder) from error
        self.close = self._writer.close

    def begin(self, figures: Mapping[str, float]) -> None:
        """Write the held-out figures from before the first step."""
        self.log(-1, figures)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one step."""
        for name, value in charted(metrics).items():
            self._writer.add_scalar(name, value, step + 1)
        self._writer.flush()

    def alarm(self, step: int, title: str, text: str, *, ends: bool) -> None:
        """Write an alarm as a text."""
        self._writer.add_text("alarms", f"{title}: {text}", step + 1)
        self._writer.flush()


@dataclass(frozen=True)
class Trackers:
    """Passes the figures of a run to every tracker in ``sinks`` that has the method called, files first.

    ``begin`` takes the held-out figures from before the first step, ``log`` the metrics of a step, ``show``
    the records of a step to sample debates from, ``alarm`` a title, a text and whether the alarm ends the
    run, ``say`` a line for the screen, and ``advance`` the progress of an evaluation.
    """

    sinks: list[Any] = field(default_factory=list)

    def _each(self, method: str, *arguments: object, **more: object) -> None:
        for sink in self.sinks:
            if hasattr(sink, method):
                getattr(sink, method)(*arguments, **more)

    begin = partialmethod(_each, "begin")
    log = partialmethod(_each, "log")
    alarm = partialmethod(_each, "alarm")
    say = partialmethod(_each, "say")
    advance = partialmethod(_each, "advance")

    def show(self, step: int, records: Sequence[Record]) -> None:
        """Draw some debates of a step. Show their turns, and their groups as a table."""
        if chosen := draw_debates(records):
            self._each("show", step, [row for index in chosen for row in samples_of(records[index], index)])
            self._each("groups", step, group_table(records, chosen))


@contextmanager
def open_trackers(
    folder: Path,
    config: LoggingConfig,
    *,
    steps: int,
    first_step: int = 0,
    settings: Mapping[str, object] | None = None,
    console: Console | None = None,
) -> Iterator[Trackers]:
    """Open every configured tracker, and close all of them at the end, also after an error.

    ``first_step``: the step at which a resumed run begins. Lines of this step and later steps are moved to
    other files, except evaluations at this step, because the run resumes with their weights.
    ``settings``: shown with the charts.
    """
    for name in ("metrics", "samples", "alarms", "likelihood", "held_out"):
        rewind(folder / f"{name}.jsonl", first_step + (name == "held_out"))
    trackers = Trackers()
    with ExitStack() as stack:  # an error in closing a tracker is raised after all are closed

        def add(sink: Any) -> None:
            trackers.sinks.append(stack.enter_context(closing(sink)))

        add(MetricsLog(folder / "metrics.jsonl"))
        add(SamplesLog(folder / "samples.jsonl"))
        if config.wandb is not None:
            add(tracker := WandbTracker(config.wandb, folder, settings or {}))
            _log_again(tracker, folder)
        if config.tensorboard:
            add(TensorBoardTracker(folder / "tensorboard", first_step))
        if shown := step_display(config.progress, steps, done=first_step, console=console):
            add(shown)
        yield trackers


def _log_again(tracker: WandbTracker, folder: Path) -> None:
    """Log everything that the run's files have. The tracker skips what it already has."""
    if figures := evaluated_first(folder / "held_out.jsonl"):
        tracker.begin(figures)
    path = folder / "metrics.jsonl"
    for row in read_metrics(path) if path.exists() else ():
        step, _ = row.pop("step"), row.pop("time", None)
        if step is not None:
            tracker.log(int(step), {name: value for name, value in row.items() if value is not None})
