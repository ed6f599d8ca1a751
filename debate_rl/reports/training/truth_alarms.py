"""Collapses of what is rewarded against what is true: reward explosion, votes, held-out problems, form."""

from __future__ import annotations

import numpy as np

from debate_rl.reports.training.alarms import BASE, Alarm, earliest, first
from debate_rl.reports.training.curves import Curves, Numbers, Steps, trailing_mean
from debate_rl.reports.training.files import STREAMS

EXPLODED, TIMES, SPREAD = 1.5, 5.0, 5.0
PARTING, TRUTH_FALL = 0.3, 0.05
LIFT, JUDGE = -0.15, 0.4
GAIN = 0.05
FORM_RISE, FORM_WAIT, FLAT = 0.2, 100, 0.01
HELD_OUT = ("eval/direct/accuracy", "eval/debate/winner/accuracy")


def reward_explosion(curves: Curves) -> Alarm | None:
    """Return when a stream's mean exceeded 1.5 and 5 times its first, or its spread 5 and 5 times that."""
    alarms: list[Alarm | None] = []
    for stream in STREAMS:
        for part, most in (("mean", EXPLODED), ("std", SPREAD)):
            steps, values = curves.of(f"reward/{stream}/{part}")
            if not len(values):
                continue
            size = np.abs(values)
            threshold = max(most, TIMES * float(size[0]))
            alarms.append(first(steps, size > threshold, size, threshold, f"reward/{stream}/{part} exploded"))
    return earliest(*alarms)


def peer_truth(curves: Curves) -> Alarm | None:
    """Return when the winner's peer reward, in [0, 1], gained .3 on truth while truth fell (means of 10).

    Truth is the share of right winners; both against their first 10 values.
    """
    peer, right = curves.dense("sample/winner_peer"), curves.dense("sample/winner_accuracy")
    known = np.isfinite(peer) & np.isfinite(right)
    if known.sum() < 2 * BASE:
        return None
    steps = curves.steps[known][BASE - 1 :]
    praise, truth = (_gained(column[known]) for column in (peer, right))
    gap = praise - truth
    fires = (gap > PARTING) & (truth < -TRUTH_FALL)
    fires[:BASE] = False
    return first(steps, fires, gap, PARTING, "the voted winner's praise grew and its truth fell")


def votes_against_truth(curves: Curves) -> Alarm | None:
    """Return when votes chose worse than a draw by .15, or fewer than .4 were right or ties (10 steps)."""
    steps, lift = curves.of("winner/lift")
    lifts = trailing_mean(lift, BASE)
    counted, decided = curves.dense("judge/accuracy"), curves.dense("judge/decidable_votes")
    known = np.isfinite(counted) & np.isfinite(decided)
    right = trailing_mean(np.where(known, counted * decided, 0.0)[known], BASE)
    cast = trailing_mean(decided[known], BASE)
    valid, ties = np.nan_to_num(curves.dense("votes/valid")[known]), curves.dense("votes/ties")[known]
    tied = trailing_mean(np.nan_to_num(ties) / np.maximum(valid, 1.0), BASE)
    share = right / np.maximum(cast, 1e-12) + tied
    enough = cast * BASE >= 100
    return earliest(
        first(steps[BASE - 1 :], lifts < LIFT, lifts, LIFT, "votes choose worse than a draw"),
        first(
            curves.steps[known][BASE - 1 :],
            enough & (share < JUDGE),
            share,
            JUDGE,
            "votes are mostly for the wrong side",
        ),
    )


def held_out(curves: Curves) -> Alarm | None:
    """Return when held-out accuracy lay below its best, intervals apart, twice in a row.

    Training accuracy (mean of 10 steps) must be .05 above that at the best evaluation.
    """
    return earliest(*(_parted(curves, name) for name in HELD_OUT))


def _parted(curves: Curves, name: str) -> Alarm | None:
    steps, values = curves.of(name)
    low, high = (_bound(curves, name, steps, values, end) for end in ("low", "high"))
    trained = _trailing_at(curves, "accuracy", steps)
    best, below = 0, 0
    for place in range(len(values)):
        if values[place] > values[best]:
            best = place
        apart = high[place] < low[best] and trained[place] >= trained[best] + GAIN
        below = below + 1 if apart else 0
        if below == 2:
            where = f"at step {steps[best] + 1}, where the curves part"
            why = f"{name} was best {where}, and fell while training accuracy rose"
            return Alarm(int(steps[place]), float(values[place]), float(low[best]), why)
    return None


def format_only(curves: Curves) -> Alarm | None:
    """Return when form had risen by .2 for 100 steps, and accuracy by less than .01 (means of 20)."""
    form, right = curves.dense("format/valid"), curves.dense("accuracy")
    known = np.isfinite(form) & np.isfinite(right)
    width = 2 * BASE
    if known.sum() < width + FORM_WAIT:
        return None
    steps = curves.steps[known][width - 1 :]
    risen, gained = (_gained(column[known], width) for column in (form, right))
    since = np.arange(len(risen)) - np.argmax(risen >= FORM_RISE)
    fires = (risen >= FORM_RISE) & (since >= FORM_WAIT) & (gained < FLAT)
    fires &= bool((risen >= FORM_RISE).any())
    return first(steps, fires, gained, FLAT, "the form got better and the answers did not")


def _gained(values: Numbers, width: int = BASE) -> Numbers:
    """Return the trailing means less the first of them, (n - width + 1,)."""
    means = trailing_mean(values, width)
    return means - means[0]


def _bound(curves: Curves, name: str, steps: Steps, values: Numbers, end: str) -> Numbers:
    """Return the bounds at the steps; where there are none, .1 off."""
    found = curves.dense(f"{name}/{end}")[np.searchsorted(curves.steps, steps)]
    return np.where(np.isfinite(found), found, values + (0.1 if end == "high" else -0.1))


def _trailing_at(curves: Curves, name: str, steps: Steps) -> Numbers:
    """Return the mean of the last 10 values at each step; nan before there is one."""
    at, values = curves.of(name)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.searchsorted(at, steps, side="right")
    begin = np.maximum(end - BASE, 0)
    return np.where(end > begin, (sums[end] - sums[begin]) / np.maximum(end - begin, 1), np.nan)
