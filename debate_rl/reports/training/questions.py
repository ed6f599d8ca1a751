"""The eight diagnostic questions of the debate training analysis, each answered from what a run left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from debate_rl.alarms.settings import DEBATE
from debate_rl.formatting import short
from debate_rl.reports.cells import bounds_text
from debate_rl.reports.document import Tone
from debate_rl.reports.training.finals import evaluations, gained
from debate_rl.reports.training.loading import TEST_TIME, Run
from debate_rl.reports.training.measures import change, changed_outputs, judge_figures

Word = Literal["good", "warn", "bad", "unknown"]


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


QUESTIONS: list[Question] = []
"""In the order of the analysis."""
Respond = Callable[[Run], Answer]


def question(name: str, *, rule: str, source: str, filter: str) -> Callable[[Respond], Respond]:
    """Return a decorator that adds a function to the questions; its docstring is the question's text."""

    def add(answer: Respond) -> Respond:
        QUESTIONS.append(Question(name, answer.__doc__ or "", rule, source, filter, answer))
        return answer

    return add


UNKNOWN = "the run does not say"
DIRECT = "eval/direct/accuracy"
LEAST_VOTES = 100
"""Votes on decidable pairs below which nothing is said of votes against truth."""


def worst(*words: Word) -> Word:
    """Return the worst of the words; of "unknown" alone "unknown".

    >>> worst("good", "unknown", "warn"), worst("unknown")
    ('warn', 'unknown')
    """
    for word in ("bad", "warn", "good"):
        if word in words:
            return word
    return "unknown"


def rated(value: float | None, *, good: float, bad: float) -> Word:
    """Return the word of a value between two thresholds, whichever of them is higher; None is unknown.

    >>> rated(0.6, good=0.5, bad=0.7), rated(0.1, good=0.5, bad=0.7), rated(0.5, good=0.7, bad=0.55)
    ('warn', 'good', 'bad')
    """
    if value is None:
        return "unknown"
    if good <= bad:
        return "good" if value <= good else "bad" if value > bad else "warn"
    return "good" if value >= good else "bad" if value < bad else "warn"


def listed(*pairs: tuple[str, float | None]) -> str:
    """Return the known numbers with their names; what the run does not say where there are none.

    >>> listed(("votes", 12.0), ("ties", None))
    'votes 12'
    """
    known = [f"{name} {short(value)}" for name, value in pairs if value is not None]
    return ", ".join(known) or UNKNOWN


@question(
    "Q1",
    rule="good from .05, bad below .01; above .95 there is little to learn",
    source=f"{DEBATE}, 2.1: base accuracy of 5%",
    filter="step:0..4 accuracy.round_0:0",
)
def base_accuracy(run: Run) -> Answer:
    """What can the model do before training?"""
    before = [figures for label, figures in run.evaluations.items() if label.endswith("@start)")]
    accuracies = [figures["direct/accuracy"] for figures in before if "direct/accuracy" in figures]
    if accuracies:
        value, low, high = min(accuracies, key=lambda bounded: bounded[2] - bounded[1])
        where = f"evaluated before training: {short(value)}{bounds_text(low, high)}"
    else:
        value = run.curves.beginning("accuracy/round_0")
        where = f"accuracy, round 0, of the first 5 training steps: {short(value)}"
    if value is None:
        return Answer("unknown", UNKNOWN)
    if value > 0.95:
        return Answer("warn", f"{where}; nearly all is solved already, and little is left to learn")
    return Answer(rated(value, good=0.05, bad=0.01), where)


@question(
    "Q2",
    rule="votes above 0; invalid below .5 (bad above .7); due and missing below .2 (bad above .5)",
    source=f"{DEBATE}, 2.1",
    filter="votes:0 OR malformed:>0",
)
def valid_comparisons(run: Run) -> Answer:
    """Are comparisons made, and valid?"""
    cast, valid = run.curves.total("votes/cast"), run.curves.total("votes/valid")
    parsed = run.curves.late("judge/parsed_share")
    if cast is None and valid is None:
        return Answer("unknown", UNKNOWN)
    if not valid:
        return Answer("bad", f"no valid vote in {run.steps} steps")
    invalid = (cast - valid) / cast if cast else None
    missing = None if parsed is None else 1 - parsed
    words = rated(invalid, good=0.5, bad=0.7), rated(missing, good=0.2, bad=0.5), "good"
    numbers = listed(
        ("valid votes", valid), ("invalid share", invalid), ("due and missing, last third", missing)
    )
    return Answer(worst(*words), numbers)


@question(
    "Q3",
    rule="distinct completions .3 or more (bad below 1.5 / (K N), or .1); wrong consensus "
    "below .2 (bad above .5); good where over .9 of the answers are right, which may be alike",
    source=f"{DEBATE}, 2.1; bounds are ours",
    filter="agreement:1",
)
def diversity(run: Run) -> Answer:
    """Do the solutions of a problem differ?"""
    distinct, agreed = run.curves.late("completions/distinct"), run.curves.late("agreement")
    wrong = run.curves.late("wrong_consensus")
    group = run.curves.group
    same = 1.5 / group if group and group > 1 else 0.1
    words = rated(distinct, good=max(0.3, same), bad=same), rated(wrong, good=0.2, bad=0.5)
    late = {"distinct completions": distinct, "agreement": agreed, "wrong consensus": wrong}
    text = listed(*((f"{name}, last third", value) for name, value in late.items()))
    if run.curves.solved:
        return Answer("good", f"{text}; most answers are right, and those may be alike")
    return Answer(worst(*words), text)


@question(
    "Q4",
    rule="judge accuracy .7 or more (bad below .55); correlation of winner and right .3 or more (at worst a "
    "warning: it is small where nearly all answers are alike in truth)",
    source=f"{DEBATE}, 3.2 and 4.3",
    filter="judge.accuracy:<0.5",
)
def votes_and_truth(run: Run) -> Answer:
    """Do votes follow truth?"""
    judges = judge_figures(run)
    accuracy, correlation = judges.accuracy, judges.correlation
    linked: Word = "unknown" if correlation is None else "good" if correlation >= 0.3 else "warn"
    words = (rated(accuracy, good=0.7, bad=0.55), linked)
    text = listed(
        ("judge accuracy", accuracy),
        ("correlation of being the winner and being right", correlation),
        ("winner lift, last third", run.curves.late("winner/lift")),
    )
    if judges.bounds:
        text += f"; accuracy in the sample{judges.bounds}"
    cast, ties = run.curves.total("votes/valid"), run.curves.total("votes/ties")
    tied = ties / cast if cast and ties else 0.0
    votes = run.curves.total("judge/decidable_votes") or 0.0
    if accuracy is not None and accuracy + tied < 0.45 and votes >= LEAST_VOTES:
        text += "; votes are against truth"
    return Answer(worst(*words), text)


@question(
    "Q5",
    rule="std of truth and peer rewards .1 to 5 (bad above, and where neither has any), gradient above 0, "
    "groups without variance below .6 (bad above .95)",
    source=f"{DEBATE}, 2.1 (peer means are 0 by construction, so these are judged)",
    filter="reward.peer:none",
)
def gradients(run: Run) -> Answer:
    """Is there a signal to learn from?"""
    spreads = {s: run.curves.median(f"reward/{s}/std") for s in ("truth", "peer", "judge")}
    if all(value is None for value in spreads.values()) and run.sample:
        spreads = {s: _spread(run, s) for s in spreads}
    words: list[Word] = [_spread_word(value) for name, value in spreads.items() if name != "judge"]
    norm = run.curves.median("grad_norm")
    flow: Word = "unknown" if norm is None else "good" if norm > 0 else "bad"
    silent = run.curves.late("advantage/zero_variance_share/truth")
    known: list[Word] = [word for word in words if word != "unknown"]
    best = worst(*known)
    if best == "bad" and "good" in known and not any((spreads[s] or 0.0) > 5 for s in ("truth", "peer")):
        best = "warn"
    text = listed(
        *((f"{s} reward std", value) for s, value in spreads.items()),
        ("gradient's norm", norm),
        ("groups without variance in truth, last third", silent),
    )
    return Answer(worst(best, flow, rated(silent, good=0.6, bad=0.95)), text)


def _spread_word(value: float | None) -> Word:
    if value is None:
        return "unknown"
    return "bad" if value > 5 else "good" if value > 0.1 else "warn" if value > 0 else "bad"


def _spread(run: Run, stream: str) -> float | None:
    values = [value for _, value in run.sample.rewards.get(stream, [])] if run.sample else []
    return float(np.std(values)) if values else None


@question(
    "Q6",
    rule="accuracy of the last third above that of the first, p .02 or less; a policy gradient's loss "
    "need not fall",
    source=f"{DEBATE}, 2.2",
    filter="accuracy.last_round:0",
)
def loss_and_progress(run: Run) -> Answer:
    """Does anything get better?"""
    loss = change(run.curves.of("loss")[1])
    gain = change(run.curves.of("accuracy")[1]) or change(run.curves.of("reward/truth/mean")[1])
    if gain is None:
        return Answer("unknown", f"loss {short(loss.early)} to {short(loss.late)}" if loss else UNKNOWN)
    bounds = bounds_text(round(gain.low, 3), round(gain.high, 3))
    moved = f"accuracy {short(gain.early)} to {short(gain.late)}"
    moved += f", difference{bounds}" if bounds else ""
    if loss is not None:
        moved += f"; loss {short(loss.early)} to {short(loss.late)} ({loss.direction})"
    words: dict[str, Word] = {"up": "good", "flat": "warn", "down": "bad", "too few steps": "unknown"}
    few = f"; {gain.n} steps are too few to tell" if gain.direction == "too few steps" else ""
    return Answer(words[gain.direction], moved + few)


@question(
    "Q7",
    rule="updates above 0, KL above 1e-6, outputs on the same problem further apart late than early",
    source=f"{DEBATE}, 2.2",
    filter="",
)
def updating(run: Run) -> Answer:
    """Does the policy change?"""
    updates, kl = run.curves.total("updates"), run.curves.late("kl_mean")
    outputs = changed_outputs(run)
    words: tuple[Word, ...] = (
        "unknown" if updates is None else "good" if updates > 0 else "bad",
        "unknown" if kl is None else "good" if kl > 1e-6 else "bad",
        "unknown" if outputs is None else "good" if outputs.moved else "warn",
    )
    text = listed(("updates", updates), ("KL to the reference, last third", kl))
    if outputs is not None:
        text += f"; {outputs.text}"
    return Answer(worst(*words), text)


@question(
    "Q8",
    rule="held-out gain at least a quarter of the training gain; bad where the detector held_out fires",
    source=f"{DEBATE}, 2.2; the quarter is ours",
    filter="accuracy:1",
)
def overfitting(run: Run) -> Answer:
    """Is what is gained also gained on held-out problems?"""
    path, same = run.setting("held_out.path"), ("path", "split")
    alike = path and all(run.setting(f"held_out.{key}") == run.setting(f"env.{key}") for key in same)
    if alike or run.setting(TEST_TIME) is True:
        return Answer("warn", "trained and evaluated on the same problems: test-time learning")
    for reading in run.readings:
        if reading.detector.name == "held_out" and reading.alarm is not None:
            return Answer("bad", f"{reading.alarm.why} (seen at step {reading.alarm.step})")
    evaluated, less = evaluations(run, DIRECT), gained(run, DIRECT)
    if not evaluated:
        return Answer("unknown", "no held-out evaluation during training")
    at_end = run.curves.late("accuracy/round_0")
    last = ("direct accuracy, held out", evaluated[-1][1][0])
    text = listed(("accuracy, round 0, last third", at_end), last)
    if less is None:
        return Answer("unknown", f"{text}; one evaluation alone")
    text += f"; gained {short(less[0])}{bounds_text(less[1], less[2])} held out, after step {evaluated[0][0]}"
    trained = change(run.curves.of("accuracy/round_0")[1])
    if trained is None or trained.direction == "too few steps":
        word: Word = "good" if less[1] > 0 else "warn" if less[2] < 0 else "unknown"
        return Answer(word, f"{text}; what training gained cannot be told from so few steps")
    text += f", and {short(trained.value)} in training"
    memorised = trained.direction == "up" and trained.value > 0.05 and less[0] < trained.value / 4
    return Answer("warn" if memorised else "good", text)
