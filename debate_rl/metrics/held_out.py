"""RUN/held_out.jsonl: the figures of every held-out problem at each evaluation, and their gains.

Each evaluation is one line, synced to disk before the run continues. ``debate eval`` writes a line of
the same form to the folder of each evaluation of a checkpoint.
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
FIGURES = {DIRECT: "accuracy of one agent alone", WINNER: "winner accuracy", JUDGE: "judge accuracy"}
"""The figures that are compared, and their names in sentences."""
LEADS = {
    "debate/winner_minus_direct": (WINNER, DIRECT),
    "debate/winner_minus_self_consistency": (WINNER, "direct/self_consistency"),
    "debate/majority_minus_self_consistency": ("debate/majority", "direct/self_consistency"),
}
"""Differences between two figures of one evaluation, over the problems with a value of both figures."""
COUNTS = ("/agents", "/rounds", "/calls")
"""Suffixes of figures that are counts. All other figures except tokens are rates."""
FOLDERS = 200
"""Maximum number of folders of evaluations that are read."""
Problem = tuple[str, str]
"""A problem's id and checksum. Two problems with the same id are the same if their checksums are equal."""


class HeldOut(Value, frozen=True):
    """One evaluation of weights that have been trained for ``step`` steps.

    ``problems``: a checksum of each graded problem, by problem id.
    ``figures[name][id]``: the sum and the number of a figure's values on a problem. A value is a rate in [0,
    1], or a count (tokens, and the figures of ``COUNTS``). A problem without values has no entry.
    ``samples``, ``ungraded``: as in ``Scores``.
    ``series``: "" for an evaluation during training. For ``debate eval``, a checksum of everything about the
    evaluation except the weights, so that it is equal for evaluations that differ only in their weights.
    ``data``: the name of a further held-out set of a run, or "" for the first set.
    """

    step: int
    problems: dict[str, str]
    figures: dict[str, dict[str, tuple[float, int]]]
    samples: int = 1
    ungraded: int = 0
    series: str = ""
    data: str = ""

    def estimate(self, name: str) -> Estimate | None:
        """Return a figure over all problems with an interval clustered by problem, or None if empty."""
        if name in LEADS:
            leads = self.means(name)
            return clustered_mean([*leads.values()], [*leads], signed=True) if leads else None
        values = [
            (total / count, id)  # the mean replaces each value, because only their sum matters
            for id, (total, count) in self.figures.get(name, {}).items()
            for _ in range(count)
        ]
        return clustered_mean([value for value, _ in values], [id for _, id in values]) if values else None

    def totals(self, name: str) -> dict[Problem, tuple[float, float]]:
        """Return the sum and the number of a figure's values on each problem. A lead counts as one value."""
        leads = name in LEADS
        found = (
            {id: (lead, 1) for id, lead in self.means(name).items()} if leads else self.figures.get(name, {})
        )
        return {(id, self.problems[id]): pair for id, pair in found.items()}

    def means(self, name: str) -> dict[str, float]:
        """Return the mean of a figure (of a lead: the difference of means) on each problem with a value."""
        if name in LEADS:
            ones, others = map(self.means, LEADS[name])
            return {id: one - others[id] for id, one in ones.items() if id in others}
        return {id: total / count for id, (total, count) in self.figures.get(name, {}).items()}


class Gain(NamedTuple):
    """One figure in an earlier and a later evaluation, over the problems with a value in both.

    ``before``, ``after``: the mean over these problems of the mean on each problem.
    ``difference``: the mean over problems of after minus before, with its 95% interval.
    ``values``: how many values the means are taken over, in the evaluation that has fewer.
    ``left_out``: the number of problems of either evaluation that do not have a value in both.
    """

    before: float
    after: float
    difference: Estimate
    values: int
    left_out: int


def append_held_out(path: Path, evaluation: HeldOut) -> None:
    """Append an evaluation to a file as one line, and sync the file to disk."""
    with LineFile(path) as file:
        file.write(to_line(evaluation))


def to_line(evaluation: HeldOut) -> bytes:
    """Return an evaluation as one line of JSON without a newline."""
    return msgspec.json.encode(evaluation)


def read_held_out(run: Path, notes: list[str] | None = None, *, data: str = "") -> list[HeldOut]:
    """Return the evaluations of a run that can be compared, in order of step.

    These are the evaluations made during training. If training has no evaluation before and after, they are a
    series of ``debate eval`` that begins earlier or ends later, if there is one. Between two series with the
    same ends, the one with more evaluations counts. With ``data``, they are the evaluations made during
    training on that further held-out set. ``notes`` receives a line for everything that cannot be read.
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
    """Return the evaluations in a run's file in the order of its lines, or an empty list without a file."""
    return list(_read(path, []))


def evaluated_first(path: Path) -> dict[str, float]:
    """Return the figures from before the first step under the names of metrics.jsonl, without bounds."""
    return {
        f"eval/{one.data}/{name}" if one.data else f"eval/{name}": found.value
        for one in evaluations_of(path)
        if one.step == 0
        for name in (*one.figures, *LEADS)
        if (found := one.estimate(name)) is not None
    }


def kept_steps(path: Path) -> set[tuple[str, int]]:
    """Return the held-out set and the step of each evaluation in a run's file."""
    return {(one.data, one.step) for one in _read(path, [])}


def _by_step(evaluations: Iterable[HeldOut]) -> list[HeldOut]:
    latest = {one.step: one for one in evaluations}  # the last line of a repeated step counts
    return [latest[step] for step in sorted(latest)]


def _read(path: Path, notes: list[str]) -> Iterator[HeldOut]:
    """Yield the evaluations of a file, without an incomplete last line, which is still being written."""
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
    """Return the gain of a figure on each problem with a value in both, in the order of ``before``."""
    old, new = before.means(name), after.means(name)
    keys = {id: (id, before.problems[id]) for id in old if id in new}
    return {key: new[id] - old[id] for id, key in keys.items() if key[1] == after.problems.get(id)}


def reach_of(name: str) -> int:
    """Return the largest possible gain of a figure: a lead is in [-1, 1], and its gain in [-2, 2]."""
    return 2 if name in LEADS else 1


def gain(before: HeldOut, after: HeldOut, name: str) -> Gain | None:
    """Return the gain of a figure over the problems with a value in both, each counted once, or None."""
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
    """Return a sentence with a figure before and after training, and whether it clearly changed."""
    head = f"Held-out {FIGURES.get(name, name)}"
    if not evaluations:
        return f"{head}: unknown, because there is no evaluation."
    first, last = evaluations[0], evaluations[-1]
    found = gain(first, last, name) if len(evaluations) > 1 else None
    if found is None:
        alone = "; ".join(_alone(one, name) for one in (first, last)[: len(evaluations)])
        return f"{head}: {alone}; {NOT_TWO}."
    values = f"{share(found.before)} {_when(first)} -> {share(found.after)} {_when(last)}"
    return f"{head}: {values}, {_in_words(found)}."


def sentences(evaluations: Sequence[HeldOut]) -> list[str]:
    """Return the sentence about one agent's accuracy, then those about other measured figures."""
    others = [name for name in FIGURES if any(one.figures.get(name) for one in evaluations)]
    return [sentence(evaluations, name) for name in dict.fromkeys((DIRECT, *others))]


def _when(one: HeldOut) -> str:
    return f"after {counted(one.step, 'step')}" if one.step else "before the first step"


def _alone(one: HeldOut, name: str) -> str:
    estimate = one.estimate(name)
    if estimate is None:
        return f"without a value {_when(one)}"
    bounds = interval(max(estimate.low, 0.0), min(estimate.high, 1.0), share)
    return f"{share(estimate.value)} ({bounds}) {_when(one)}, {counted(estimate.clusters, 'problem')}"


def on_problems(found: Gain) -> str:
    """Return the number of problems of a gain in words, with a note if some problems were left out."""
    problems = counted(found.difference.clusters, "problem")
    return f"on the {problems} with a value in both" if found.left_out else problems


def _in_words(found: Gain) -> str:
    """Return a difference in words: its interval, its problems, and a note if the change is not clear."""
    gained, problems = found.difference, f"{on_problems(found)}, paired"
    if not isfinite(gained.low) or not isfinite(gained.high):
        return f"{signed_share(gained.value)}, {problems}: too few for an interval"
    bounds = interval(max(gained.low, -1.0), min(gained.high, 1.0), signed_share)
    text = f"{signed_share(gained.value)} ({bounds}), {problems}"
    return text if gained.excludes_zero else f"{text}: no clear change"
