"""What a person sees of a long part of a command: a bar in a terminal, lines at most 30 s apart in a pipe."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Literal, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from debate_rl.formatting import duration

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
