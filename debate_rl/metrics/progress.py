"""Progress on the screen: bars in a terminal, lines in a pipe."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Literal, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from debate_rl.formatting import duration, number, title
from debate_rl.metrics.step_log import step_seconds

SILENT_S, LOOK_S = 30.0, 5.0
"""Seconds of silence in a pipe after which a line says how far a part is, and between two looks."""
Kind: TypeAlias = Literal["auto", "bar", "lines", "none"]
Advance: TypeAlias = Callable[[str, float, int], None]
"""Called with the name of a part, how much of it is done (a broken number for work that is half done), and
how much there is."""


class Pace:
    """How long the rest of a work takes, by the mean wall time of its last ``recent`` units (None: of all).

    ``done``: units that were there at its beginning; None: it began before, and ``reach`` says when.
    ``due``: whether something more comes behind so many units, which takes as long as it did the last time.
    """

    def __init__(
        self,
        total: int,
        done: float | None = None,
        *,
        recent: int | None = None,
        due: Callable[[int], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._recent, self._due, self._clock = total, recent, due, clock
        self._began = self._at = clock()
        self._apart_s = self._last_apart_s = self._last_units = 0.0
        self._marks: deque[tuple[float, float]] = deque(maxlen=recent and recent + 1)
        if done is not None:
            self._marks.append((self._at, done))

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def wait(self, apart_s: float) -> None:
        """Note how long what comes behind some units took."""
        self._last_apart_s = apart_s or self._last_apart_s

    def reach(self, done: float, *, took_s: float = 0.0, apart_s: float = 0.0) -> None:
        """Note how many units are done; the last took ``took_s``, ``apart_s`` of it for what comes behind."""
        self._at = self._clock()
        self.wait(apart_s)
        if not self._marks:
            self._marks.append((self._at - took_s, done - 1))
        self._apart_s += apart_s
        self._last_units = done - self._marks[-1][1]
        if self._recent is None and len(self._marks) > 1:
            self._marks.pop()
        self._marks.append((self._at - self._apart_s, done))

    def left(self) -> float | None:
        """Return about how many seconds are left; None before anything is done.

        Units end together: those under way, as many as ended last, are taken to end now where they are late.
        """
        if not self._marks or self._marks[0][1] == self._marks[-1][1]:
            return None
        (first, before), (last, done) = self._marks[0], self._marks[-1]
        each, units = (last - first) / (done - before), self._total - done
        more = sum(map(self._due, range(int(done) + 1, self._total + 1))) * self._last_apart_s
        on_time = each * units - (self._clock() - self._at)
        return more + max(on_time, each * (units - self._last_units), 0.0)

    def words(self) -> str:
        """Return what is left in words; "" where it is not known."""
        left = self.left()
        return f"about {duration(left)} left" if left else ""


class PartLines:
    """Lines in a pipe: one at least every 30 s while a part lasts, and with ``ends`` one at both its ends."""

    def __init__(
        self, say: Callable[[str], None], *, ends: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say, self._ends, self._clock = say, ends, clock
        self._part, self._done, self._total = "", 0.0, 0
        self._pace, self._said = Pace(0), 0.0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def advance(self, part: str, done: float, total: int) -> None:
        """Note how much of a part is done; another part may begin when it has ended."""
        with self._lock:
            if part != self._part:
                self._part, self._pace = part, Pace(total, done, clock=self._clock)
                self._tell(f"{part} {int(done)}/{total}" if self._ends else "")
            elif done >= total:
                self._tell(f"{part} {total}/{total} in {duration(self._pace.spent)}" if self._ends else "")
            self._pace.reach(done)
            self._done, self._total = done, total
            if done >= total:
                self._part = ""
        if self._thread is None and done < total:
            self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
            self._thread.start()

    def look(self) -> None:
        """Say how far the part is, if nothing was said for so long."""
        with self._lock:
            if self._part and self._clock() - self._said >= SILENT_S:
                so_far = f"{duration(self._pace.spent)} so far"
                words = ", ".join(text for text in (so_far, self._pace.words()) if text)
                self._tell(f"{self._part} {int(self._done)}/{self._total}, {words}")

    def _tell(self, line: str) -> None:
        self._said = self._clock()
        if line:
            self.say(line)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self.look()

    def close(self) -> None:
        """End the thread that looks."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()


class TimeLeft(ProgressColumn):
    """About how long a task takes still, by its field ``pace``."""

    def render(self, task: Task) -> Text:
        """Return the time in words; nothing before the first unit is done."""
        return Text(task.fields["pace"].words(), style="progress.remaining")


class PartBar:
    """A bar in a terminal for each part, until it has ended or for good (``keep``)."""

    def __init__(
        self, console: Console, *, keep: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        name = TextColumn("{task.description}", markup=False)
        columns = name, BarColumn(bar_width=24), MofNCompleteColumn(), TimeLeft()
        self.progress = Progress(*columns, console=console)
        self._keep, self._clock = keep, clock
        self._parts: dict[str, tuple[Pace, TaskID]] = {}
        self.progress.start()

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        _print(self.progress.console, line)

    def add(self, part: str, total: int, done: float, pace: Pace) -> None:
        """Show a bar for a part."""
        id = self.progress.add_task(part, total=total, completed=int(done), pace=pace)
        self._parts[part] = pace, id

    def advance(self, part: str, done: float, total: int) -> None:
        """Note how much of a part is done."""
        if part not in self._parts:
            self.add(part, total, done, Pace(total, done, clock=self._clock))
        pace, id = self._parts[part]
        pace.reach(done)
        self.move(part, done)
        if done >= total and not self._keep:
            self.progress.remove_task(id)
            del self._parts[part]

    def move(self, part: str, done: float) -> None:
        """Move the bar of a part to where it is."""
        self.progress.update(self._parts[part][1], completed=done)

    def close(self) -> None:
        """Leave the bars as they stand."""
        self.progress.stop()


def is_bar(kind: Kind, console: Console) -> bool:
    """Return whether a display is a bar; auto takes it in a terminal."""
    return kind == "bar" or (kind == "auto" and console.is_terminal)


class NoParts:
    """Shows nothing."""

    def say(self, line: str) -> None:
        """Say nothing."""

    def advance(self, part: str, done: float, total: int) -> None:
        """Show nothing."""


@contextmanager
def parts_shown(
    kind: Kind = "auto", console: Console | None = None, *, head: str = "", keep: bool = False
) -> Iterator[PartLines | PartBar | NoParts]:
    """Yield what shows how far the parts of a command are; ``head``: what lines in a pipe begin with."""
    console = console or Console(stderr=True)
    if kind == "none":
        yield NoParts()
        return

    def say(line: str) -> None:
        _print(console, head + line)

    with closing(PartBar(console, keep=keep) if is_bar(kind, console) else PartLines(say)) as parts:
        yield parts


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


HEADLINES = (
    *("accuracy", "winner/accuracy", "reward/peer/std", "judge/accuracy", "format/valid"),
    *("loss", "kl_mean", "eval/sft/loss"),
)
"""Metrics shown beside the step, where a step has them."""
OPTIMIZER = (
    *("loss", "lr", "grad_norm", "grad_clipped", "ratio_mean", "ratio_max", "clip_fraction"),
    *("entropy_mean", "kl_mean", "kl_max", "mismatch_kl", "updates", "skipped_updates", "rows"),
)
"""Metrics of the optimizer, which a verbose run prints below each step."""
HELD_OUT = (
    *("eval/direct/accuracy", "eval/direct/self_consistency", "eval/debate/winner/accuracy"),
    "eval/judge/accuracy",
)
"""Metrics shown after a step with an evaluation."""
EVALUATE = "seconds/evaluate"


def headline(metrics: Mapping[str, float]) -> str:
    """Return the few figures worth a glance.

    >>> headline({"accuracy": 0.5, "loss": -0.0123, "tokens/prompt": 80.0})
    'accuracy 0.500  loss -0.012'
    """
    return _figures(metrics, HEADLINES)


def optimizer_line(metrics: Mapping[str, float]) -> str | None:
    """Return what the optimizer did in a line; None for a step that says nothing of it.

    >>> optimizer_line({"loss": -0.0123, "lr": 1e-5, "accuracy": 0.5})
    '  loss -0.0123  lr 1e-05'
    """
    known = [f"{title(name)} {metrics[name]:.3g}" for name in OPTIMIZER if name in metrics]
    return "  " + "  ".join(known) if known else None


def held_out_line(metrics: Mapping[str, float]) -> str | None:
    """Return the figures of a held-out evaluation in a line; None for a step without one.

    >>> held_out_line({"eval/direct/accuracy": 0.25, "eval/problems": 100.0})
    'held out (100 problems): direct accuracy 0.250'
    """
    if "eval/problems" not in metrics:
        return None
    return f"held out ({metrics['eval/problems']:.0f} problems): {_figures(metrics, HELD_OUT)}"


def _figures(metrics: Mapping[str, float], names: Sequence[str]) -> str:
    return "  ".join(f"{title(name)} {number(metrics[name])}" for name in names if name in metrics)


NOTHING = (
    "nothing can be learned so far: in {} steps no solution was right and no comparison could be read. A "
    "warm start ([warm_start]), easier problems (env.levels) or longer replies (debate.max_tokens) may help"
)
PATIENCE = 3
"""Steps without anything right or readable after which it is said."""
ALL_CUT = (
    "every reply ended at its limit: raise debate.max_tokens, or see in debate inspect why none of them ends"
)


RECENT = 10
"""The time that is left is told by the mean of so many steps."""


class Lines:
    """One plain line for each step with the time that is left, and one where nothing can be learned."""

    def __init__(
        self,
        console: Console,
        steps: int,
        *,
        verbose: bool = False,
        due: Callable[[int], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._steps, self._verbose = console, steps, verbose
        self._empty = 0
        self._cut = False
        self.pace = Pace(steps, recent=RECENT, due=due, clock=clock)
        self._parts = PartLines(self.say, ends=False, clock=clock)

    def advance(self, part: str, done: float, total: int) -> None:
        """Say how far an evaluation is, where that takes long."""
        self._parts.advance(part, done, total)

    def begin(self, figures: Mapping[str, float]) -> None:
        """Print the held-out figures from before the first step."""
        self.pace.wait(figures.get(EVALUATE, 0.0))
        shown = (headline(figures), held_out_line(figures))
        self.say("  ".join(("before the first step", *(text for text in shown if text))))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Print the line, with the time of the step, evaluation aside, and what is left of all steps."""
        took, evaluated = step_seconds(metrics), metrics.get(EVALUATE, 0.0)
        self.pace.reach(step + 1, took_s=took + evaluated, apart_s=evaluated)
        times = duration(took) + (f", {self.pace.words()}" if step + 1 < self._steps else "")
        text = f"step {step} ({step + 1} of {self._steps} done)  {headline(metrics)}  {times}"
        more = optimizer_line(metrics) if self._verbose else None
        notes = (self._nothing(metrics), self._all_cut(metrics))
        for line in (text, more, held_out_line(metrics), *notes):
            if line is not None:
                self.say(line)

    def say(self, line: str) -> None:
        """Print a line as it is."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _nothing(self, metrics: Mapping[str, float]) -> str | None:
        """Return the line for the last of the first steps without anything to learn from."""
        empty = metrics.get("accuracy") == 0 and not metrics.get("format/valid")
        self._empty = self._empty + 1 if empty else 0
        return NOTHING.format(PATIENCE) if self._empty == PATIENCE else None

    def _all_cut(self, metrics: Mapping[str, float]) -> str | None:
        """Return the line for the first step in which no reply came to its end."""
        if metrics.get("truncated") != 1 or self._cut:
            return None
        self._cut = True
        return ALL_CUT

    def close(self) -> None:
        """Nothing is held back."""
        self._parts.close()


class Bar:
    """The lines, and below them a bar with the time that is left."""

    def __init__(
        self,
        console: Console,
        steps: int,
        done: int,
        *,
        verbose: bool = False,
        due: Callable[[int], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = PartBar(console, clock=clock)
        self._lines = Lines(self._parts.progress.console, steps, verbose=verbose, due=due, clock=clock)
        self._parts.add("steps", steps, done, self._lines.pace)

    def advance(self, part: str, done: float, total: int) -> None:
        """Show how far an evaluation is, in a bar of its own."""
        self._parts.advance(part, done, total)

    def begin(self, figures: Mapping[str, float]) -> None:
        """Print the held-out figures from before the first step."""
        self._lines.begin(figures)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._lines.say(line)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Move the bar: steps count from 0, so ``step + 1`` are done."""
        self._lines.log(step, metrics)
        self._parts.move("steps", step + 1)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._parts.close()


def progress_of(
    kind: Kind,
    steps: int,
    *,
    done: int = 0,
    console: Console | None = None,
    verbose: bool = False,
    due: Callable[[int], bool] = lambda _: False,
) -> Lines | Bar | None:
    """Return the display; auto takes the bar in a terminal. ``verbose``: with what the optimizer did.

    ``due``: whether an evaluation follows so many steps.
    """
    console = console or Console(stderr=True)
    if kind == "none":
        return None
    if is_bar(kind, console):
        return Bar(console, steps, done, verbose=verbose, due=due)
    return Lines(console, steps, verbose=verbose, due=due)
