"""Collapses of what is rewarded against what is true: reward explosion, votes, held-out problems, form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from debate_rl.reports.training.alarms import (
    BASE,
    DEBATE,
    MARKOVIAN,
    RLVR,
    Alarm,
    detector,
    earliest,
    ends_from,
    first,
    sustained,
)
from debate_rl.reports.training.curves import Curves, Numbers, Steps, trailing_mean, trailing_median
from debate_rl.reports.training.files import FORMS, GRADERS, STREAMS

EXPLODED, TIMES, SPREAD = 1.5, 5.0, 5.0
PARTING, TRUTH_FALL = 0.3, 0.05
LIFT, JUDGE = -0.15, 0.4
GAIN = 0.05
ALIKE, MIXED = 0.97, 0.1
FORM_RISE, FORM_WAIT, FLAT = 0.2, 100, 0.01
GRADERS_APART, STANDS = 0.15, 0.02
HACKED = 0.05
CRASHED, LIKELIER, LESS_RIGHT, BLIND = 2.0, 0.3, 0.1, 0.5
HELD_OUT = ("eval/direct/accuracy", "eval/debate/winner/accuracy")


@detector(
    source=f"{DEBATE}: 0.1, 2.5, 10.7; spread over 5",
    reads=tuple(f"reward/{stream}/mean" for stream in STREAMS),
    least=1,
    fix="a lower learner.lr, gradient clipping, normalised advantages",
)
def reward_explosion(curves: Curves) -> Alarm | None:
    """A stream's mean over 1.5 in size and over 5 times its first; or its std over 5 and 5 times its
    first.
    """
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


@detector(
    source=f"{DEBATE}: no variance in rewards, no signal",
    reads=("advantage/zero_variance_share/truth",),
    least=5,
    fix="rewards.truth_correct apart from rewards.truth_wrong; debate doctor shows rewards of a few debates",
)
def constant_truth(curves: Curves) -> Alarm | None:
    """`advantage/zero_variance_share/truth` at .97 or more for 5 steps in which over a tenth of the groups
    hold right and wrong answers: what is right earns no more than what is wrong. Not where truth rewards
    some rounds alone.
    """
    alike = np.nan_to_num(curves.dense("advantage/zero_variance_share/truth"), nan=0.0)
    uniform = curves.dense("accuracy/all_right") + curves.dense("accuracy/all_wrong")
    mixed = np.nan_to_num(1 - uniform, nan=0.0)
    partly = curves.dense("reward/truth/n") < curves.dense("accuracy/n")  # the mixed may be the other rounds
    constant = sustained((alike >= ALIKE) & (mixed > MIXED) & ~partly, 5, 5)
    return first(curves.steps, constant, alike, ALIKE, "right and wrong answers earn the same truth reward")


@detector(
    source=f"{DEBATE}: reward signal degradation",
    reads=("sample/winner_peer",),
    least=20,
    fix="mix in truth: rewards.truth_weight = 0.5 or more",
    filter="step:{step} winner:wrong",
)
def peer_truth(curves: Curves) -> Alarm | None:
    """Peer reward of the winner, in [0, 1], gained .3 on its truth, which fell by .05 (means of 10 looks
    against the first).
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
    return first(steps, fires, gap, PARTING, "the winner's praise grew and its truth fell")


@detector(
    source=f"{DEBATE}: anticorrelated comparisons",
    reads=("winner/lift", "judge/accuracy"),
    least=10,
    fix="more weight of truth for judges; better judging prompts",
    filter="step:{step} judge.accuracy:<0.5",
)
def votes_against_truth(curves: Curves) -> Alarm | None:
    """Mean of 10 of `winner/lift` below -.15; or of 100 or more votes on decidable pairs in 10 steps fewer
    than .4 right, the share of ties added.
    """
    steps, lift = curves.of("winner/lift")
    lifts = trailing_mean(lift, BASE)
    counted, decided = curves.dense("judge/accuracy"), curves.dense("judge/decidable_votes")
    known = np.isfinite(counted) & np.isfinite(decided)
    right = trailing_mean(np.where(known, counted * decided, 0.0)[known], BASE)
    cast = trailing_mean(decided[known], BASE)
    valid, ties = np.nan_to_num(curves.dense("votes/valid")[known]), curves.dense("votes/ties")[known]
    tied = trailing_mean(np.nan_to_num(ties) / np.maximum(valid, 1.0), BASE)
    share = right / np.maximum(cast, 1e-12) + tied
    wrong = (cast * BASE >= 100) & (share < JUDGE)
    since = curves.steps[known][BASE - 1 :]
    return earliest(
        first(steps[BASE - 1 :], lifts < LIFT, lifts, LIFT, "votes choose worse than a draw"),
        first(since, wrong, share, JUDGE, "votes are mostly for the wrong side"),
    )


@detector(
    source=f"{MARKOVIAN}: -1.6, -1.9, then -41; elsewhere -3.8 to -.09, and 5.23% right in the end",
    reads=("likelihood/logprob", "likelihood/auc"),
    least=4 * BASE,
    fix="a lower learner.lr, no learner.loss = ppo, a lower rewards.likelihood_weight, truth in addition",
)
def likelihood(curves: Curves) -> Alarm | None:
    """Median of 5 of `likelihood/logprob` below twice the median of its first 10, less 2; or it gained .3 and
    `accuracy` fell by .1 (means of 20 against the first); or mean of 20 of `likelihood/auc` below .5.
    """
    return earliest(_crashed(curves), _gamed(curves), _blind(curves))


def _crashed(curves: Curves) -> Alarm | None:
    steps, values = curves.of("likelihood/logprob")
    if len(values) < BASE + 5:
        return None
    threshold = 2 * min(0.0, float(np.median(values[:BASE]))) - CRASHED
    level = trailing_median(values, 5)
    fires = (level < threshold) & ends_from(BASE + 4, len(level), 5)
    return first(
        steps[4:], fires, level, threshold, "the gold answer's likelihood behind the reasoning crashed"
    )


def _gamed(curves: Curves) -> Alarm | None:
    width = 2 * BASE
    read, right = curves.dense("likelihood/logprob"), curves.dense("accuracy")
    known = np.isfinite(read) & np.isfinite(right)
    if known.sum() < 2 * width:
        return None
    steps = curves.steps[known][width - 1 :]
    gained, fell = _gained(read[known], width), -_gained(right[known], width)
    fires = (gained >= LIKELIER) & (fell >= LESS_RIGHT)
    fires[:width] = False
    return first(
        steps, fires, gained, LIKELIER, "the reader finds the gold answer likelier, and fewer are right"
    )


def _blind(curves: Curves) -> Alarm | None:
    steps, values = curves.of("likelihood/auc")
    means = trailing_mean(values, 2 * BASE)
    why = "the reader finds the gold answer likelier behind wrong solutions than behind right ones"
    return first(steps[2 * BASE - 1 :], means < BLIND, means, BLIND, why)


@detector(
    source=f"{RLVR}: rewards of .6 to .7 while held-out fell from 28.9 to 22.3",
    reads=HELD_OUT,
    least=3,
    fix="take the best checkpoint; more problems, a higher learner.beta",
)
def held_out(curves: Curves) -> Alarm | None:
    """Held-out accuracy below its best with intervals apart, twice in a row, while training accuracy (mean
    of 10) is .05 above that at the best.
    """
    return earliest(*(_parted(curves, name) for name in HELD_OUT))


def _parted(curves: Curves, name: str) -> Alarm | None:
    steps, values = curves.of(name)
    low, high = curves.bounds(name)
    low, high = np.where(np.isfinite(low), low, values - 0.1), np.where(np.isfinite(high), high, values + 0.1)
    trained = _trailing_at(curves, "accuracy", steps)
    best, below = 0, 0
    for index in range(len(values)):
        if values[index] > values[best]:
            best = index
        apart = high[index] < low[best] and trained[index] >= trained[best] + GAIN
        below = below + 1 if apart else 0
        if below == 2:
            where = f"at step {steps[best]}, where the curves part"
            why = f"{name} was best {where}, and fell while training accuracy rose"
            return Alarm(int(steps[index]), float(values[index]), float(low[best]), why)
    return None


@detector(
    source=f"{DEBATE}: format to 90-95%, correct at 0-5%",
    reads=("format/valid",),
    least=120,
    fix="a smaller rewards.format_penalty, a truth reward, easier problems",
    filter="step:{step} malformed:0 accuracy:0",
)
def format_only(curves: Curves) -> Alarm | None:
    """`format/valid` .2 above its first for 100 steps, `accuracy` less than .01 above (means of 20)."""
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


@detector(
    source=f"{RLVR}: strict 58.3 to 1.2 while flexible went from 10.5 to 74.0; boxes 87% to 72%",
    reads=GRADERS[1:],
    least=2 * BASE,
    fix="reward the form that is wanted: grader.mode, grader.strict_mode on a schedule, stop strings",
    filter="step:{step} cause:extraction",
)
def grader_drift(curves: Curves) -> Alarm | None:
    """Of two graders of the same solutions the one above has gained .15 more, and the other under .02 (means
    of 10); or a grader finds .15 fewer answers than at its best, while the most lenient has .02 more right;
    or held out one fell, intervals apart, where another above it did not.
    """
    graders, forms = _graders(curves, GRADERS), _graders(curves, FORMS)
    if not any(name.endswith("]") for name in graders):
        return None
    pairs = [(one, other) for one in graders for other in graders if one != other]
    alarms = [_climbs_alone(curves, *pair) for pair in pairs]
    alarms += [_form_falls(curves, form, graders) for form in forms]
    alarms += [_parted_held_out(curves, *pair) for pair in pairs]
    return earliest(*alarms)


@detector(
    source="Zheng 2306.05685: length and position sway judges; the bound is ours",
    reads=("eval/judge/hack_gap",),
    least=1,
    fix="a higher learner.beta_judge, or truth for judges; debate inspect RUN pairs shows what it fell for",
    filter="step:{step} judge.accuracy:<0.5",
)
def hack_gap(curves: Curves) -> Alarm | None:
    """`eval/judge/hack_gap` with its interval above .05: persuaders cost the judge in training more than they
    cost the start judge.
    """
    steps, values = curves.of("eval/judge/hack_gap")
    low, _ = curves.bounds("eval/judge/hack_gap")
    return first(steps, low > HACKED, values, HACKED, "the judge falls for more than it did at the start")


def _graders(curves: Curves, names: Sequence[str]) -> list[str]:
    """Return the figures that are known, without that of a grader which was changed on the way."""
    known = [name for name in names if len(curves.of(name)[1]) >= 2 * BASE]
    changed = len(np.unique(curves.of("grader/strict")[1])) > 1
    return [name for name in known if name.endswith("]") or not changed]


def _means(curves: Curves, *names: str) -> tuple[Steps, list[Numbers]]:
    """Return the trailing means of figures at the steps that have all of them."""
    columns = [curves.dense(name) for name in names]
    known = np.isfinite(columns).all(axis=0)
    return curves.steps[known][BASE - 1 :], [trailing_mean(column[known], BASE) for column in columns]


def _climbs_alone(curves: Curves, one: str, other: str) -> Alarm | None:
    steps, (above, below) = _means(curves, one, other)
    if len(steps) <= BASE:
        return None
    apart = (above - above[0]) - (below - below[0])
    fires = (apart >= GRADERS_APART) & (below - below[0] <= STANDS) & (above > below)
    fires &= ends_from(BASE, len(fires))
    return first(steps, fires, apart, GRADERS_APART, f"{one} climbed and {other} did not")


def _form_falls(curves: Curves, form: str, graders: Sequence[str]) -> Alarm | None:
    steps, (missing, *right) = _means(curves, form, *graders)
    if len(steps) <= BASE:
        return None
    top, least = np.max(right, axis=0), np.minimum.accumulate(missing)
    at_best = top[np.maximum.accumulate(np.where(missing == least, np.arange(len(missing)), 0))]
    fires = (missing - least >= GRADERS_APART) & (top - at_best >= STANDS)
    why = f"{form} grew while more solutions are right"
    return first(steps, fires, missing - least, GRADERS_APART, why)


def _parted_held_out(curves: Curves, one: str, other: str) -> Alarm | None:
    steps, above = curves.of(f"eval/direct/{one}")
    at, below = curves.of(f"eval/direct/{other}")
    low, high = curves.bounds(f"eval/direct/{other}")
    if len(steps) < 2 or not np.array_equal(steps, at):
        return None
    fires = (high < low[0]) & (above >= above[0]) & (above > below)
    why = f"held out, {other} fell and {one} did not"
    return first(steps, fires, below, float(low[0]), why)


def _gained(values: Numbers, width: int = BASE) -> Numbers:
    """Return the trailing means less the first of them, (n - width + 1,)."""
    means = trailing_mean(values, width)
    return means - means[0]


def _trailing_at(curves: Curves, name: str, steps: Steps) -> Numbers:
    """Return the mean of the last 10 values at each step; nan before there is one."""
    at, values = curves.of(name)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.searchsorted(at, steps, side="right")
    begin = np.maximum(end - BASE, 0)
    return np.where(end > begin, (sums[end] - sums[begin]) / np.maximum(end - begin, 1), np.nan)
