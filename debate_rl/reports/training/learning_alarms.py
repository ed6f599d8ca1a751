"""Collapses that the learner's own figures show: ratio, entropy, log-probabilities, gradients, KL, time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from debate_rl.reports.training.alarms import (
    BASE,
    MARKOVIAN,
    RLVR,
    Alarm,
    detector,
    earliest,
    ends_from,
    first,
    sustained,
)
from debate_rl.reports.training.curves import Curves, Numbers, trailing_median

RATIO, RATIO_NEAR = 2.0, 1.25
ENTROPY_LOW, ENTROPY_FAST, ENTROPY_HIGH = 0.1, 0.25, 3.0
LOGPROB = 1.0
GRADIENT, GRADIENT_ALONE = 10.0, 100.0
KL_MEAN, KL_MAX, KL_FIRST = 0.5, 1000.0, 100.0
MISMATCH = 0.01
STALL_S, STALL = 600.0, 5.0
PHASES = ("rollout", "reward", "learn", "record")
SPLIT = {
    **{"tokens/generated": "tokens", "tokens/completion_max": "longest reply"},
    **{f"seconds/{phase}": phase for phase in (*PHASES, "grade")},
}
"""What a slow step is split into, with its name in the alarm."""
WATCHED = ("loss", "grad_norm", "ratio_mean", "kl_mean", "entropy_mean")
BAD_STEPS = 3


@detector(
    source=f"{MARKOVIAN}: 1.00, 1.17, then 21.75 and 26.25",
    reads=("ratio_mean",),
    least=1,
    fix="a lower learner.lr, fewer minibatches or epochs an update",
)
def ratio(curves: Curves) -> Alarm | None:
    """`ratio_mean` outside 1/2 to 2 once, or outside 1/1.25 to 1.25 in 3 steps running."""
    steps, values = curves.of("ratio_mean")
    away = np.abs(np.log(np.maximum(values, 1e-30)))
    once = first(steps, away > np.log(RATIO), values, RATIO, "the mean ratio left 1/2 to 2")
    near = sustained(away > np.log(RATIO_NEAR), 3, 3)
    return earliest(once, first(steps, near, values, RATIO_NEAR, "the mean ratio stayed off 1 for 3 steps"))


@detector(
    source=f"{RLVR}: entropy 0.008 when KL exploded",
    reads=("entropy_mean",),
    least=15,
    fix="a lower learner.lr, a higher learner.beta, an entropy bonus",
)
def entropy(curves: Curves) -> Alarm | None:
    """Median of 5 of `entropy_mean` below 1/10 of, or above 3 times, the median of the first 10; or below
    1/4 of what it was 20 steps before.
    """
    steps, values = curves.of("entropy_mean")
    if len(values) < BASE + 5:
        return None
    base = max(float(np.median(values[:BASE])), 1e-12)
    level, steps = trailing_median(values, 5) / base, steps[4:]
    late = ends_from(BASE + 4, len(level), 5)
    high = late & (level > ENTROPY_HIGH)
    before = np.concatenate([np.full(min(20, len(level)), np.inf), level[:-20]])
    fast = np.isfinite(before) & (level < ENTROPY_FAST * before)
    return earliest(
        first(steps, late & (level < ENTROPY_LOW), level, ENTROPY_LOW, "entropy fell to a tenth"),
        first(steps, late & fast, level, ENTROPY_FAST, "entropy fell to a quarter within 20 steps"),
        first(steps, high, level, ENTROPY_HIGH, "entropy is three times what it was"),
    )


@detector(
    source=f"{MARKOVIAN}: -1.6, -1.9, then -41",
    reads=("sample/logprob",),
    least=4,
    fix="a lower learner.lr; go back to an earlier checkpoint",
)
def logprob(curves: Curves) -> Alarm | None:
    """Mean log-probability of the sampled tokens below twice the median of its first 3 values, less 1."""
    steps, values = curves.of("sample/logprob")
    if not len(values):
        return None
    threshold = 2 * min(0.0, float(np.median(values[:3]))) - LOGPROB
    crashed = (values < threshold) & ends_from(2, len(values))
    return first(steps, crashed, values, threshold, "the log-probability of what is said crashed")


@detector(
    source=f"{RLVR}: 0.4 to 46.75, 148, 294",
    reads=("grad_norm",),
    least=11,
    fix="learner.max_grad_norm = 1.0, a lower learner.lr, a longer warm-up",
)
def gradient(curves: Curves) -> Alarm | None:
    """`grad_norm` over 10 times the median of the 50 steps before in 3 of 5 steps; or over 100 times once."""
    steps, values = curves.of("grad_norm")
    if len(values) <= BASE:
        return None
    medians = np.maximum(_running_median(values), 1e-12)
    times = np.where(np.arange(len(values)) >= BASE, values / medians, 0.0)
    often, why = sustained(times > GRADIENT, 3, 5), "the gradient is 10 times its median, in 3 of 5 steps"
    return earliest(
        first(steps, times > GRADIENT_ALONE, times, GRADIENT_ALONE, "the gradient is 100 times its median"),
        first(steps, often, times, GRADIENT, why),
    )


def _running_median(values: Numbers, width: int = 50, share: int = 1 << 14) -> Numbers:
    """Return (n,): the median of the up to ``width`` values before each value, 0 for the first."""
    windows = sliding_window_view(np.concatenate([np.full(width, np.nan), values[:-1]]), width)
    parts = [np.nanmedian(windows[begin : begin + share], axis=1) for begin in range(1, len(values), share)]
    return np.concatenate([np.zeros(1), *parts])


@detector(
    source=f"{RLVR}: loss NaN after a KL of 2685, gradient inf at step 100",
    reads=(*WATCHED, "bad_steps"),
    least=1,
    fix="learner.adam_eps of 1e-5 or more, a warm-up, bfloat16 in place of float16",
)
def not_finite(curves: Curves) -> Alarm | None:
    """Loss, gradient, ratio, KL or entropy is not a finite number; or `bad_steps` reaches 3."""
    alarms = [
        Alarm(curves.broken[name][0], np.inf, 0.0, f"{name} is not finite")
        for name in WATCHED
        if curves.broken.get(name)
    ]
    steps, values = curves.of("bad_steps")
    bad = first(steps, values >= BAD_STEPS, values, BAD_STEPS, "3 steps in a row without an update")
    return earliest(*alarms, bad)


@detector(
    source=f"{RLVR}: maxima of 100 (padding), 2685 and 9748; its 0.3, called exploded, healthy runs reach",
    reads=("kl_mean", "kl_max"),
    least=3,
    fix="a higher learner.beta, a lower learner.lr; look at the worst tokens (debate inspect tokens)",
)
def kl(curves: Curves) -> Alarm | None:
    """Median of 5 of `kl_mean` over .5; or `kl_max` over 1000 in 4 of 5 steps, or over 100 (median) in the
    first 3.
    """
    steps, values = curves.of("kl_mean")
    mean = trailing_median(values, 5)
    at, largest = curves.of("kl_max")
    begun = trailing_median(largest[:3], 3)
    far = sustained(largest > KL_MAX, 4, 5)
    return earliest(
        first(at[2:], begun > KL_FIRST, begun, KL_FIRST, "the reference is not where training began"),
        first(steps[4:], mean > KL_MEAN, mean, KL_MEAN, "the policy is far from its reference"),
        first(at, far, largest, KL_MAX, "single tokens are far from the reference"),
    )


@detector(
    source=f"{RLVR}: a temperature in one place and not in the other",
    reads=("mismatch_kl",),
    least=5,
    fix="the same temperature, model and numeric type for sampler and trainer",
)
def mismatch(curves: Curves) -> Alarm | None:
    """Median of 5 of `mismatch_kl` over 0.01."""
    steps, values = curves.of("mismatch_kl")
    level = trailing_median(values, 5)
    why = "sampler and trainer give different probabilities: temperature, model or numeric type"
    return first(steps[4:], level > MISMATCH, level, MISMATCH, why)


@detector(
    source=f"{RLVR}: 10 minutes stuck at a step; 30 s, then 300 s a step before a run hung",
    reads=("seconds/rollout", "seconds/learn"),
    least=11,
    fix="look at the phase that took the time",
)
def stall(curves: Curves) -> Alarm | None:
    """A step over 10 minutes and over 5 times the median of the 50 before."""
    columns = [np.nan_to_num(curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES]
    total = np.sum(columns, axis=0)
    known = total > 0
    steps, values = curves.steps[known], total[known]
    if len(values) <= BASE:
        return None
    usual = _running_median(values)
    slow = (np.arange(len(values)) >= BASE) & (values > STALL_S) & (values > STALL * usual)
    alarm = first(steps, slow, values, STALL_S, "")
    if alarm is None:
        return None
    row = int(np.flatnonzero(curves.steps == alarm.step)[0])
    phase = PHASES[int(np.argmax([column[row] for column in columns]))]
    return replace(alarm, why=f"the step hung, most of it in {phase}{_slower(curves, row)}")


def _slower(curves: Curves, row: int) -> str:
    """Return how many times its median of the 50 steps before each part of a step took.

    Of tokens as well: replies that grew longer are no slower machine.
    """
    parts: list[str] = []
    for name, label in SPLIT.items():
        column = np.nan_to_num(curves.dense(name), nan=0.0)
        usual = float(np.median(column[max(0, row - 50) : row]))
        if usual > 0:
            parts.append(f"{label} x{column[row] / usual:.1f}")
    return f" (against the steps before: {', '.join(parts)})" if parts else ""
