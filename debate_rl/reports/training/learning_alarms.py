"""Collapses that the learner's own figures show: ratio, entropy, log-probabilities, gradients, KL, time."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from debate_rl.reports.training.alarms import BASE, Alarm, after, earliest, first, held
from debate_rl.reports.training.curves import Curves, Numbers, trailing_median

RATIO, RATIO_NEAR = 2.0, 1.25
ENTROPY_LOW, ENTROPY_FAST, ENTROPY_HIGH = 0.1, 0.25, 3.0
LOGPROB = 1.0
GRADIENT, GRADIENT_ALONE = 10.0, 100.0
KL_MEAN, KL_MAX, KL_FIRST = 0.5, 1000.0, 100.0
MISMATCH = 0.01
STALL_S, STALL = 600.0, 5.0
PHASES = ("rollout", "reward", "learn", "record")
WATCHED = ("loss", "grad_norm", "ratio_mean", "kl_mean", "entropy_mean")
BAD_STEPS = 3


def ratio(curves: Curves) -> Alarm | None:
    """Return when the mean ratio of probabilities left [1/2, 2], or [1/1.25, 1.25] for three steps."""
    steps, values = curves.of("ratio_mean")
    away = np.abs(np.log(np.maximum(values, 1e-30)))
    once = first(steps, away > np.log(RATIO), values, RATIO, "the mean ratio left 1/2 to 2")
    near = held(away > np.log(RATIO_NEAR), 3, 3)
    return earliest(once, first(steps, near, values, RATIO_NEAR, "the mean ratio stayed off 1 for 3 steps"))


def entropy(curves: Curves) -> Alarm | None:
    """Return when entropy (median of 5) fell to a tenth of its first, fast to a quarter, or tripled."""
    steps, values = curves.of("entropy_mean")
    if len(values) < BASE + 5:
        return None
    base = max(float(np.median(values[:BASE])), 1e-12)
    level, steps = trailing_median(values, 5) / base, steps[4:]
    late = after(BASE + 4, len(level), 5)
    before = np.concatenate([np.full(min(20, len(level)), np.inf), level[:-20]])
    fast = np.isfinite(before) & (level < ENTROPY_FAST * before)
    return earliest(
        first(steps, late & (level < ENTROPY_LOW), level, ENTROPY_LOW, "entropy fell to a tenth"),
        first(steps, late & fast, level, ENTROPY_FAST, "entropy fell to a quarter within 20 steps"),
        first(
            steps, late & (level > ENTROPY_HIGH), level, ENTROPY_HIGH, "entropy is three times what it was"
        ),
    )


def logprob(curves: Curves) -> Alarm | None:
    """Return when a sampled token's mean log-probability fell below twice its first value, less 1 nat."""
    steps, values = curves.of("sample/logprob")
    if not len(values):
        return None
    threshold = 2 * min(0.0, float(np.median(values[:3]))) - LOGPROB
    crashed = (values < threshold) & after(2, len(values))
    return first(steps, crashed, values, threshold, "the log-probability of what is said crashed")


def gradient(curves: Curves) -> Alarm | None:
    """Return when the gradient's norm was 10 times its median so far in 3 of 5 steps, or 100 times once."""
    steps, values = curves.of("grad_norm")
    if len(values) <= BASE:
        return None
    medians = np.maximum(_running_median(values), 1e-12)
    times = np.where(np.arange(len(values)) >= BASE, values / medians, 0.0)
    return earliest(
        first(steps, times > GRADIENT_ALONE, times, GRADIENT_ALONE, "the gradient is 100 times its median"),
        first(
            steps,
            held(times > GRADIENT, 3, 5),
            times,
            GRADIENT,
            "the gradient is 10 times its median, in 3 of 5 steps",
        ),
    )


def _running_median(values: Numbers, width: int = 50, share: int = 1 << 14) -> Numbers:
    """Return (n,): the median of the up to ``width`` values before each place, 0 for the first."""
    windows = sliding_window_view(np.concatenate([np.full(width, np.nan), values[:-1]]), width)
    parts = [np.nanmedian(windows[begin : begin + share], axis=1) for begin in range(1, len(values), share)]
    return np.concatenate([np.zeros(1), *parts])


def not_finite(curves: Curves) -> Alarm | None:
    """Return when a figure of the learner was NaN or infinite, or 3 steps in a row had no update applied."""
    alarms = [
        Alarm(curves.broken[name][0], np.inf, 0.0, f"{name} is not finite")
        for name in WATCHED
        if curves.broken.get(name)
    ]
    steps, values = curves.of("bad_steps")
    bad = first(steps, values >= BAD_STEPS, values, BAD_STEPS, "3 steps in a row without an update")
    return earliest(*alarms, bad)


def kl(curves: Curves) -> Alarm | None:
    """Return when the KL a token exceeded .5 (median of 5), or its maximum 1000 in 4 of 5 steps.

    Also when that maximum exceeded 100 in the first 3 steps (median), before the policy could have moved.
    """
    steps, values = curves.of("kl_mean")
    mean = trailing_median(values, 5)
    at, largest = curves.of("kl_max")
    begun = trailing_median(largest[:3], 3)
    far = held(largest > KL_MAX, 4, 5)
    return earliest(
        first(at[2:], begun > KL_FIRST, begun, KL_FIRST, "the reference is not where training began"),
        first(steps[4:], mean > KL_MEAN, mean, KL_MEAN, "the policy is far from its reference"),
        first(at, far, largest, KL_MAX, "single tokens are far from the reference"),
    )


def mismatch(curves: Curves) -> Alarm | None:
    """Return when the KL between sampler and trainer exceeded 0.01, median of 5 steps."""
    steps, values = curves.of("mismatch_kl")
    level = trailing_median(values, 5)
    why = "sampler and trainer give different probabilities: temperature, model or numeric type"
    return first(steps[4:], level > MISMATCH, level, MISMATCH, why)


def stall(curves: Curves) -> Alarm | None:
    """Return when a step took over 10 minutes and 5 times the median of the 50 before; names its phase."""
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
    return Alarm(alarm.step, alarm.value, STALL_S, f"the step hung, most of it in {phase}")
