"""Where a run's figures go."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from debate.settings import install_hint
from debate_rl.config import LoggingConfig
from debate_rl.config.logging import WandbConfig
from debate_rl.metrics.held_out import NAME, figures_at
from debate_rl.metrics.progress import Advance, progress_of
from debate_rl.metrics.step_log import (
    SAMPLE,
    MetricsLog,
    Sample,
    SamplesLog,
    draw_samples,
    read_metrics,
    read_rows,
    rewind,
)
from transcripts import Record
from transcripts.errors import TranscriptWriteError

PERF = ("seconds/", "idle/", "memory/", "tokens_per_second")
"""How metrics begin that say how fast a run is and what it takes."""
DONE = "steps_done"
BEST = ("accuracy", "self_consistency", "majority")
"""How held-out figures end whose highest value a summary has beside the last one."""
TABLE_EVERY = 10
"""Steps whose drawn turns are one table: each table is a file of its own, and is never changed."""


def chart_name(name: str) -> str:
    """Return what charts call a metric: each is in the group train, eval or perf.

    >>> [chart_name(name) for name in ("loss", "judge/accuracy", "eval/direct/accuracy", "seconds/learn")]
    ['train/loss', 'train/judge/accuracy', 'eval/direct/accuracy', 'perf/seconds/learn']
    """
    if name.startswith("eval/"):
        return name
    return f"perf/{name}" if name.startswith(PERF) else f"train/{name}"


def _charted(metrics: Mapping[str, float]) -> dict[str, float]:
    return {chart_name(name): value for name, value in metrics.items()}


class WandbTracker:
    """Logs to Weights & Biases; the turns that are drawn in ``TABLE_EVERY`` steps become a table ``samples``.

    A run that resumes sends again what its folder holds and W&B does not, as the last rows before a kill, and
    nothing that W&B has. Offline that is not known, and all is sent. ``steps``: those of the whole run.
    """

    def __init__(
        self, config: WandbConfig, folder: Path, settings: Mapping[str, object], steps: int = 0
    ) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError(
                f"logging.wandb.project is set, but wandb is not installed: {install_hint('train')}"
            ) from error
        mode = os.environ.get("WANDB_MODE") or "online"
        try:
            self._run = wandb.init(
                project=config.project,
                name=config.name or folder.name,
                config=dict(settings),
                dir=folder,
                mode=mode,  # type: ignore[arg-type]
                id=_wandb_id(folder),
                resume=None if mode == "offline" else "allow",
                settings=wandb.Settings(console="off"),  # it would keep every frame of a live bar
            )
        except (wandb.Error, OSError) as error:
            raise ValueError(
                f"logging.wandb.project={config.project}: {error}; set WANDB_API_KEY, or WANDB_MODE=offline"
            ) from error
        self._table, self._steps = wandb.Table, steps
        self._next = self._run.step if mode == "online" else 0
        self._turns: list[Sample] = []
        self._known: set[str] = set()
        for group in ("train/*", "eval/*", "perf/*"):
            self._run.define_metric(group, step_metric=DONE)
        done = 0
        for done, figures in _kept(folder):
            self._send(done, figures)
        if done % TABLE_EVERY:
            self._turns = [turn for turn in _turns(folder) if turn["step"] >= done - done % TABLE_EVERY]

    def begin(self, figures: Mapping[str, float]) -> None:
        """Log the held-out figures from before the first step."""
        self._send(0, _charted(figures))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step."""
        self._send(step + 1, _charted(metrics))

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Keep the drawn turns for the next table."""
        self._turns += samples

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()

    def _send(self, done: int, figures: Mapping[str, float]) -> None:
        """Send the figures of so many steps at once, so that a kill loses no row; none that W&B has."""
        ends = done % TABLE_EVERY == 0 or done == self._steps
        turns, self._turns = (self._turns, []) if ends else ([], self._turns)
        if done < self._next:
            return
        for name in figures.keys() - self._known:
            if name.startswith("eval/") and name.endswith(BEST):
                self._run.define_metric(name, step_metric=DONE, summary="max,last")
        self._known |= figures.keys()
        rows: Any = [[turn[name] for name in SAMPLE] for turn in turns]
        table = {"samples": self._table([*SAMPLE], rows)} if rows else {}
        self._run.log({DONE: done, **figures, **table}, step=done, commit=True)


def _turns(folder: Path) -> list[Sample]:
    """Return the turns that were drawn in a run's steps."""
    path = folder / "samples.jsonl"
    return read_rows(path) if path.exists() else []


def _kept(folder: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield what a run's folder holds of each row, by the number of steps done, with the time it had then."""
    if before := figures_at(folder / NAME, 0):
        yield 0, before
    path = folder / "metrics.jsonl"
    for row in read_metrics(path) if path.exists() else []:
        known = {name: value for name, value in row.items() if value is not None}
        step, time = known.pop("step"), known.pop("time", None)
        yield int(step) + 1, _charted(known) | ({} if time is None else {"_timestamp": time})


def _wandb_id(folder: Path) -> str:
    """Return the run's id, drawn once and kept in the folder: a resumed run goes on in the same chart."""
    path = folder / "wandb_id"
    try:
        if not path.exists():
            path.write_text(os.urandom(4).hex(), encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


class TensorBoardTracker:
    """Writes event files; ``tensorboard --logdir RUN`` shows them.

    ``first_step``: a resumed run's; TensorBoard drops what was logged from there on.
    """

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

    def begin(self, figures: Mapping[str, float]) -> None:
        """Write the held-out figures from before the first step."""
        self.log(-1, figures)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one step."""
        for name, value in _charted(metrics).items():
            self._writer.add_scalar(name, value, step + 1)
        self._writer.flush()

    def close(self) -> None:
        """Bring the events to the disk."""
        self._writer.close()


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
    trackers = Trackers(config.sample_share)
    with ExitStack() as stack:  # closes every tracker; an error of one is raised after all were closed
        metrics = stack.enter_context(MetricsLog(folder / "metrics.jsonl"))
        trackers.loggers.append(metrics.log)
        if config.sample_share:
            samples = stack.enter_context(SamplesLog(folder / "samples.jsonl"))
            trackers.showers.append(samples.show)
        if config.wandb.project is not None:
            from debate_rl.metrics.trackers import WandbTracker

            wandb = stack.enter_context(closing(WandbTracker(config.wandb, folder, settings or {}, steps)))
            trackers.loggers.append(wandb.log)
            trackers.showers.append(wandb.show)
            trackers.beginners.append(wandb.begin)
        if config.tensorboard:
            from debate_rl.metrics.trackers import TensorBoardTracker

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
