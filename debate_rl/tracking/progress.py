"""What a person sees while a run trains: one line a step, in a terminal above a live bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from debate_rl.formatting import duration, number, title
from debate_rl.tracking.parts import Kind, Pace, PartBar, PartLines, is_bar
from debate_rl.tracking.step_lines import step_seconds

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
