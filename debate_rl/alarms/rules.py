"""When each detector fires. Their rules in words, what they read and propose: detectors.toml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from debate_rl.alarms.curves import (
    BASE,
    SOLVED,
    Alarm,
    Curves,
    Steps,
    earliest,
    ends_from,
    first,
    gained,
    running_median,
    sustained,
    trailing_mean,
    trailing_median,
    trailing_share,
)
from debate_rl.alarms.metrics_file import FORMS, GRADERS, STREAMS
from debate_rl.metrics.intervals import Numbers

LONG = 2 * BASE  # of figures that jump with the problems of a step
MISMATCH = 0.01
"""The most KL of sampler and trainer, in nats a token, that rounding explains."""
STALL_S, STALL = 600.0, 5.0
PHASES = ("rollout", "reward", "learn", "record")
SPLIT = {
    **{"tokens/generated": "tokens", "tokens/completion_max": "longest reply"},
    **{f"seconds/{phase}": phase for phase in (*PHASES, "grade")},
}
"""What a slow step is split into, with its name in the alarm."""
WATCHED = ("loss", "grad_norm", "ratio_mean", "kl_mean", "entropy_mean")
APART, STANDS = 0.15, 0.02
"""By how much one grader's figure leaves another's, and how far the other stands still."""


def ratio(curves: Curves) -> Alarm | None:
    far, near = 2.0, 1.25
    steps, values = curves.of("ratio_mean")
    away = np.abs(np.log(np.maximum(values, 1e-30)))
    stays = sustained(away > np.log(near), 3, 3)
    return earliest(
        first(steps, away > np.log(far), values, far, "the mean ratio left 1/2 to 2"),
        first(steps, stays, values, near, "the mean ratio stayed off 1 for 3 steps"),
    )


def entropy(curves: Curves) -> Alarm | None:
    low, fast, high = 0.1, 0.25, 3.0
    steps, values = curves.of("entropy_mean")
    if len(values) < BASE + 5:
        return None
    base = max(float(np.median(values[:BASE])), 1e-12)
    level, steps = trailing_median(values, 5) / base, steps[4:]
    late = ends_from(BASE + 4, len(level), 5)
    before = np.concatenate([np.full(min(20, len(level)), np.inf), level[:-20]])
    falls = np.isfinite(before) & (level < fast * before)
    return earliest(
        first(steps, late & (level < low), level, low, "entropy fell to a tenth"),
        first(steps, late & falls, level, fast, "entropy fell to a quarter within 20 steps"),
        first(steps, late & (level > high), level, high, "entropy is three times what it was"),
    )


def logprob(curves: Curves) -> Alarm | None:
    steps, values = curves.of("sample/logprob")
    if not len(values):
        return None
    threshold = 2 * min(0.0, float(np.median(values[:3]))) - 1.0
    crashed = (values < threshold) & ends_from(2, len(values))
    return first(steps, crashed, values, threshold, "the log-probability of sampled tokens crashed")


def gradient(curves: Curves) -> Alarm | None:
    high, alone = 10.0, 100.0
    steps, values = curves.of("grad_norm")
    if len(values) <= BASE:
        return None
    medians = np.maximum(running_median(values), 1e-12)
    times = np.where(np.arange(len(values)) >= BASE, values / medians, 0.0)
    often, why = sustained(times > high, 3, 5), "the gradient is 10 times its median, in 3 of 5 steps"
    return earliest(
        first(steps, times > alone, times, alone, "the gradient is 100 times its median"),
        first(steps, often, times, high, why),
    )


def not_finite(curves: Curves) -> Alarm | None:
    alarms = [
        Alarm(curves.broken[name][0], np.inf, 0.0, f"{name} is not finite")
        for name in WATCHED
        if curves.broken.get(name)
    ]
    steps, values = curves.of("bad_steps")
    return earliest(*alarms, first(steps, values >= 3, values, 3, "3 steps in a row without an update"))


def kl(curves: Curves) -> Alarm | None:
    high, token, at_first = 0.5, 1000.0, 100.0
    steps, values = curves.of("kl_mean")
    mean = trailing_median(values, 5)
    at, largest = curves.of("kl_max")
    begun, far = trailing_median(largest[:3], 3), sustained(largest > token, 4, 5)
    return earliest(
        first(at[2:], begun > at_first, begun, at_first, "the reference is not where training began"),
        first(steps[4:], mean > high, mean, high, "the policy is far from its reference"),
        first(at, far, largest, token, "single tokens are far from the reference"),
    )


def mismatch(curves: Curves) -> Alarm | None:
    steps, values = curves.of("mismatch_kl")
    level = trailing_median(values, 5)
    why = "sampler and trainer give different probabilities: temperature, model or numeric type"
    return first(steps[4:], level > MISMATCH, level, MISMATCH, why)


def stall(curves: Curves) -> Alarm | None:
    columns = [np.nan_to_num(curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES]
    total = np.sum(columns, axis=0)
    steps, values = curves.steps[total > 0], total[total > 0]
    if len(values) <= BASE:
        return None
    usual = running_median(values)
    slow = (np.arange(len(values)) >= BASE) & (values > STALL_S) & (values > STALL * usual)
    alarm = first(steps, slow, values, STALL_S, "")
    if alarm is None:
        return None
    row = int(np.flatnonzero(curves.steps == alarm.step)[0])
    phase = PHASES[int(np.argmax([column[row] for column in columns]))]
    return replace(alarm, why=f"the step hung, most of it in {phase}{_slower(curves, row)}")


def _slower(curves: Curves, row: int) -> str:
    """Return how many times its median of the 50 steps before each part of a step took.

    Tokens are among the parts: replies that grew longer are no slower machine.
    """
    parts: list[str] = []
    for name, label in SPLIT.items():
        column = np.nan_to_num(curves.dense(name), nan=0.0)
        usual = float(np.median(column[max(0, row - 50) : row]))
        if usual > 0:
            parts.append(f"{label} x{column[row] / usual:.1f}")
    return f" (against the steps before: {', '.join(parts)})" if parts else ""


def repetition(curves: Curves) -> Alarm | None:
    share, at_first = 0.2, 0.4
    steps, values = curves.of("sample/repeated")
    begun = (np.arange(len(values)) == 0) & (values > at_first)
    what = "replies repeat one piece of text"
    unknown = f"{what} before anything is learnt: the model may not know this prompt form"
    return earliest(
        first(steps, begun, values, at_first, unknown),
        first(steps, sustained(values > share, 2, 3), values, share, what),
    )


def length(curves: Curves) -> Alarm | None:
    low, cut = 0.2, 0.5
    steps, values = curves.of("tokens/completion")
    at, truncated = curves.of("truncated")
    half = trailing_median(truncated, 5)
    alarm = first(at[4:], half > cut, half, cut, "half of the replies are truncated")
    if len(values) < BASE:
        return alarm
    level = trailing_median(values, 5) / max(float(np.median(values[:BASE])), 1e-12)
    short = (level < low) & ends_from(BASE, len(level), 5)
    return earliest(first(steps[4:], short, level, low, "replies became very short"), alarm)


def format_collapse(curves: Curves) -> Alarm | None:
    fallen, hardly, missing, nothing = 0.35, 0.1, 0.5, 0.2
    steps, values = curves.of("format/valid")
    level, lately = trailing_median(values, 5), trailing_mean(values, 2 * BASE)
    fall = np.maximum.accumulate(level) - level
    at, parsed = curves.of("judge/parsed_share")
    votes = trailing_median(parsed, 5)
    had = np.maximum.accumulate(votes) >= missing
    looks, empty = curves.of("sample/empty")
    never = lately <= hardly
    return earliest(
        first(steps[4:], fall > fallen, fall, fallen, "the form of replies got worse"),
        first(steps[2 * BASE - 1 :], never, lately, hardly, "hardly any reply has the form"),
        first(at[4:], had & (votes < missing), votes, missing, "most due comparisons are missing"),
        first(looks, sustained(empty > nothing, 2, 3), empty, nothing, "sections hold N/A or nothing"),
    )


def no_exploration(curves: Curves) -> Alarm | None:
    silent = 0.97
    right = np.nan_to_num(curves.dense("accuracy"), nan=0.0) > SOLVED
    least = 1.5 / curves.group if curves.group and curves.group > 1 else 0.1
    same = np.nan_to_num(curves.dense("completions/distinct"), nan=1.0)
    both = [curves.dense(f"advantage/zero_variance_share/{stream}") for stream in ("peer", "truth")]
    quiet = np.nan_to_num(np.fmin(*both), nan=0.0)  # a stream that is not there has no variance either
    alike, still = (sustained(there & ~right, 5, 5) for there in (same <= least, quiet >= silent))
    why = "no group has any variance, of votes or of truth"
    return earliest(
        first(curves.steps, alike, same, least, "the samples of a problem are all the same"),
        first(curves.steps, still, quiet, silent, why),
    )


def reward_explosion(curves: Curves) -> Alarm | None:
    alarms: list[Alarm | None] = []
    for stream in STREAMS:
        for part, most in (("mean", 1.5), ("std", 5.0)):
            steps, values = curves.of(f"reward/{stream}/{part}")
            size = np.abs(values)
            threshold = max(most, 5 * float(size[0])) if len(size) else most
            alarms.append(first(steps, size > threshold, size, threshold, f"reward/{stream}/{part} exploded"))
    return earliest(*alarms)


def constant_truth(curves: Curves) -> Alarm | None:
    silent, least_mixed = 0.97, 0.1
    alike = np.nan_to_num(curves.dense("advantage/zero_variance_share/truth"), nan=0.0)
    uniform = curves.dense("accuracy/all_right") + curves.dense("accuracy/all_wrong")
    mixed = np.nan_to_num(1 - uniform, nan=0.0)
    partly = curves.dense("reward/truth/n") < curves.dense("accuracy/n")  # the mixed may be the other rounds
    constant = sustained((alike >= silent) & (mixed > least_mixed) & ~partly, 5, 5)
    return first(curves.steps, constant, alike, silent, "right and wrong answers earn the same truth reward")


def one_sided(curves: Curves) -> Alarm | None:
    share = 0.9
    alarms = [_lopsided(curves, "sample/first", "the solution shown first", share)]
    alarms += [_lopsided(curves, f"sample/agent_{a}", f"agent {a}", share, low=False) for a in range(8)]
    valid, ties = curves.dense("votes/valid"), curves.dense("votes/ties")
    tied = np.where(valid > 0, ties / np.maximum(valid, 1.0), np.nan)
    known = np.isfinite(tied)
    unsolved = (np.nan_to_num(curves.dense("accuracy"), nan=0.0) <= SOLVED)[known]
    often = sustained((tied[known] > share) & unsolved, 5, 5)
    alarms.append(first(curves.steps[known], often, tied[known], share, "nearly all votes are ties"))
    return earliest(*alarms)


def _lopsided(curves: Curves, name: str, whom: str, most: float, *, low: bool = True) -> Alarm | None:
    """Return the alarm of wins / votes over trailing windows of at least 100 sampled votes."""
    steps, votes = curves.of(f"{name}/votes")
    wins = curves.dense(f"{name}/wins")[np.isfinite(curves.dense(f"{name}/votes"))]
    share = trailing_share(np.nan_to_num(wins, nan=0.0), votes, 100)
    high = first(steps, share > most, share, most, f"nearly all votes are for {whom}")
    never = first(steps, share < 1 - most, share, 1 - most, f"nearly no vote is for {whom}")
    return earliest(high, never if low else None)


def circular(curves: Curves) -> Alarm | None:
    return _risen(curves, "graph/cycles", 0.2, 0.3, "votes go in circles")


def wrong_consensus(curves: Curves) -> Alarm | None:
    return _risen(curves, "wrong_consensus", 0.25, 0.4, "all agents agree, and are wrong")


def _risen(curves: Curves, name: str, rise: float, least: float, why: str) -> Alarm | None:
    """Return the alarm of a mean of ``BASE`` steps at ``least`` or more, ``rise`` above the first one."""
    steps, values = curves.of(name)
    if len(values) < LONG:
        return None
    level = trailing_mean(values, BASE)
    fires = (level - level[0] >= rise) & (level >= least)
    fires[:BASE] = False
    return first(steps[BASE - 1 :], fires, level, least, why)


def peer_truth(curves: Curves) -> Alarm | None:
    parting, fallen = 0.3, 0.05
    steps, (peer, right) = _together(curves, "sample/winner_peer", "sample/winner_accuracy")
    if len(steps) < LONG:
        return None
    praise, truth = gained(peer), gained(right)
    gap = praise - truth
    fires = (gap > parting) & (truth < -fallen)
    fires[:BASE] = False
    return first(steps[BASE - 1 :], fires, gap, parting, "the winner's praise grew and its truth fell")


def votes_against_truth(curves: Curves) -> Alarm | None:
    least_lift, least_right = -0.15, 0.4
    steps, lift = curves.of("winner/lift")
    lifts = trailing_mean(lift, BASE)
    at, (right, decided) = _together(curves, "judge/accuracy", "judge/decidable_votes")
    rows = np.searchsorted(curves.steps, at)
    hits, cast = trailing_mean(right * decided, BASE), trailing_mean(decided, BASE)
    valid, ties = np.nan_to_num(curves.dense("votes/valid")[rows]), curves.dense("votes/ties")[rows]
    tied = trailing_mean(np.nan_to_num(ties) / np.maximum(valid, 1.0), BASE)
    share = hits / np.maximum(cast, 1e-12) + tied
    wrong = (cast * BASE >= 100) & (share < least_right)
    worse = "votes choose worse than a draw"
    return earliest(
        first(steps[BASE - 1 :], lifts < least_lift, lifts, least_lift, worse),
        first(at[BASE - 1 :], wrong, share, least_right, "votes are mostly for the wrong side"),
    )


def _together(curves: Curves, *names: str, width: int = 1) -> tuple[Steps, list[Numbers]]:
    """Return the steps that have all of these figures, and their trailing means there."""
    columns = [curves.dense(name) for name in names]
    known = np.isfinite(columns).all(axis=0)
    return curves.steps[known][width - 1 :], [trailing_mean(column[known], width) for column in columns]


def held_out(curves: Curves) -> Alarm | None:
    figures = ("eval/direct/accuracy", "eval/debate/winner/accuracy")
    return earliest(*(_parted(curves, name) for name in figures))


def _parted(curves: Curves, name: str) -> Alarm | None:
    gain = 0.05
    steps, values = curves.of(name)
    low, high = curves.bounds(name)
    low, high = np.where(np.isfinite(low), low, values - 0.1), np.where(np.isfinite(high), high, values + 0.1)
    trained = _lately(curves, "accuracy", steps)
    best, below = 0, 0
    for index in range(len(values)):
        if values[index] > values[best]:
            best = index
        apart = high[index] < low[best] and trained[index] >= trained[best] + gain
        below = below + 1 if apart else 0
        if below == 2:
            where = f"at step {steps[best]}, where the curves part"
            why = f"{name} was best {where}, and fell while training accuracy rose"
            return Alarm(int(steps[index]), float(values[index]), float(low[best]), why)
    return None


def _lately(curves: Curves, name: str, steps: Steps) -> Numbers:
    """Return the mean of the last 10 values at each step; nan before there is one."""
    at, values = curves.of(name)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.searchsorted(at, steps, side="right")
    begin = np.maximum(end - BASE, 0)
    return np.where(end > begin, (sums[end] - sums[begin]) / np.maximum(end - begin, 1), np.nan)


def format_only(curves: Curves) -> Alarm | None:
    rise, wait, flat = 0.2, 100, 0.01
    steps, (form, right) = _together(curves, "format/valid", "accuracy")
    if len(steps) < LONG + wait:
        return None
    risen, more = gained(form, LONG), gained(right, LONG)
    since = np.arange(len(risen)) - np.argmax(risen >= rise)
    fires = (risen >= rise) & (since >= wait) & (more < flat)
    return first(steps[LONG - 1 :], fires, more, flat, "the form got better and the answers did not")


def grader_drift(curves: Curves) -> Alarm | None:
    graders, forms = _known(curves, GRADERS), _known(curves, FORMS)
    if not any(name.endswith("]") for name in graders):
        return None
    pairs = [(one, other) for one in graders for other in graders if one != other]
    alarms = [_climbs_alone(curves, *pair) for pair in pairs]
    alarms += [_form_falls(curves, form, graders) for form in forms]
    alarms += [_parted_held_out(curves, *pair) for pair in pairs]
    return earliest(*alarms)


def _known(curves: Curves, names: Sequence[str]) -> list[str]:
    """Return the figures that are known, without that of a grader which was changed on the way."""
    known = [name for name in names if len(curves.of(name)[1]) >= LONG]
    changed = len(np.unique(curves.of("grader/strict")[1])) > 1
    return [name for name in known if name.endswith("]") or not changed]


def _climbs_alone(curves: Curves, one: str, other: str) -> Alarm | None:
    steps, (above, below) = _together(curves, one, other, width=BASE)
    if len(steps) <= BASE:
        return None
    apart = (above - above[0]) - (below - below[0])
    fires = (apart >= APART) & (below - below[0] <= STANDS) & (above > below)
    fires &= ends_from(BASE, len(fires))
    return first(steps, fires, apart, APART, f"{one} climbed and {other} did not")


def _form_falls(curves: Curves, form: str, graders: Sequence[str]) -> Alarm | None:
    steps, (missing, *right) = _together(curves, form, *graders, width=BASE)
    if len(steps) <= BASE:
        return None
    top, least = np.max(right, axis=0), np.minimum.accumulate(missing)
    at_best = top[np.maximum.accumulate(np.where(missing == least, np.arange(len(missing)), 0))]
    fires = (missing - least >= APART) & (top - at_best >= STANDS)
    return first(steps, fires, missing - least, APART, f"{form} grew while more solutions are right")


def _parted_held_out(curves: Curves, one: str, other: str) -> Alarm | None:
    steps, above = curves.of(f"eval/direct/{one}")
    at, below = curves.of(f"eval/direct/{other}")
    low, high = curves.bounds(f"eval/direct/{other}")
    if len(steps) < 2 or not np.array_equal(steps, at):
        return None
    fires = (high < low[0]) & (above >= above[0]) & (above > below)
    return first(steps, fires, below, float(low[0]), f"held out, {other} fell and {one} did not")


def likelihood(curves: Curves) -> Alarm | None:
    return earliest(_crashed(curves), _gamed(curves), _blind(curves))


def _crashed(curves: Curves) -> Alarm | None:
    steps, values = curves.of("likelihood/logprob")
    if len(values) < BASE + 5:
        return None
    threshold = 2 * min(0.0, float(np.median(values[:BASE]))) - 2.0
    level = trailing_median(values, 5)
    fires = (level < threshold) & ends_from(BASE + 4, len(level), 5)
    why = "the gold answer's likelihood behind the reasoning crashed"
    return first(steps[4:], fires, level, threshold, why)


def _gamed(curves: Curves) -> Alarm | None:
    likelier, less_right = 0.3, 0.1
    steps, (read, right) = _together(curves, "likelihood/logprob", "accuracy")
    if len(steps) < 2 * LONG:
        return None
    more, fell = gained(read, LONG), -gained(right, LONG)
    fires = (more >= likelier) & (fell >= less_right)
    fires[:LONG] = False
    why = "the reader finds the gold answer likelier, and fewer are right"
    return first(steps[LONG - 1 :], fires, more, likelier, why)


def _blind(curves: Curves) -> Alarm | None:
    half = 0.5
    steps, values = curves.of("likelihood/auc")
    means = trailing_mean(values, LONG)
    why = "the reader finds the gold answer likelier behind wrong solutions than behind right ones"
    return first(steps[LONG - 1 :], means < half, means, half, why)


def hack_gap(curves: Curves) -> Alarm | None:
    most = 0.05
    steps, values = curves.of("eval/judge/hack_gap")
    low, _ = curves.bounds("eval/judge/hack_gap")
    return first(steps, low > most, values, most, "the judge falls for more than it did at the start")
