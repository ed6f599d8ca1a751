"""The answers to the eight diagnostic questions, from what a run left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal

import numpy as np

from debate_rl.formatting import short
from debate_rl.reports.cells import between
from debate_rl.reports.document import Tone
from debate_rl.reports.training.debate_alarms import SOLVED
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import change, changed_outputs, judge_figures

Word = Literal["good", "warn", "bad", "unknown"]
SOURCE = "debate training analysis"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in numbers, and its verdict."""

    word: Word
    text: str

    @property
    def tone(self) -> Tone:
        """How the answer is to be taken."""
        return "" if self.word == "unknown" else self.word


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``rule`` is its threshold, ``filter`` finds examples."""

    name: str
    text: str
    rule: str
    source: str
    filter: str
    answer: Callable[[Run], Answer]


UNKNOWN = "the run does not say"


def worst(*words: Word) -> Word:
    """Return the worst of the words; of "unknown" alone "unknown".

    >>> worst("good", "unknown", "warn"), worst("unknown")
    ('warn', 'unknown')
    """
    for word in ("bad", "warn", "good"):
        if word in words:
            return word
    return "unknown"


def graded(value: float | None, *, good: float, bad: float) -> Word:
    """Return the word of a value between two thresholds, whichever of them is higher; None is unknown.

    >>> graded(0.6, good=0.5, bad=0.7), graded(0.1, good=0.5, bad=0.7), graded(0.5, good=0.7, bad=0.55)
    ('warn', 'good', 'bad')
    """
    if value is None:
        return "unknown"
    if good <= bad:
        return "good" if value <= good else "bad" if value > bad else "warn"
    return "good" if value >= good else "bad" if value < bad else "warn"


def early(run: Run, name: str, width: int = 5) -> float | None:
    """Return the mean of the first values of a figure."""
    values = run.curves.of(name)[1]
    return float(values[:width].mean()) if len(values) else None


def late(run: Run, name: str, width: int = 10) -> float | None:
    """Return the mean of the last values of a figure."""
    values = run.curves.of(name)[1]
    return float(values[-width:].mean()) if len(values) else None


def solved(run: Run) -> bool:
    """Are over .9 of the last answers right? Then solutions may well be alike."""
    return (late(run, "accuracy") or 0.0) > SOLVED


def whole(run: Run, name: str) -> float | None:
    """Return the sum of a figure over all steps."""
    values = run.curves.of(name)[1]
    return float(values.sum()) if len(values) else None


def median(run: Run, name: str) -> float | None:
    """Return the median of a figure over all steps."""
    values = run.curves.of(name)[1]
    return float(np.median(values)) if len(values) else None


def named(*pairs: tuple[str, float | None]) -> str:
    """Return the known numbers with their names; what the run does not say where there are none.

    >>> named(("votes", 12.0), ("ties", None))
    'votes 12'
    """
    known = [f"{name} {short(value)}" for name, value in pairs if value is not None]
    return ", ".join(known) or UNKNOWN


def base_accuracy(run: Run) -> Answer:
    """Q1: what the model could do before training."""
    before = [figures for label, figures in run.evaluations.items() if label.endswith("@start)")]
    found = [figures["direct/accuracy"] for figures in before if "direct/accuracy" in figures]
    if found:
        value, low, high = min(found, key=lambda one: one[2] - one[1])
        where = f"evaluated before training: {short(value)}{between(low, high)}"
    else:
        value = early(run, "accuracy/round_0")
        where = f"accuracy, round 0, of the first 5 training steps: {short(value)}"
    if value is None:
        return Answer("unknown", UNKNOWN)
    if value > 0.95:
        return Answer("warn", f"{where}; nearly all is solved already, and little is left to learn")
    return Answer(graded(value, good=0.05, bad=0.01), where)


def valid_comparisons(run: Run) -> Answer:
    """Q2: whether votes are cast and can be read."""
    cast, valid = whole(run, "votes/cast"), whole(run, "votes/valid")
    parsed = late(run, "judge/parsed_share")
    if cast is None and valid is None:
        return Answer("unknown", UNKNOWN)
    if not valid:
        return Answer("bad", f"no valid vote in {run.steps} steps")
    invalid = (cast - valid) / cast if cast else None
    missing = None if parsed is None else 1 - parsed
    words = (
        graded(invalid, good=0.5, bad=0.7),
        graded(missing, good=0.2, bad=0.5),
        "good" if valid else "bad",
    )
    numbers = named(("valid votes", valid), ("invalid share", invalid), ("due and missing, late", missing))
    return Answer(worst(*words), numbers)


def diversity(run: Run) -> Answer:
    """Q3: whether the samples of a problem differ."""
    distinct, agreed = late(run, "completions/distinct"), late(run, "agreement")
    wrong = late(run, "wrong_consensus")
    group = run.curves.group
    same = 1.5 / group if group and group > 1 else 0.1
    words = (
        graded(distinct, good=max(0.3, same), bad=same),
        graded(wrong, good=0.2, bad=0.5),
    )
    text = named(
        ("distinct completions, late", distinct),
        ("agreement", agreed),
        ("wrong consensus", wrong),
    )
    if solved(run):
        return Answer("good", f"{text}; most answers are right, and those may be alike")
    return Answer(worst(*words), text)


def votes_and_truth(run: Run) -> Answer:
    """Q4: whether votes follow truth."""
    found = judge_figures(run)
    accuracy, correlation = found.accuracy, found.correlation
    linked: Word = "unknown" if correlation is None else "good" if correlation >= 0.3 else "warn"
    words = (graded(accuracy, good=0.7, bad=0.55), linked)
    text = named(
        ("judge accuracy", accuracy),
        ("correlation of being the winner and being right", correlation),
        ("winner lift", late(run, "winner/lift")),
    )
    if found.bounds:
        text += f"; accuracy in the sample{found.bounds}"
    cast, ties = whole(run, "votes/valid"), whole(run, "votes/ties")
    tied = ties / cast if cast and ties else 0.0
    if accuracy is not None and accuracy + tied < 0.45:
        text += "; votes are against truth"
    return Answer(worst(*words), text)


def gradients(run: Run) -> Answer:
    """Q5: whether there is a signal, and not too much of it."""
    spreads = {s: median(run, f"reward/{s}/std") for s in ("truth", "peer", "judge")}
    if all(value is None for value in spreads.values()) and run.sample:
        spreads = {s: _spread(run, s) for s in spreads}
    words: list[Word] = [_spread_word(value) for name, value in spreads.items() if name != "judge"]
    norm = median(run, "grad_norm")
    flow: Word = "unknown" if norm is None else "good" if norm > 0 else "bad"
    silent = late(run, "advantage/zero_variance_share/truth")
    known: list[Word] = [word for word in words if word != "unknown"]
    best = worst(*known)
    if best == "bad" and "good" in known and not any((spreads[s] or 0.0) > 5 for s in ("truth", "peer")):
        best = "warn"
    text = named(
        *((f"{s} reward std", value) for s, value in spreads.items()),
        ("gradient's norm", norm),
        ("groups without variance in truth, late", silent),
    )
    return Answer(worst(best, flow, graded(silent, good=0.6, bad=0.95)), text)


def _spread_word(value: float | None) -> Word:
    if value is None:
        return "unknown"
    return "bad" if value > 5 else "good" if value > 0.1 else "warn" if value > 0 else "bad"


def _spread(run: Run, stream: str) -> float | None:
    values = [value for _, value in run.sample.rewards.get(stream, [])] if run.sample else []
    mean = sum(values) / len(values) if values else 0.0
    return hypot(*(value - mean for value in values)) / sqrt(len(values)) if values else None


def loss_and_progress(run: Run) -> Answer:
    """Q6: whether anything gets better; the loss itself says little."""
    loss = change(run.curves.of("loss")[1])
    gain = change(run.curves.of("accuracy")[1]) or change(run.curves.of("reward/truth/mean")[1])
    if gain is None:
        return Answer(
            "unknown", UNKNOWN if loss is None else f"loss {short(loss.early)} to {short(loss.late)}"
        )
    bounds = between(*_rounded(gain.low, gain.high))
    moved = f"accuracy {short(gain.early)} to {short(gain.late)}, difference{bounds}"
    moved = moved if bounds else moved.removesuffix(", difference")
    if loss is not None:
        moved += f"; loss {short(loss.early)} to {short(loss.late)} ({loss.direction})"
    words: dict[str, Word] = {"up": "good", "flat": "warn", "down": "bad", "too few steps": "unknown"}
    few = f"; {gain.n} steps are too few to tell" if gain.direction == "too few steps" else ""
    return Answer(words[gain.direction], moved + few)


def _rounded(low: float, high: float) -> tuple[float, float]:
    return round(low, 3), round(high, 3)


def updating(run: Run) -> Answer:
    """Q7: whether the policy changes at all."""
    updates, kl = whole(run, "updates"), late(run, "kl_mean")
    outputs = changed_outputs(run)
    words: tuple[Word, ...] = (
        "unknown" if updates is None else "good" if updates > 0 else "bad",
        "unknown" if kl is None else "good" if kl > 1e-6 else "bad",
        "unknown" if outputs is None else "good" if outputs.moved else "warn",
    )
    text = named(("updates", updates), ("KL to the reference, late", kl))
    if outputs is not None:
        text += f"; {outputs.text}"
    return Answer(worst(*words), text)


def overfitting(run: Run) -> Answer:
    """Q8: whether what is gained in training is gained on held-out problems."""
    if run.setting("held_out.path") and run.setting("held_out.path") == run.setting("env.path"):
        same = run.setting("held_out.split") == run.setting("env.split")
        if same:
            return Answer("warn", "trained and evaluated on the same problems: test-time learning")
    fired = [one for one in run.readings if one.detector.name == "held_out" and one.alarm]
    for one in fired:
        assert one.alarm is not None
        return Answer("bad", f"{one.alarm.why} (seen at step {one.alarm.step})")
    trained = change(run.curves.of("accuracy/round_0")[1])
    steps, values = run.curves.of("eval/direct/accuracy")
    if not len(values):
        return Answer("unknown", "no held-out evaluation during training")
    at_end = late(run, "accuracy/round_0")
    text = named(("accuracy, round 0, late", at_end), ("direct accuracy, held out", float(values[-1])))
    if len(values) < 2 or trained is None or trained.direction == "too few steps":
        return Answer("unknown", f"{text}; too few evaluations or steps to compare gains")
    gained = float(values[-1] - values[0])
    text += f"; gained {short(trained.value)} in training, and {short(gained)} held out "
    text += f"since step {steps[0]}"
    memorised = trained.direction == "up" and trained.value > 0.05 and gained < trained.value / 4
    return Answer("warn" if memorised else "good", text)
