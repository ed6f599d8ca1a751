"""Diagnose a run: a verdict, eight questions, and five hypotheses on why training stalls.

tables.toml has the texts, and docs/report.md the rules with their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations, product
from math import inf
from statistics import fmean
from time import time
from typing import Any, Literal, NamedTuple

import numpy as np

from debate_rl.alarms import alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import counted, short
from debate_rl.metrics.intervals import thirds
from debate_rl.reports.document import Cell, Part, Section, Tone, bounds_text, row, section_of
from debate_rl.reports.figures import TABLES, accuracy_figures, cascade_figures, winner_figures
from debate_rl.reports.findings import KINDS
from debate_rl.reports.run import LEAST, TEST_TIME, Change, Run
from debate_rl.runs.folder import ends_by, starts_of, time_words

Word = Literal["good", "warn", "bad", "unknown"]
Answer = tuple[Word, str]
"""The verdict on a question, and its numbers as text."""
UNKNOWN = "no data"
LEAST_VOTES = 100
"""Minimum number of votes on decidable pairs for a comparison of votes with truth."""
LEAST_PROBLEMS, MOST_PROBLEMS = 5, 200
"""Minimum number of problems that occur both early and late; maximum number that are read."""
PROGRESS = {
    "accuracy": "accuracy",
    "reward/truth/mean": "the mean truth reward",
    "judge/accuracy": "judge accuracy",
}
"""Figures that show progress, with their names in sentences. The first available one counts."""
NO_COLLAPSE = ("mismatch", "stall", "held_out", "format_only", "grader_drift", "hack_gap")
"""Detectors whose alarm is a fault but not a collapse of the policy."""
GOING_S = 600.0
ENDED = ("target", "hours", "alarm", "error")
"""Reasons in run.json for a launch that ended before its last step."""
Evidence = tuple[str, float | None, bool]
"""A sign: its name, its value, and whether it supports the hypothesis."""


def progress(run: Run) -> tuple[str, Change | None]:
    """Return the figure that shows progress, and its change."""
    changes = ((name, run.change(name)) for name in PROGRESS)
    return next((found for found in changes if found[1]), ("accuracy", None))


def verdict(run: Run) -> tuple[str, Tone, str]:
    """Return the verdict on a run by the rules of docs/report.md: a word, its tone, and the reason."""
    name, moved = progress(run)
    text = ""
    if moved is not None:
        bounds = bounds_text(moved.low, moved.high)
        parts = f"first and last third of {moved.n} steps{', difference' + bounds if bounds else ''}"
        text = f"{PROGRESS[name]} went from {short(moved.early)} to {short(moved.late)} ({parts})"
    fired = [reading for reading in alarms(run.readings) if reading.detector.name not in NO_COLLAPSE]
    if fired and fired[0].alarm is not None:
        names, first = ", ".join(dict.fromkeys(one.detector.name for one in fired)), fired[0].alarm
        sentence = f"Signs of collapse from step {first.step} on: {first.why} (alarms: {names})"
        if moved is None:
            return "signs of collapse", "bad", f"{sentence}."
        if moved.direction == "up":
            return "learning, with alarms", "warn", f"{sentence}; {text}."
        fell = moved.direction == "down" or (moved.n >= LEAST and moved.late < moved.early / 2)
        return "collapsed" if fell else "signs of collapse", "bad", f"{sentence}; {text}."
    if moved is None:
        return "no figures", "warn", "No figure shows progress."
    verdicts: dict[str, tuple[str, Tone, str]] = {
        "up": ("learning", "good", f"No alarm; {text}."),
        "flat": ("not learning", "warn", f"No alarm, and no change beyond noise: {text}."),
        "down": ("getting worse", "bad", f"No alarm, but {text}."),
    }
    few = f"{moved.n} training steps are too few for a verdict, which needs {LEAST}; {text}."
    return verdicts.get(moved.direction, ("too few steps", "", few))


def status(run: Run, now: float | None = None) -> str:
    """Return "finished", "running" or "stopped", by the configured steps and the time of the last line."""
    wanted, steps, times = run.setting("train.steps", int), run.curves.steps, run.curves.of("time")[1]
    reason = last_end(run).get("reason")
    if not len(steps):
        return "no steps"
    if reason in ENDED or wanted is None:
        return f"ended: {reason}" if reason in ENDED else "unknown"
    if int(steps[-1]) + 1 >= wanted:
        return "finished"
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    quiet = (time() if now is None else now) - float(times[-1]) if len(times) else inf
    return "running" if quiet < max(GOING_S, 5 * usual) else "stopped"


def last_end(run: Run) -> Mapping[str, Any]:
    """Return how the latest launch of a run ended, from run.json, or {} if unknown."""
    end = (starts_of(run.info) or [{}])[-1].get("end")
    return end if isinstance(end, dict) and isinstance(end.get("reason"), str) else {}


def ended_line(run: Run) -> str:
    """Return a line about the end of the latest launch, with the run's wall time, or "" if unknown."""
    starts, end = starts_of(run.info), last_end(run)
    count = ends_by(starts, "rollback")
    back = f" {counted(count, 'rollback')} before." if count else ""
    why = f"{run.name}: ended ({end.get('reason')}): {str(end.get('why'))[:300]}"
    return f"{why}; {time_words(starts)}.{back}" if end else ""


class JudgeFigures(NamedTuple):
    """Judge accuracy on decidable pairs, its interval as text, and two figures of the sample.

    ``correlation``: between being the winner and being right. ``followed``: the share of answers adopted from
    the agent shown first, minus the share expected by chance. ``follows``: whether ``followed`` is a finding,
    by its size, its number of cases and its interval.
    """

    accuracy: float | None
    bounds: str
    correlation: float | None
    followed: float | None
    follows: bool


def judge_figures(run: Run) -> JudgeFigures:
    """Return the judge figures of the sample. If metrics.jsonl has the accuracy, it covers all steps."""
    study = run.sample.study if run.sample else None
    parts = (accuracy_figures, winner_figures, cascade_figures) if study and len(study.debates) else ()
    found = {one.name: one.estimate for one in chain(*(part(study) for part in parts if study))}
    names = ("judge/accuracy", "cascade/first_listed", "winner/correlation")
    right, first, linked = map(found.get, names)
    share, count = run.curves.dense("judge/accuracy"), run.curves.dense("judge/decidable_votes")
    known = np.isfinite(share) & np.isfinite(count)
    total, least = float(count[known].sum()), KINDS["cascade/first_listed"]
    accuracy = float((share * count)[known].sum()) / total if total else right.value if right else None
    return JudgeFigures(
        accuracy,
        bounds_text(right.low, right.high) if right else "",
        linked.value if linked else None,
        first.value if first else None,
        first is not None and first.n >= least.cases and first.value >= least.size and first.low > 0,
    )


def changed_outputs(run: Run) -> tuple[float, float, int] | None:
    """Return the mean distance between texts of a problem, early to late and early to early.

    The third value is the number of problems. Return None with fewer than 5 problems that occur in both the
    first and last third.
    """
    if run.sample is None or run.stored is None:
        return None
    first, _, last = thirds(range(run.stored[0], run.stored[1] + 1))
    between, before = list[float](), list[float]()
    for texts in run.sample.texts.values():
        early, late = (
            [frozenset(text.split()) for step, text in texts if step in part][:4] for part in (first, last)
        )
        if len(early) > 1 and late and len(between) < MOST_PROBLEMS:
            between.append(_mean_distance(product(early, late)))
            before.append(_mean_distance(combinations(early, 2)))
    return (fmean(between), fmean(before), len(between)) if len(between) >= LEAST_PROBLEMS else None


def _mean_distance(pairs: Iterable[Sequence[frozenset[str]]]) -> float:
    """Return the mean Jaccard distance of pairs of word sets, 0 for two empty sets."""
    return fmean(1 - len(one & other) / len(one | other) if one | other else 0.0 for one, other in pairs)


def worst(*words: Word) -> Word:
    """Return the worst of the verdicts, or "unknown" if all are unknown."""
    order: tuple[Word, ...] = ("bad", "warn", "good", "unknown")
    return min(words, key=order.index) if words else "unknown"


def rated(value: float | None, good: float, bad: float) -> Word:
    """Return the verdict on a value by two thresholds, in either order. A value of None is unknown."""
    if value is None:
        return "unknown"
    if good <= bad:
        return "good" if value <= good else "bad" if value > bad else "warn"
    return "good" if value >= good else "bad" if value < bad else "warn"


def _above(value: float | None, least: float) -> Word:
    return "unknown" if value is None else "good" if value > least else "bad"


def _listed(**numbers: float | None) -> str:
    """Return the known numbers with their names as text, or ``UNKNOWN`` without any."""
    known = [f"{name.replace('_', ' ')} {short(one)}" for name, one in numbers.items() if one is not None]
    return ", ".join(known) or UNKNOWN


def _base_accuracy(run: Run) -> Answer:
    before = [figures for label, figures in run.evaluations.items() if label.endswith("@start)")]
    accuracies = [figures["direct/accuracy"] for figures in before if "direct/accuracy" in figures]
    if accuracies:
        value, low, high = min(accuracies, key=lambda bounded: bounded[2] - bounded[1])
        where = f"evaluated before training: {short(value)}{bounds_text(low, high)}"
    else:
        value = run.curves.beginning("accuracy/round_0")
        where = f"round-0 accuracy in the first 5 training steps: {short(value)}"
    if value is None:
        return "unknown", UNKNOWN
    if value > 0.95:
        return "warn", f"{where}; nearly all problems are solved already, and little is left to learn"
    return rated(value, good=0.05, bad=0.01), where


def _valid_comparisons(run: Run) -> Answer:
    cast, valid = run.curves.total("votes/cast"), run.curves.total("votes/valid")
    parsed = run.curves.late("judge/parsed_share")
    if cast is None and valid is None:
        return "unknown", UNKNOWN
    if not valid:
        return "bad", f"no valid vote in {len(run.curves.steps)} steps"
    invalid = (cast - valid) / cast if cast else None
    missing = None if parsed is None else 1 - parsed
    late = {"missing share of due votes, last third": missing}
    text = _listed(valid_votes=valid, invalid_share=invalid, **late)
    return worst(rated(invalid, good=0.5, bad=0.7), rated(missing, good=0.2, bad=0.5), "good"), text


def _diversity(run: Run) -> Answer:
    distinct, wrong = run.curves.late("completions/distinct"), run.curves.late("wrong_consensus")
    group = run.curves.group
    same = 1.5 / group if group and group > 1 else 0.1
    late = {"distinct completions": distinct, "agreement": run.curves.late("agreement")}
    late["wrong consensus"] = wrong
    text = _listed(**{f"{name}, last third": value for name, value in late.items()})
    if run.curves.solved:
        return "good", f"{text}; most answers are right, and right answers may be equal"
    return worst(rated(distinct, good=max(0.3, same), bad=same), rated(wrong, good=0.2, bad=0.5)), text


def _votes_and_truth(run: Run) -> Answer:
    judges = judge_figures(run)
    accuracy, correlation = judges.accuracy, judges.correlation
    linked: Word = "unknown" if correlation is None else "good" if correlation >= 0.3 else "warn"
    lift = run.curves.late("winner/lift")
    known = {"correlation of winner and right": correlation, "winner lift, last third": lift}
    text = _listed(judge_accuracy=accuracy, **known)
    text += f"; accuracy in the sample{judges.bounds}" if judges.bounds else ""
    cast, ties = run.curves.total("votes/valid"), run.curves.total("votes/ties")
    tied = ties / cast if cast and ties else 0.0
    votes = run.curves.total("judge/decidable_votes") or 0.0
    if accuracy is not None and accuracy + tied < 0.45 and votes >= LEAST_VOTES:
        text += "; votes tend to prefer wrong solutions"
    return worst(rated(accuracy, good=0.7, bad=0.55), linked), text


def _gradients(run: Run) -> Answer:
    streams = ("truth", "peer", "judge")
    spreads = {stream: run.curves.median(f"reward/{stream}/std") for stream in streams}
    if all(value is None for value in spreads.values()) and run.sample:
        values = {stream: [value for _, value in run.sample.rewards[stream]] for stream in streams}
        spreads = {stream: float(np.std(found)) if found else None for stream, found in values.items()}
    rewarded = [value for name, value in spreads.items() if name != "judge" and value is not None]
    words: list[Word] = ["bad" if v > 5 or v <= 0 else "good" if v > 0.1 else "warn" for v in rewarded]
    spread = worst(*words)
    if spread == "bad" and "good" in words and max(rewarded) <= 5:
        spread = "warn"
    norm = run.curves.median("grad_norm")
    silent = run.curves.late("advantage/zero_variance_share/truth")
    known = {f"{stream} reward std": value for stream, value in spreads.items()}
    known |= {"gradient norm": norm, "groups without variance in truth, last third": silent}
    return worst(spread, _above(norm, 0), rated(silent, good=0.6, bad=0.95)), _listed(**known)


def _learning(run: Run) -> Answer:
    loss, gain = run.change("loss"), run.change("accuracy") or run.change("reward/truth/mean")
    lost = f"loss {short(loss.early)} to {short(loss.late)}" if loss else ""
    if gain is None:
        return "unknown", lost or UNKNOWN
    bounds = bounds_text(round(gain.low, 3), round(gain.high, 3))
    text = f"accuracy {short(gain.early)} to {short(gain.late)}" + (f", difference{bounds}" if bounds else "")
    text += f"; {lost} ({loss.direction})" if loss else ""
    words: dict[str, Word] = {"up": "good", "flat": "warn", "down": "bad"}
    few = f"; {gain.n} steps are too few to tell" if gain.direction == "too few steps" else ""
    return words.get(gain.direction, "unknown"), text + few


def _updating(run: Run) -> Answer:
    updates, kl = run.curves.total("updates"), run.curves.late("kl_mean")
    outputs = changed_outputs(run)
    moved: Word = "unknown"
    text = _listed(updates=updates, **{"KL to the reference, last third": kl})
    if outputs is not None:
        apart, before, problems = outputs
        moved = "good" if apart > before + 0.02 else "warn"
        text += (
            f"; share of words not common to two round-0 texts of a problem: {apart:.2f} between the "
            f"first and last third, {before:.2f} within the first ({problems} problems)"
        )
    return worst(_above(updates, 0), _above(kl, 1e-6), moved), text


def _overfitting(run: Run) -> Answer:
    direct = "eval/direct/accuracy"
    path, same = run.setting("held_out.path"), ("path", "split")
    alike = path and all(run.setting(f"held_out.{key}") == run.setting(f"env.{key}") for key in same)
    if alike or run.setting(TEST_TIME[0]) == TEST_TIME[1]:
        return "warn", "training and evaluation use the same problems: test-time learning"
    for reading in run.readings:
        if reading.detector.name == "held_out" and reading.alarm is not None:
            return "bad", f"{reading.alarm.why} (alarm at step {reading.alarm.step})"
    evaluated, less = run.evaluated(direct), run.gained(direct)
    if not evaluated:
        return "unknown", "no held-out evaluation during training"
    at_end, last = run.curves.late("accuracy/round_0"), evaluated[-1][1][0]
    text = _listed(**{"round-0 accuracy, last third": at_end, "held-out direct accuracy": last})
    if less is None:
        return "unknown", f"{text}; there is only one evaluation"
    text += f"; held-out gain since step {evaluated[0][0]} {short(less[0])}{bounds_text(less[1], less[2])}"
    trained = run.change("accuracy/round_0")
    if trained is None or trained.direction == "too few steps":
        word: Word = "good" if less[1] > 0 else "warn" if less[2] < 0 else "unknown"
        return word, f"{text}; the run is too short to measure a training gain"
    text += f", training gain {short(trained.value)}"
    memorised = trained.direction == "up" and trained.value > 0.05 and less[0] < trained.value / 4
    return "warn" if memorised else "good", text


QUESTIONS: dict[str, Callable[[Run], Answer]] = {
    "Q1": _base_accuracy,
    "Q2": _valid_comparisons,
    "Q3": _diversity,
    "Q4": _votes_and_truth,
    "Q5": _gradients,
    "Q6": _learning,
    "Q7": _updating,
    "Q8": _overfitting,
}
"""The functions that answer the questions of tables.toml."""


class Hypothesis(NamedTuple):
    """A hypothesis with its signs. ``fix``: the proposal of the source. ``debates``: a filter."""

    name: str
    source: str
    fix: str
    debates: str
    signs: Sequence[Evidence]

    @property
    def known(self) -> int:
        """Signs with a value."""
        return sum(value is not None for _, value, _ in self.signs)

    @property
    def crossed(self) -> int:
        """Signs that support the hypothesis."""
        return sum(speaks for _, _, speaks in self.signs)

    @property
    def text(self) -> str:
        """The known signs with their numbers. Supporting signs have an exclamation mark."""
        known = (one for one in self.signs if one[1] is not None)
        return ", ".join(f"{n} {short(v)}{' (!)' if speaks else ''}" for n, v, speaks in known) or UNKNOWN


def ranked(run: Run) -> list[Hypothesis]:
    """Return the hypotheses, ordered by the fraction of supporting signs."""
    curves, judges = run.curves, judge_figures(run)
    cast, tied = curves.late("votes/valid"), curves.late("votes/ties")
    form, right = run.change("format/valid"), run.change("accuracy")
    rose = form is not None and form.direction == "up" and form.value > 0.05
    instead = rose and right is not None and right.direction in ("flat", "down")
    values = {
        "accuracy, round 0": curves.beginning("accuracy/round_0"),
        "accuracy all wrong": curves.beginning("accuracy/all_wrong"),
        "correlation of winner and right": judges.correlation,
        "judge accuracy": judges.accuracy,
        "groups without variance in truth": curves.median("advantage/zero_variance_share/truth"),
        "peer reward std": curves.median("reward/peer/std"),
        "distinct completions, last third": curves.late("completions/distinct"),
        "agreement, last third": curves.late("agreement"),
        "ties among votes, last third": tied / cast if cast and tied is not None else None,
    }
    found: list[Hypothesis] = []
    for key, about in TABLES["hypothesis"].items():
        evidence: list[Evidence] = []
        for name, way, bound in about["signs"]:
            value = values[name]
            crossed = value is not None and (value < bound if way == "below" else value > bound)
            speaks = crossed and not (key == "low_exploration" and curves.solved)
            evidence.append((f"{name} ({way} {bound:g})".replace(" 0.", " ."), value, speaks))
        if key == "format_dominates":
            gained = "gain in valid format (above .05, accuracy flat)"
            evidence.append((gained, form.value if form else None, instead))
            evidence.append(
                ("gain in accuracy (flat, format rising)", right.value if right else None, instead)
            )
        if key == "cascades":
            follows = "excess adoption from the agent shown first (interval above 0)"
            evidence.append((follows, judges.followed, judges.follows))
        found.append(Hypothesis(**about | {"signs": evidence}))
    return sorted(found, key=lambda one: -one.crossed / max(1, one.known))


def questions_section(runs: Sequence[Run]) -> Section:
    """Return the section with the answers to Q1 to Q8 and the ranked hypotheses of each run."""
    parts: list[Part] = []
    for run in runs:
        asked, stalled = list[tuple[Cell, ...]](), list[tuple[Cell, ...]]()
        for name, answer in QUESTIONS.items():
            about, (word, text) = TABLES["question"][name], answer(run)
            said, verdict = Cell(text, behind=run.behind(about["debates"])), word if word != "unknown" else ""
            asked.append(
                row(name, about["text"], said, Cell(word, tone=verdict), about["rule"], about["source"])
            )
        for one in ranked(run):
            signs = Cell(f"{one.crossed} of {one.known}", one.crossed, tone="warn" if one.crossed else "")
            fix = open_advice(run.settings, one.fix) if one.crossed else "-"
            stalled.append(
                row(Cell(one.name, behind=run.behind(one.debates)), signs, one.text, fix, one.source)
            )
        parts += [run.table("questions/{at}", asked), run.table("hypotheses/{at}", stalled)]
    return section_of("questions", parts)
