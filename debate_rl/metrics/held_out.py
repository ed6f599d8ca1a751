"""RUN/held_out.jsonl: what every held-out problem gave at each evaluation, and what training changed.

An evaluation is one line, on the disk before the run continues. ``debate eval`` keeps a line of the same form
in the folder of each evaluation of kept weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from debate.files import plain_lines
from debate.values import Value
from debate_rl.formatting import counted, interval, share, signed_share
from debate_rl.metrics.intervals import Estimate, clustered_mean
from transcripts.append import LineFile
from transcripts.codec import decode
from transcripts.errors import FieldError

NAME = "held_out.jsonl"
DIRECT, WINNER, JUDGE = "direct/accuracy", "debate/winner/accuracy", "judge/accuracy"
FIGURES = {DIRECT: "accuracy, one agent alone", WINNER: "winner accuracy", JUDGE: "judge accuracy"}
"""The figures that are compared, and how a sentence names them."""
LEADS = {
    "debate/winner_minus_direct": (WINNER, DIRECT),
    "debate/winner_minus_self_consistency": (WINNER, "direct/self_consistency"),
    "debate/majority_minus_self_consistency": ("debate/majority", "direct/self_consistency"),
}
"""Differences between two figures of one evaluation, over the problems with a value of both."""
COUNTS = ("/agents", "/rounds", "/calls")
"""Suffixes of figures that count something: all others but tokens are rates."""
FOLDERS = 200
"""The most folders of evaluations that are read."""
Problem = tuple[str, str]
"""A problem's id and checksum: two problems of one id are the same where their checksums are."""


class HeldOut(Value, frozen=True):
    """One evaluation. ``step``: how many steps its weights had learnt from.

    ``problems``: a checksum of each graded problem, by its id. ``figures[name][id]``: the sum of a figure's
    values on a problem, each a rate in [0, 1] or a number (of tokens, ``COUNTS``), and how many values; a
    problem without any is not there. ``samples``, ``ungraded``: as in ``Scores``. ``series``: "" in training;
    of ``debate eval`` a checksum of all that evaluations share which differ in the weights alone. ``data``:
    the name of a further held-out set of a run, "" for the first one.
    """

    step: int
    problems: dict[str, str]
    figures: dict[str, dict[str, tuple[float, int]]]
    samples: int = 1
    ungraded: int = 0
    series: str = ""
    data: str = ""

    def estimate(self, name: str) -> Estimate | None:
        """Return a figure over all problems, its interval clustered by problem; None without any value."""
        if name in LEADS:
            leads = self.means(name)
            return clustered_mean([*leads.values()], [*leads], signed=True) if leads else None
        values = [
            (total / count, id)  # the mean stands for each value: only their sum decides anything
            for id, (total, count) in self.figures.get(name, {}).items()
            for _ in range(count)
        ]
        return clustered_mean([value for value, _ in values], [id for _, id in values]) if values else None

    def totals(self, name: str) -> dict[Problem, tuple[float, float]]:
        """Return the sum and the number of a figure's values on each problem; a lead is one value."""
        leads = name in LEADS
        found = (
            {id: (lead, 1) for id, lead in self.means(name).items()} if leads else self.figures.get(name, {})
        )
        return {(id, self.problems[id]): pair for id, pair in found.items()}

    def means(self, name: str) -> dict[str, float]:
        """Return the mean of a figure on each problem that has a value; of a lead the difference there."""
        if name in LEADS:
            ones, others = map(self.means, LEADS[name])
            return {id: one - others[id] for id, one in ones.items() if id in others}
        return {id: total / count for id, (total, count) in self.figures.get(name, {}).items()}


class Gain(NamedTuple):
    """One figure before and after: means over the problems with a value in both of the mean on each.

    ``difference``: after less before, the mean of the differences within the problems, with its 95% interval.
    ``values``: how many values the means are of, in the evaluation with fewer. ``left_out``: problems of an
    evaluation that are not among those with a value in both.
    """

    before: float
    after: float
    difference: Estimate
    values: int
    left_out: int


def append_held_out(path: Path, evaluation: HeldOut) -> None:
    """Append an evaluation to a file, which is on the disk as a whole line when this returns."""
    with LineFile(path) as file:
        file.write(to_line(evaluation))


def to_line(evaluation: HeldOut) -> bytes:
    """Return an evaluation as one line of JSON, without newline."""
    return msgspec.json.encode(evaluation)


def read_held_out(run: Path, notes: list[str] | None = None, *, data: str = "") -> list[HeldOut]:
    """Return the evaluations of a run that can be compared, by step; ``notes`` gets what cannot be read.

    They are those of training. Where these have no before and after, they are those of a series of
    ``debate eval``, if one begins earlier or ends later; of two alike, the one with more evaluations.
    ``data``: those of training on a further set.
    """
    said = [] if notes is None else notes
    own = _by_step([one for one in _read(run / NAME, said) if one.data == data])
    if data or (len(own) > 1 and own[0].step == 0):
        return own
    series: dict[str, list[HeldOut]] = defaultdict(list)
    for path in sorted((run / "evaluations").glob(f"*/{NAME}"))[:FOLDERS]:
        for one in _read(path, said):
            series[one.series].append(one)
    known = [found for found in (own, *map(_by_step, series.values())) if len(found) > 1]
    return max(known, key=lambda s: (-s[0].step, s is own, s[-1].step, len(s)), default=own)


def evaluations_of(path: Path) -> list[HeldOut]:
    """Return the evaluations that a run's file holds, in the order of its lines; none without a file."""
    return list(_read(path, []))


def kept_steps(path: Path) -> set[tuple[str, int]]:
    """Return the held-out sets and steps of the evaluations that a run's file holds."""
    return {(one.data, one.step) for one in _read(path, [])}


def _by_step(evaluations: Iterable[HeldOut]) -> list[HeldOut]:
    """Return the evaluations by step; of a repeated step the later one counts."""
    latest = {one.step: one for one in evaluations}
    return [latest[step] for step in sorted(latest)]


def _read(path: Path, notes: list[str]) -> Iterator[HeldOut]:
    """Yield the evaluations of a file; a torn last line is still being written."""
    try:
        for number, line in enumerate(plain_lines(path), start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line, HeldOut)
            except FieldError as error:
                notes.append(f"{path}:{number}: not an evaluation: {error}")
    except FileNotFoundError:
        return
    except OSError as error:
        notes.append(f"{path}: {error.strerror or error}")


def gains(before: HeldOut, after: HeldOut, name: str) -> dict[Problem, float]:
    """Return what a figure gained on each problem with a value in both, in the order of ``before``."""
    old, new = before.means(name), after.means(name)
    keys = {id: (id, before.problems[id]) for id in old if id in new}
    return {key: new[id] - old[id] for id, key in keys.items() if key[1] == after.problems.get(id)}


def reach_of(name: str) -> int:
    """Return the largest possible gain of a figure: a lead is in [-1, 1], and its gain in [-2, 2]."""
    return 2 if name in LEADS else 1


def gain(before: HeldOut, after: HeldOut, name: str) -> Gain | None:
    """Return what a figure gained over the problems with a value in both; None if there are none.

    Each problem counts once, as in ``debate eval``, however many values it has.
    """
    found, reach = gains(before, after, name), reach_of(name)
    if not found:
        return None
    old, new, shared = before.means(name), after.means(name), [id for id, _ in found]
    gained = clustered_mean([one / reach for one in found.values()], shared, signed=True)
    value, low, high = (reach * end for end in (gained.value, gained.low, gained.high))
    counted_by = LEADS[name][0] if name in LEADS else name
    return Gain(
        fmean(old[id] for id in shared),
        fmean(new[id] for id in shared),
        replace(gained, value=value, low=low, high=high),
        min(sum(one.figures[counted_by][id][1] for id in shared) for one in (before, after)),
        len(before.problems.keys() | after.problems) - len(shared),
    )


NOT_TWO = "there are not two evaluations of the same problems to compare"


def sentence(evaluations: Sequence[HeldOut], name: str = DIRECT) -> str:
    """Return in one sentence what a figure was before training and is after it, and what that tells."""
    head = f"Held-out {FIGURES.get(name, name)}"
    if not evaluations:
        return f"{head}: not known, no evaluation was made."
    first, last = evaluations[0], evaluations[-1]
    found = gain(first, last, name) if len(evaluations) > 1 else None
    if found is None:
        alone = "; ".join(_alone(one, name) for one in (first, last)[: len(evaluations)])
        return f"{head}: {alone}; {NOT_TWO}."
    values = f"{share(found.before)} {_when(first)} -> {share(found.after)} {_when(last)}"
    return f"{head}: {values}, {_in_words(found)}."


def sentences(evaluations: Sequence[HeldOut]) -> list[str]:
    """Return the sentence of one agent's accuracy, then those of the other figures that were measured."""
    others = [name for name in FIGURES if any(one.figures.get(name) for one in evaluations)]
    return [sentence(evaluations, name) for name in dict.fromkeys((DIRECT, *others))]


def _when(one: HeldOut) -> str:
    return f"after {counted(one.step, 'step')}" if one.step else "before the first step"


def _alone(one: HeldOut, name: str) -> str:
    """Return a figure of one evaluation with its interval."""
    estimate = one.estimate(name)
    if estimate is None:
        return f"without a value {_when(one)}"
    bounds = interval(max(estimate.low, 0.0), min(estimate.high, 1.0), share)
    return f"{share(estimate.value)} ({bounds}) {_when(one)}, {counted(estimate.clusters, 'problem')}"


def on_problems(found: Gain) -> str:
    """Return the number of problems of a gain, and a note if some are missing."""
    problems = counted(found.difference.clusters, "problem")
    return f"on the {problems} with a value in both" if found.left_out else problems


def _in_words(found: Gain) -> str:
    """Return a difference with its interval, its problems, and whether it tells anything."""
    gained, problems = found.difference, f"{on_problems(found)}, paired"
    if not isfinite(gained.low) or not isfinite(gained.high):
        return f"{signed_share(gained.value)}, {problems}: too few for an interval"
    bounds = interval(max(gained.low, -1.0), min(gained.high, 1.0), signed_share)
    text = f"{signed_share(gained.value)} ({bounds}), {problems}"
    return text if gained.excludes_zero else f"{text}: no clear change"
