"""Where a run's figures go: metrics.jsonl always, wandb and TensorBoard when asked, and the screen.

All sinks get the same names. A tracker of metrics is anything with ``log`` and ``close``; one of samples,
the turns of the debates that are drawn to be read, anything with ``show`` and ``close``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console

from debate_rl.config import LoggingConfig
from debate_rl.tracking.progress import progress_of
from debate_rl.tracking.step_lines import MetricsLog, Sample, SamplesLog, draw_samples, rewind
from transcripts import Record


class Tracker(Protocol):
    """Takes the metrics of each step."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of one step."""
        ...

    def close(self) -> None:
        """Write what is still held back."""
        ...


class SampleTracker(Protocol):
    """Takes the turns drawn from each step."""

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Take the drawn turns of one step, of which there are some."""
        ...

    def close(self) -> None:
        """Write what is still held back."""
        ...


class Trackers:
    """Hands each step's metrics and drawn turns to every tracker, the files first."""

    def __init__(self, *, sample_share: float = 0.0) -> None:
        self.metrics: list[Tracker] = []
        self.samples: list[SampleTracker] = []
        self._share = sample_share

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step everywhere."""
        for member in self.metrics:
            member.log(step, metrics)

    def show(self, step: int, records: Sequence[Record]) -> None:
        """Show the turns of the share of a step's debates that is drawn."""
        if drawn := draw_samples(records, self._share):
            for member in self.samples:
                member.show(step, drawn)

    def close(self) -> None:
        """Close all; the first error is raised after every member was closed."""
        members = {id(member): member for member in (*self.metrics, *self.samples)}
        with ExitStack() as stack:
            for member in members.values():
                stack.callback(member.close)


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
    """Open every tracker the configuration asks for, and close them on the way out, errors included.

    ``first_step``: the step a resumed run begins with; what was logged from there on is set aside.
    ``settings`` is the resolved configuration, shown beside the charts.
    """
    for name in ("metrics", "samples"):
        rewind(folder / f"{name}.jsonl", first_step)
    trackers = Trackers(sample_share=config.sample_share)
    try:
        trackers.metrics.append(MetricsLog(folder / "metrics.jsonl"))
        if config.sample_share:
            trackers.samples.append(SamplesLog(folder / "samples.jsonl"))
        if config.wandb.project is not None:
            from debate_rl.tracking.charts import WandbTracker

            wandb = WandbTracker(config.wandb, folder, settings or {})
            trackers.metrics.append(wandb)
            trackers.samples.append(wandb)
        if config.tensorboard:
            from debate_rl.tracking.charts import TensorBoardTracker

            trackers.metrics.append(TensorBoardTracker(folder / "tensorboard", first_step))
        bar = progress_of(config.progress, steps, done=first_step, console=console)
        trackers.metrics.extend([bar] if bar else [])
        yield trackers
    finally:
        trackers.close()
