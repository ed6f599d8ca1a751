"""Progress on the screen: bars in a terminal; in a pipe, lines for steps and for parts that take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Literal, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from debate_rl.formatting import duration, number, title
from debate_rl.metrics.step_log import step_seconds

SILENT_S = 30.0
"""In a pipe, seconds without output after which a line reports the progress of a part."""
RECENT = 10
"""Number of recent steps whose mean time predicts the time left."""
PATIENCE = 3
"""Number of consecutive steps without a right answer or a readable comparison that causes a warning."""
HEADLINES = (
    *("accuracy", "winner/accuracy", "reward/peer/std", "judge/accuracy", "format/valid"),
    *("loss", "kl_mean", "eval/sft/loss"),
)
"""Metrics shown with each step that has them."""
OPTIMIZER = (
    *("loss", "lr", "grad_norm", "grad_clipped", "ratio_mean", "ratio_max", "clip_fraction"),
    *("entropy_mean", "kl_mean", "kl_max", "mismatch_kl", "updates", "skipped_updates", "rows"),
)
"""Metrics of the optimizer. A verbose run prints them below each step."""
HELD_OUT = ("direct/accuracy", "direct/self_consistency", "debate/winner/accuracy", "judge/accuracy")
"""Held-out metrics shown after a step with an evaluation."""
NOTHING = (
    "no learning signal: in {} steps no solution was right and no comparison could be read; try a warm start "
    "([warm_start]), easier problems (env.levels) or longer replies (debate.max_tokens)"
)
ALL_CUT = (
    "every reply was cut at its token limit: raise debate.max_tokens, or see in debate inspect why none ends"
)
Kind: TypeAlias = Literal["auto", "bar", "lines", "verbose", "none"]
Clock: TypeAlias = Callable[[], float]


class Pace:
    """Predicts the remaining time of a task from the mean wall time of its last ``recent`` units.

    If ``recent`` is None, the mean is over all units. ``done``: the number of units done at the start, or
    None if it is unknown until the first ``reach``.
    """

    def __init__(
        self,
        total: int,
        done: float | None = None,
        *,
        recent: int | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._total, self._clock, self._began = total, clock, clock()
        self._marks = [] if done is None else [(self._began, done)]
        self._recent = recent

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def reach(self, done: float, *, took_s: float = 0.0) -> None:
        """Set the number of units done.

        ``took_s``: the seconds of the last unit, used if the number was unknown before.
        """
        now = self._clock()
        self._marks = [*(self._marks or [(now - took_s, done - 1)]), (now, done)]
        self._marks = self._marks[-self._recent - 1 :] if self._recent else [self._marks[0], self._marks[-1]]

    def words(self) -> str:
        """Return the time left in words, or "" before one unit or a twentieth of the task is done.

        A unit that takes longer than the mean is assumed to end now.
        """
        if not self._marks:
            return ""
        (first, before), (last, done) = self._marks[0], self._marks[-1]
        if done - before < min(1.0, self._total / 20) or done == before:
            return ""
        each, units = (last - first) / (done - before), self._total - done
        left = max(each * units - (self._clock() - last), each * (units - 1), 0.0)
        return f"about {duration(left)} left" if left else ""


class PartLines:
    """Progress as lines in a pipe: at most one line per 30 s while a part advances.

    With ``ends``, each part also has a line at its start and at its end.
    """

    def __init__(
        self, say: Callable[[str], None], *, ends: bool = True, clock: Clock = time.monotonic
    ) -> None:
        self.say, self._ends, self._clock = say, ends, clock
        self._part, self._pace, self._said = "", Pace(0), clock()

    def advance(self, part: str, done: float, total: int) -> None:
        """Set the progress of a part. The next part may begin once this part has ended."""
        begins = part != self._part
        if begins:
            self._part, self._pace = part, Pace(total, done, clock=self._clock)
        self._pace.reach(done)
        line = f"{part} {int(done)}/{total}"
        if begins or done >= total:
            spent = "" if begins else f" in {duration(self._pace.spent)}"
            self._tell(f"{line}{spent}" if self._ends else "")
        elif self._clock() - self._said >= SILENT_S:
            left = self._pace.words()
            self._tell(f"{line}, {duration(self._pace.spent)} so far{', ' if left else ''}{left}")
        if done >= total:
            self._part = ""

    def _tell(self, line: str) -> None:
        self._said = self._clock()
        if line:
            self.say(line)

    def close(self) -> None:
        """Do nothing: no line is buffered."""


class _TimeLeft(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Return the time left of a task, from its field ``pace``."""
        return Text(task.fields["pace"].words(), style="progress.remaining")


class PartBars:
    """Shows a bar in a terminal for each part, and removes the bar at the end of the part unless ``keep``."""

    def __init__(self, console: Console, *, keep: bool = False, clock: Clock = time.monotonic) -> None:
        name = TextColumn("{task.description}", markup=False)
        self.progress = Progress(
            name, BarColumn(bar_width=24), MofNCompleteColumn(), _TimeLeft(), console=console
        )
        self._keep, self._clock = keep, clock
        self._parts: dict[str, tuple[Pace, TaskID]] = {}
        self.progress.start()

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        _print(self.progress.console, line)

    def add(self, part: str, total: int, done: float, pace: Pace) -> TaskID:
        """Show a bar for a part."""
        return self.progress.add_task(part, total=total, completed=int(done), pace=pace)

    def advance(self, part: str, done: float, total: int) -> None:
        """Set the progress of a part."""
        if part not in self._parts:
            pace = Pace(total, done, clock=self._clock)
            self._parts[part] = pace, self.add(part, total, done, pace)
        pace, bar = self._parts[part]
        pace.reach(done)
        self.progress.update(bar, completed=done)
        if done >= total and not self._keep:
            self.progress.remove_task(self._parts.pop(part)[1])

    def close(self) -> None:
        """Stop updating the bars, and leave them on the screen."""
        self.progress.stop()


@contextmanager
def parts_shown(
    kind: Kind = "auto", console: Console | None = None, *, head: str = "", keep: bool = False
) -> Iterator[PartLines | PartBars]:
    """Yield a display for the progress of a command's parts. In a pipe, ``head`` begins each line."""
    console = console or Console(stderr=True)

    def say(line: str) -> None:
        if kind != "none":
            _print(console, head + line)

    with closing(PartBars(console, keep=keep) if _is_bar(kind, console) else PartLines(say)) as parts:
        yield parts


class StepDisplay:
    """Prints one line per step with the time left; in a terminal, a bar is below the lines.

    With ``verbose``, the metrics of the optimizer follow each line. A further line warns if there is no
    learning signal.
    """

    def __init__(
        self,
        console: Console,
        steps: int,
        *,
        bar: bool,
        done: int = 0,
        verbose: bool = False,
        clock: Clock = time.monotonic,
    ) -> None:
        self._steps, self._verbose = steps, verbose
        self._empty, self._cut = 0, False
        self._pace = Pace(steps, recent=RECENT, clock=clock)
        self._bars = PartBars(console, clock=clock) if bar else None
        self._parts = self._bars or PartLines(lambda line: _print(console, line), ends=False, clock=clock)
        self.say, self.advance, self.close = self._parts.say, self._parts.advance, self._parts.close
        self._bar = self._bars.add("steps", steps, done, self._pace) if self._bars else None

    def begin(self, figures: Mapping[str, float]) -> None:
        """Print the held-out figures from before the first step."""
        shown = (headline(figures), held_out_line(figures))
        self.say("  ".join(("before the first step", *(text for text in shown if text))))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Print a step's figures, its time without evaluation, and the time left for all steps."""
        took = step_seconds(metrics)
        self._pace.reach(step + 1, took_s=took + metrics.get("seconds/evaluate", 0.0))
        left = f", {self._pace.words()}" if step + 1 < self._steps else ""
        self.say(
            f"step {step} ({step + 1} of {self._steps} done)  {headline(metrics)}  {duration(took)}{left}"
        )
        for line in (*self._more(metrics), held_out_line(metrics)):
            if line is not None:
                self.say(line)
        if self._bars and self._bar is not None:
            self._bars.progress.update(self._bar, completed=step + 1)

    def _more(self, metrics: Mapping[str, float]) -> Iterator[str]:
        optimizer = [f"{title(name)} {metrics[name]:.3g}" for name in OPTIMIZER if name in metrics]
        if self._verbose and optimizer:
            yield "  " + "  ".join(optimizer)
        empty = metrics.get("accuracy") == 0 and not metrics.get("format/valid")
        self._empty = self._empty + 1 if empty else 0
        if self._empty == PATIENCE:
            yield NOTHING.format(PATIENCE)
        if metrics.get("truncated") == 1 and not self._cut:
            self._cut = True
            yield ALL_CUT


def step_display(
    kind: Kind, steps: int, *, done: int = 0, console: Console | None = None
) -> StepDisplay | None:
    """Return the display of a run's steps, or None for the kind "none".

    The kinds "auto" and "verbose" show a bar if the output is a terminal.
    """
    console = console or Console(stderr=True)
    if kind == "none":
        return None
    return StepDisplay(console, steps, bar=_is_bar(kind, console), done=done, verbose=kind == "verbose")


def headline(metrics: Mapping[str, float]) -> str:
    """Return a step's main figures as text.

    >>> headline({"accuracy": 0.5, "loss": -0.0123, "tokens/prompt": 80.0})
    'accuracy 0.500  loss -0.012'
    """
    return _figures(metrics, HEADLINES)


def held_out_line(metrics: Mapping[str, float]) -> str | None:
    """Return the figures of a held-out evaluation in a line, or None for a step without an evaluation.

    >>> held_out_line({"eval/direct/accuracy": 0.25, "eval/problems": 100.0})
    'held out (100 problems): direct accuracy 0.250'
    """
    if "eval/problems" not in metrics:
        return None
    figures = _figures(metrics, [f"eval/{name}" for name in HELD_OUT])
    return f"held out ({metrics['eval/problems']:.0f} problems): {figures}"


def _figures(metrics: Mapping[str, float], names: Sequence[str]) -> str:
    return "  ".join(f"{title(name)} {number(metrics[name])}" for name in names if name in metrics)


def _is_bar(kind: Kind, console: Console) -> bool:
    return kind == "bar" or (kind in ("auto", "verbose") and console.is_terminal)


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
