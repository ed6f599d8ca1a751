"""Signs of collapse, the eight questions, and five hypotheses on why training stalls. Words: tables.toml."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from debate_rl.alarms import ANY, RUNS, STEPS, Reading, alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import percent, short
from debate_rl.reports import measures
from debate_rl.reports.document import (
    Cell,
    Paragraph,
    Part,
    Section,
    Tone,
    bounds_text,
    row,
    section_of,
    table_of,
)
from debate_rl.reports.figures import TABLES
from debate_rl.reports.run import TEST_TIME, Run

Word = Literal["good", "warn", "bad", "unknown"]
Answer = tuple[Word, str]
"""The verdict on a question, and the numbers in words."""
UNKNOWN = "the run does not say"
LEAST_VOTES = 100
"""Votes on decidable pairs below which nothing is said of votes against truth."""
Evidence = tuple[str, float | None, bool]
"""What was looked at, its value, and whether it speaks for the hypothesis."""


def worst(*words: Word) -> Word:
    """Return the worst of the words; of "unknown" alone "unknown"."""
    order: tuple[Word, ...] = ("bad", "warn", "good")
    for word in order:
        if word in words:
            return word
    return "unknown"


def rated(value: float | None, good: float, bad: float) -> Word:
    """Return the word of a value between two thresholds, whichever of them is higher; None is unknown."""
    if value is None:
        return "unknown"
    if good <= bad:
        return "good" if value <= good else "bad" if value > bad else "warn"
    return "good" if value >= good else "bad" if value < bad else "warn"


def _above(value: float | None, least: float, otherwise: Word) -> Word:
    return "unknown" if value is None else "good" if value > least else otherwise


def _listed(**numbers: float | None) -> str:
    """Return the known numbers with their names; what the run does not say where there are none."""
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
        where = f"accuracy, round 0, of the first 5 training steps: {short(value)}"
    if value is None:
        return "unknown", UNKNOWN
    if value > 0.95:
        return "warn", f"{where}; nearly all is solved already, and little is left to learn"
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
    text = _listed(valid_votes=valid, invalid_share=invalid, **{"due and missing, last third": missing})
    return worst(rated(invalid, good=0.5, bad=0.7), rated(missing, good=0.2, bad=0.5), "good"), text


def _diversity(run: Run) -> Answer:
    distinct, wrong = run.curves.late("completions/distinct"), run.curves.late("wrong_consensus")
    group = run.curves.group
    same = 1.5 / group if group and group > 1 else 0.1
    late = {"distinct completions": distinct, "agreement": run.curves.late("agreement")}
    late["wrong consensus"] = wrong
    text = _listed(**{f"{name}, last third": value for name, value in late.items()})
    if run.curves.solved:
        return "good", f"{text}; most answers are right, and those may be alike"
    return worst(rated(distinct, good=max(0.3, same), bad=same), rated(wrong, good=0.2, bad=0.5)), text


def _votes_and_truth(run: Run) -> Answer:
    judges = measures.judge_figures(run)
    accuracy, correlation = judges.accuracy, judges.correlation
    linked: Word = "unknown" if correlation is None else "good" if correlation >= 0.3 else "warn"
    lift = run.curves.late("winner/lift")
    known = {"correlation of being the winner and being right": correlation, "winner lift, last third": lift}
    text = _listed(judge_accuracy=accuracy, **known)
    text += f"; accuracy in the sample{judges.bounds}" if judges.bounds else ""
    cast, ties = run.curves.total("votes/valid"), run.curves.total("votes/ties")
    tied = ties / cast if cast and ties else 0.0
    votes = run.curves.total("judge/decidable_votes") or 0.0
    if accuracy is not None and accuracy + tied < 0.45 and votes >= LEAST_VOTES:
        text += "; votes are against truth"
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
    known |= {"gradient's norm": norm, "groups without variance in truth, last third": silent}
    return worst(spread, _above(norm, 0, "bad"), rated(silent, good=0.6, bad=0.95)), _listed(**known)


def _progress(run: Run) -> Answer:
    loss = measures.change_of(run, "loss")
    gain = measures.change_of(run, "accuracy") or measures.change_of(run, "reward/truth/mean")
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
    outputs = measures.changed_outputs(run)
    moved: Word = "unknown"
    text = _listed(updates=updates, **{"KL to the reference, last third": kl})
    if outputs is not None:
        apart, before, problems = outputs
        moved = "good" if apart > before + 0.02 else "warn"
        text += (
            f"; words not shared by two texts of a problem in round 0: {apart:.2f} between the first "
            f"and the last third, {before:.2f} within the first ({problems} problems)"
        )
    return worst(_above(updates, 0, "bad"), _above(kl, 1e-6, "bad"), moved), text


def _overfitting(run: Run) -> Answer:
    direct = "eval/direct/accuracy"
    path, same = run.setting("held_out.path"), ("path", "split")
    alike = path and all(run.setting(f"held_out.{key}") == run.setting(f"env.{key}") for key in same)
    if alike or run.setting(TEST_TIME) is True:
        return "warn", "trained and evaluated on the same problems: test-time learning"
    for reading in run.readings:
        if reading.detector.name == "held_out" and reading.alarm is not None:
            return "bad", f"{reading.alarm.why} (seen at step {reading.alarm.step})"
    evaluated, less = measures.evaluations(run, direct), measures.gained(run, direct)
    if not evaluated:
        return "unknown", "no held-out evaluation during training"
    at_end, last = run.curves.late("accuracy/round_0"), evaluated[-1][1][0]
    text = _listed(**{"accuracy, round 0, last third": at_end, "direct accuracy, held out": last})
    if less is None:
        return "unknown", f"{text}; one evaluation alone"
    text += f"; gained {short(less[0])}{bounds_text(less[1], less[2])} held out, after step {evaluated[0][0]}"
    trained = measures.change_of(run, "accuracy/round_0")
    if trained is None or trained.direction == "too few steps":
        word: Word = "good" if less[1] > 0 else "warn" if less[2] < 0 else "unknown"
        return word, f"{text}; what training gained cannot be told from so few steps"
    text += f", and {short(trained.value)} in training"
    memorised = trained.direction == "up" and trained.value > 0.05 and less[0] < trained.value / 4
    return "warn" if memorised else "good", text


QUESTIONS: dict[str, Callable[[Run], Answer]] = {
    "Q1": _base_accuracy,
    "Q2": _valid_comparisons,
    "Q3": _diversity,
    "Q4": _votes_and_truth,
    "Q5": _gradients,
    "Q6": _progress,
    "Q7": _updating,
    "Q8": _overfitting,
}
"""How each question of tables.toml is answered."""


class Hypothesis(NamedTuple):
    """A hypothesis with its evidence; ``fix`` is what the source proposes, ``debates`` the filter."""

    name: str
    source: str
    fix: str
    debates: str
    evidence: Sequence[Evidence]

    @property
    def known(self) -> int:
        """Signs whose value is known."""
        return sum(value is not None for _, value, _ in self.evidence)

    @property
    def crossed(self) -> int:
        """Signs that speak for it."""
        return sum(speaks for _, _, speaks in self.evidence)

    @property
    def text(self) -> str:
        """The known signs with their numbers, those that speak for it with an exclamation mark."""
        known = [(name, short(value), speaks) for name, value, speaks in self.evidence if value is not None]
        return (
            ", ".join(f"{name} {value}{' (!)' if speaks else ''}" for name, value, speaks in known) or UNKNOWN
        )


def ranked(run: Run) -> list[Hypothesis]:
    """Return the hypotheses, those with the largest share of their signs first."""
    signs = _signs(run)
    every = [Hypothesis(**row, evidence=signs[key]) for key, row in TABLES["hypothesis"].items()]
    return sorted(every, key=lambda one: -one.crossed / max(1, one.known))


def _signs(run: Run) -> dict[str, list[Evidence]]:
    curves, judges = run.curves, measures.judge_figures(run)
    cast, tied = curves.late("votes/valid"), curves.late("votes/ties")
    form, right = measures.change_of(run, "format/valid"), measures.change_of(run, "accuracy")
    rose = form is not None and form.direction == "up" and form.value > 0.05
    instead = rose and right is not None and right.direction in ("flat", "down")
    silent = curves.median("advantage/zero_variance_share/truth")
    alike = [
        _below("distinct completions, last third", curves.late("completions/distinct"), 0.3),
        _over("agreement, last third", curves.late("agreement"), 0.9),
        _over("ties among votes, last third", tied / cast if cast and tied is not None else None, 0.5),
    ]
    follows = "excess adoption of the agent shown first (interval above 0)"
    return {
        "too_hard": [
            _below("accuracy, round 0", curves.beginning("accuracy/round_0"), 0.05),
            _over("accuracy all wrong", curves.beginning("accuracy/all_wrong"), 0.5),
        ],
        "weak_signal": [
            _below("correlation of winner and right", judges.correlation, 0.3),
            _below("judge accuracy", judges.accuracy, 0.55),
            _over("groups without variance in truth", silent, 0.6),
            _below("peer reward std", curves.median("reward/peer/std"), 0.1),
        ],
        "low_exploration": [(name, value, speaks and not curves.solved) for name, value, speaks in alike],
        "format_dominates": [
            ("gain in format valid (above .05, accuracy flat)", form.value if form else None, instead),
            ("gain in accuracy (flat, format rising)", right.value if right else None, instead),
        ],
        "cascades": [(follows, judges.followed, judges.follows)],
    }


def _below(name: str, value: float | None, bound: float) -> Evidence:
    return f"{name} (below {bound:g})".replace(" 0.", " ."), value, value is not None and value < bound


def _over(name: str, value: float | None, bound: float) -> Evidence:
    return f"{name} (above {bound:g})".replace(" 0.", " ."), value, value is not None and value > bound


def questions_section(runs: Sequence[Run]) -> Section:
    """Return the section that answers Q1 to Q8 for each run, and ranks why it may have stalled."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        asked = (_question(run, name) for name in QUESTIONS)
        parts.append(table_of("questions/{at}", asked, at=index, run=run.name))
        stalled = (_hypothesis(run, one) for one in ranked(run))
        parts.append(table_of("hypotheses/{at}", stalled, at=index, run=run.name))
    return section_of("questions", parts)


def _question(run: Run, name: str) -> tuple[Cell, ...]:
    about, (word, text) = TABLES["question"][name], QUESTIONS[name](run)
    said, verdict = Cell(text, behind=run.behind(about["debates"])), word if word != "unknown" else ""
    return row(name, about["text"], said, Cell(word, tone=verdict), about["rule"], about["source"])


def _hypothesis(run: Run, one: Hypothesis) -> tuple[Cell, ...]:
    signs = Cell(f"{one.crossed} of {one.known}", one.crossed, tone="warn" if one.crossed else "")
    fix = open_advice(run.settings, one.fix) if one.crossed else "-"
    return row(Cell(one.name, behind=run.behind(one.debates)), signs, one.text, fix, one.source)


def alarms_section(runs: Sequence[Run]) -> Section:
    """Return the section of the detectors: first the alarms, then what each one says, with its rate."""
    text = (
        f"Each detector was run on {RUNS:,} simulated healthy runs of {STEPS} steps; the share of "
        f"them in which it fired is given with it. In {percent(ANY / RUNS)} of them some detector fired. "
        "Sources without an address are unpublished notes on earlier runs."
    )
    parts: list[Part] = [Paragraph(text)]
    for index, run in enumerate(runs, start=1):
        fired = alarms(run.readings)
        parts += [Paragraph(_sentence(one, run), "bad", run.behind(debates_of(one))) for one in fired]
        if not fired:
            quiet = sum(reading.status == "quiet" for reading in run.readings)
            every = quiet == len(run.readings)
            text = f"{run.name}: no alarm from {quiet} of {len(run.readings)} detectors"
            text += "." if every else "; the others lack steps or figures."
            parts.append(Paragraph(text, "good" if every else ""))
        rows = (_reading(reading, run) for reading in run.readings)
        parts.append(table_of("alarms/{at}", rows, at=index, run=run.name))
    every_one = [reading for run in runs for reading in run.readings]
    able = sum(reading.able for reading in every_one)
    which = "fired" if able == len(every_one) else "that can fire yet"
    return section_of("alarms", parts, fired=len(alarms(every_one)), able=able, which=which)


def debates_of(reading: Reading) -> str:
    """Return the filter of the debates at an alarm."""
    return reading.detector.debates.format(step=reading.alarm.step if reading.alarm else 0)


def _sentence(reading: Reading, run: Run) -> str:
    alarm, name = reading.alarm, reading.detector.name
    assert alarm is not None
    kind = "A fault" if name in measures.NO_COLLAPSE else "A sign of collapse"
    return (
        f"{run.name}: {kind} at step {alarm.step}: {alarm.why} ({name} {short(alarm.value)}, threshold "
        f"{short(alarm.threshold)}). Proposed: {open_advice(run.settings, reading.detector.fix)}."
    )


def _reading(reading: Reading, run: Run) -> tuple[Cell, ...]:
    alarm, detector = reading.alarm, reading.detector
    tones: dict[str, Tone] = {"alarm": "bad", "quiet": "good"}
    status = Cell(reading.status, tone=tones.get(reading.status, ""))
    found = (None, None, None)
    if alarm is not None:
        step = Cell(f"{alarm.step}", alarm.step, run.behind(debates_of(reading)))
        found = step, alarm.value, alarm.threshold
    rule = detector.rule.replace("`", "")
    return row(detector.name, status, *found, rule, detector.source, detector.false_alarms)
