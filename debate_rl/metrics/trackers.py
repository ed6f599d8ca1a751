"""Sends a run's metrics to metrics.jsonl, to the screen, and to W&B and TensorBoard if configured.

The x-axis of charts is the number of steps done: step 0 is at 1, and the evaluation before it at 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partialmethod
from pathlib import Path
from typing import Any

from rich.console import Console

from debate.settings import install_hint
from debate_rl.config import LoggingConfig
from debate_rl.metrics.progress import step_display
from debate_rl.metrics.step_log import SAMPLE, MetricsLog, Sample, SamplesLog, draw_samples, rewind
from transcripts import Record
from transcripts.errors import TranscriptWriteError

PERF = ("seconds/", "idle/", "memory/", "tokens_per_second")
"""Prefixes of metrics about the speed and resource use of a run."""
DONE = "steps_done"
BEST = ("accuracy", "self_consistency", "majority")
"""Suffixes of held-out figures whose maximum is also in the W&B summary."""


def chart_name(name: str) -> str:
    """Return the name of a metric in charts, which begins with its group: train, eval or perf.

    >>> [chart_name(name) for name in ("loss", "judge/accuracy", "eval/direct/accuracy", "seconds/learn")]
    ['train/loss', 'train/judge/accuracy', 'eval/direct/accuracy', 'perf/seconds/learn']
    """
    if name.startswith("eval/"):
        return name
    return f"perf/{name}" if name.startswith(PERF) else f"train/{name}"


class WandbTracker:
    """Logs to Weights & Biases. The turns sampled in a step become a table ``samples``.

    A resumed run continues the same W&B run and skips the steps that W&B already has.
    """

    def __init__(self, project: str, folder: Path, settings: Mapping[str, object]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError(
                f"logging.wandb is set, but wandb is not installed: {install_hint('train')}"
            ) from error
        mode = os.environ.get("WANDB_MODE") or "online"
        try:
            self._run = wandb.init(
                project=project,
                name=os.environ.get("WANDB_NAME") or folder.name,
                config=dict(settings),
                dir=folder,
                mode=mode,  # type: ignore[arg-type]
                id=_wandb_id(folder),
                resume=None if mode == "offline" else "allow",
                settings=wandb.Settings(console="off"),  # otherwise W&B stores every frame of a progress bar
            )
        except (wandb.Error, OSError) as error:
            raise ValueError(
                f"logging.wandb={project}: {error}; set WANDB_API_KEY, or WANDB_MODE=offline"
            ) from error
        self._table = wandb.Table
        self._next = self._run.step if mode == "online" else 0
        self._turns: list[Sample] = []
        self._known: set[str] = set()
        for group in ("train/*", "eval/*", "perf/*"):
            self._run.define_metric(group, step_metric=DONE)

    def begin(self, figures: Mapping[str, float]) -> None:
        """Log the held-out figures from before the first step."""
        self.log(-1, figures)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step at once, so that a killed process loses no row. Skip a step that W&B already has."""
        figures, done = {chart_name(name): value for name, value in metrics.items()}, step + 1
        turns, self._turns = self._turns, []
        if done < self._next:
            return
        for name in figures.keys() - self._known:
            if name.startswith("eval/") and name.endswith(BEST):
                self._run.define_metric(name, step_metric=DONE, summary="max,last")
        self._known |= figures.keys()
        rows: Any = [[turn[name] for name in SAMPLE] for turn in turns]
        table = {"samples": self._table([*SAMPLE], rows)} if rows else {}
        self._run.log({DONE: done, **figures, **table}, step=done, commit=True)

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Keep the sampled turns until their step is logged."""
        self._turns += samples

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


def _wandb_id(folder: Path) -> str:
    """Return the W&B id of the run, drawn once and stored in the folder so that a resumed run has it."""
    path = folder / "wandb_id"
    try:
        if not path.exists():
            path.write_text(os.urandom(4).hex(), encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


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
        for name, value in metrics.items():
            self._writer.add_scalar(chart_name(name), value, step + 1)
        self._writer.flush()


@dataclass(frozen=True)
class Trackers:
    """Passes the figures of a run to every tracker in ``sinks`` that has the method called, files first.

    ``begin`` takes the held-out figures from before the first step, ``log`` the metrics of a step, ``show``
    the records of a step to sample turns from, ``say`` a line for the screen, and ``advance`` the progress of
    an evaluation.
    """

    sinks: list[Any] = field(default_factory=list)

    def _each(self, method: str, *arguments: object) -> None:
        for sink in self.sinks:
            if hasattr(sink, method):
                getattr(sink, method)(*arguments)

    begin = partialmethod(_each, "begin")
    log = partialmethod(_each, "log")
    say = partialmethod(_each, "say")
    advance = partialmethod(_each, "advance")

    def show(self, step: int, records: Sequence[Record]) -> None:
        """Draw a sample of the debates of a step and show their turns."""
        if drawn := draw_samples(records):
            self._each("show", step, drawn)


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
            add(WandbTracker(config.wandb, folder, settings or {}))
        if config.tensorboard:
            add(TensorBoardTracker(folder / "tensorboard", first_step))
        if shown := step_display(config.progress, steps, done=first_step, console=console):
            add(shown)
        yield trackers
