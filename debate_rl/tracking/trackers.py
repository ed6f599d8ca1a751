"""Where a run's figures go: metrics.jsonl always, wandb and TensorBoard when configured, and the screen.

Charts get the names of ``chart_name``. Samples are the turns of the debates that are drawn to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from debate_rl.config import LoggingConfig
from debate_rl.tracking.judge_pairs import set_aside_judged
from debate_rl.tracking.parts import Advance
from debate_rl.tracking.progress import progress_of
from debate_rl.tracking.step_lines import MetricsLog, Sample, SamplesLog, draw_samples, rewind
from transcripts import Record


@dataclass(frozen=True)
class Trackers:
    """Hands each step's metrics to ``loggers`` and the turns drawn from it to ``showers``, files first.

    ``beginners`` get the held-out figures from before the first step, which are of no step's line.
    """

    sample_share: float = 0.0
    beginners: list[Callable[[Mapping[str, float]], None]] = field(default_factory=list)
    loggers: list[Callable[[int, Mapping[str, float]], None]] = field(default_factory=list)
    showers: list[Callable[[int, Sequence[Sample]], None]] = field(default_factory=list)
    sayers: list[Callable[[str], None]] = field(default_factory=list)
    watchers: list[Advance] = field(default_factory=list)

    def advance(self, part: str, done: float, total: int) -> None:
        """Show how much of an evaluation is done."""
        for advance in self.watchers:
            advance(part, done, total)

    def say(self, line: str) -> None:
        """Show a line on the screen, where one is shown."""
        for say in self.sayers:
            say(line)

    def begin(self, figures: Mapping[str, float]) -> None:
        """Tell the held-out figures from before the first step."""
        for begin in self.beginners:
            begin(figures)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step everywhere."""
        for log in self.loggers:
            log(step, metrics)

    def show(self, step: int, records: Sequence[Record]) -> None:
        """Show the turns of the share of a step's debates that is drawn."""
        if drawn := draw_samples(records, self.sample_share):
            for show in self.showers:
                show(step, drawn)


@contextmanager
def open_trackers(
    folder: Path,
    config: LoggingConfig,
    *,
    steps: int,
    first_step: int = 0,
    settings: Mapping[str, object] | None = None,
    console: Console | None = None,
    due: Callable[[int], bool] = lambda _: False,
) -> Iterator[Trackers]:
    """Open every tracker the configuration asks for, and close them on the way out, errors included.

    ``first_step``: the step a resumed run begins with; what was logged from there on is set aside.
    What was evaluated or judged at that step stays: it is of the weights that the run goes on with.
    ``settings`` is the resolved configuration, shown beside the charts. ``due``: whether so many steps are
    followed by an evaluation.
    """
    for name in ("metrics", "samples", "alarms", "likelihood", "held_out"):
        step = first_step + (name == "held_out")
        rewind(folder / f"{name}.jsonl", step)
    set_aside_judged(folder, first_step)
    trackers = Trackers(config.sample_share)
    with ExitStack() as stack:  # closes every tracker; an error of one is raised after all were closed
        metrics = stack.enter_context(MetricsLog(folder / "metrics.jsonl"))
        trackers.loggers.append(metrics.log)
        if config.sample_share:
            samples = stack.enter_context(SamplesLog(folder / "samples.jsonl"))
            trackers.showers.append(samples.show)
        if config.wandb.project is not None:
            from debate_rl.tracking.charts import WandbTracker

            wandb = stack.enter_context(closing(WandbTracker(config.wandb, folder, settings or {}, steps)))
            trackers.loggers.append(wandb.log)
            trackers.showers.append(wandb.show)
            trackers.beginners.append(wandb.begin)
        if config.tensorboard:
            from debate_rl.tracking.charts import TensorBoardTracker

            board = stack.enter_context(closing(TensorBoardTracker(folder / "tensorboard", first_step)))
            trackers.loggers.append(board.log)
            trackers.beginners.append(board.begin)
        shown = progress_of(
            config.progress, steps, done=first_step, console=console, verbose=config.verbose, due=due
        )
        if shown is not None:
            trackers.loggers.append(stack.enter_context(closing(shown)).log)
            trackers.beginners.append(shown.begin)
            trackers.sayers.append(shown.say)
            trackers.watchers.append(shown.advance)
        yield trackers
