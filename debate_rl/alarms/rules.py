"""The rules of the detectors. detectors.toml describes each rule, its figures and its advice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from debate_rl.alarms.curves import (
    BASE,
    FORMS,
    GRADERS,
    SOLVED,
    STREAMS,
    Alarm,
    Curves,
    Steps,
    Where,
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
from debate_rl.metrics.intervals import Numbers

LONG = 2 * BASE  # for figures that vary much with the problems of a step
MISMATCH = 0.01
"""The largest KL between sampler and trainer, in nats per token, that rounding explains."""
STALL_S, STALL = 600.0, 5.0
PHASES = ("rollout", "reward", "learn", "record")
SPLIT = {
    **{"tokens/generated": "tokens", "tokens/completion_max": "longest reply"},
    **{f"seconds/{phase}": phase for phase in (*PHASES, "grade")},
}
"""The parts of a slow step, with their names in the alarm. Longer replies do not mean a slower machine."""
WATCHED = ("loss", "grad_norm", "ratio_mean", "kl_mean", "entropy_mean")
APART, STANDS = 0.15, 0.02
"""How far one grader's figure must move away from another's, and how little the other may move."""


def _medians(curves: Curves, name: str, width: int = 5) -> tuple[Steps, Numbers]:
    """Return the trailing medians of a figure, and the steps at which their windows end."""
    steps, values = curves.of(name)
    return steps[width - 1 :], trailing_median(values, width)


def _together(curves: Curves, *names: str, width: int = 1) -> tuple[Steps, list[Numbers]]:
    """Return the steps at which all of these figures have a value, and their trailing means."""
    columns = [curves.dense(name) for name in names]
    known = np.isfinite(columns).all(axis=0)
    return curves.steps[known][width - 1 :], [trailing_mean(column[known], width) for column in columns]


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
    values = curves.of("entropy_mean")[1]
    if len(values) < BASE + 5:
        return None
    steps, level = _medians(curves, "entropy_mean")
    level = level / max(float(np.median(values[:BASE])), 1e-12)
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
    broken = {name: curves.broken[name] for name in WATCHED if curves.broken.get(name)}
    alarms = [Alarm(at[0], np.inf, 0.0, f"{name} is not finite") for name, at in broken.items()]
    steps, values = curves.of("bad_steps")
    return earliest(*alarms, first(steps, values >= 3, values, 3, "3 steps in a row without an update"))


def kl(curves: Curves) -> Alarm | None:
    high, token, at_first = 0.5, 1000.0, 100.0
    steps, mean = _medians(curves, "kl_mean")
    at, largest = curves.of("kl_max")
    begun, far = trailing_median(largest[:3], 3), sustained(largest > token, 4, 5)
    return earliest(
        first(at[2:], begun > at_first, begun, at_first, "the reference is not where training began"),
        first(steps, mean > high, mean, high, "the policy is far from its reference"),
        first(at, far, largest, token, "single tokens are far from the reference"),
    )


def mismatch(curves: Curves) -> Alarm | None:
    steps, level = _medians(curves, "mismatch_kl")
    why = "sampler and trainer give different probabilities: temperature, model or numeric type"
    return first(steps, level > MISMATCH, level, MISMATCH, why)


def stall(curves: Curves) -> Alarm | None:
    columns = [np.nan_to_num(curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES]
    total = np.sum(columns, axis=0)
    steps, values = curves.steps[total > 0], total[total > 0]
    if len(values) <= BASE:
        return None
    slow = (np.arange(len(values)) >= BASE) & (values > STALL_S) & (values > STALL * running_median(values))
    alarm = first(steps, slow, values, STALL_S, "")
    if alarm is None:
        return None
    row = int(np.flatnonzero(curves.steps == alarm.step)[0])
    why = f"the step hung, most of it in {PHASES[int(np.argmax([column[row] for column in columns]))]}"
    parts: list[str] = []  # times the median of the 50 steps before
    for name, label in SPLIT.items():
        column = np.nan_to_num(curves.dense(name), nan=0.0)
        usual = float(np.median(column[max(0, row - 50) : row]))
        parts += [f"{label} x{column[row] / usual:.1f}"] if usual > 0 else []
    return replace(alarm, why=why + (f" (against the steps before: {', '.join(parts)})" if parts else ""))


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
    at, half = _medians(curves, "truncated")
    alarm = first(at, half > cut, half, cut, "half of the replies are truncated")
    values = curves.of("tokens/completion")[1]
    if len(values) < BASE:
        return alarm
    steps, level = _medians(curves, "tokens/completion")
    level = level / max(float(np.median(values[:BASE])), 1e-12)
    short = (level < low) & ends_from(BASE, len(level), 5)
    return earliest(first(steps, short, level, low, "replies became very short"), alarm)


def format_collapse(curves: Curves) -> Alarm | None:
    fallen, hardly, missing, nothing = 0.35, 0.1, 0.5, 0.2
    steps, level = _medians(curves, "format/valid")
    fall = np.maximum.accumulate(level) - level
    late, (lately,) = _together(curves, "format/valid", width=LONG)
    at, votes = _medians(curves, "judge/parsed_share")
    had = np.maximum.accumulate(votes) >= missing
    looks, empty = curves.of("sample/empty")
    return earliest(
        first(steps, fall > fallen, fall, fallen, "the form of replies got worse"),
        first(late, lately <= hardly, lately, hardly, "hardly any reply has the form"),
        first(at, had & (votes < missing), votes, missing, "most due comparisons are missing"),
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
    most, least_votes, alarms = 0.9, 100, list[Alarm | None]()
    whom = {
        "sample/first": "the solution shown first",
        **{f"sample/agent_{a}": f"agent {a}" for a in range(8)},
    }
    for name, words in whom.items():
        steps, votes = curves.of(f"{name}/votes")
        wins = curves.dense(f"{name}/wins")[np.isfinite(curves.dense(f"{name}/votes"))]
        share = trailing_share(np.nan_to_num(wins, nan=0.0), votes, least_votes)
        alarms.append(first(steps, share > most, share, most, f"nearly all votes are for {words}"))
        if name == "sample/first":
            alarms.append(first(steps, share < 1 - most, share, 1 - most, f"nearly no vote is for {words}"))
    valid, ties = curves.dense("votes/valid"), curves.dense("votes/ties")
    tied = np.where(valid > 0, ties / np.maximum(valid, 1.0), np.nan)
    known = np.isfinite(tied)
    unsolved = (np.nan_to_num(curves.dense("accuracy"), nan=0.0) <= SOLVED)[known]
    often = sustained((tied[known] > most) & unsolved, 5, 5)
    return earliest(
        *alarms, first(curves.steps[known], often, tied[known], most, "nearly all votes are ties")
    )


def _risen(curves: Curves, name: str, rise: float, least: float, why: str) -> Alarm | None:
    """Return the alarm of a mean of ``BASE`` steps that is at least ``least``, and has risen by ``rise``."""
    steps, values = curves.of(name)
    if len(values) < LONG:
        return None
    level = trailing_mean(values, BASE)
    fires = (level - level[0] >= rise) & (level >= least) & ends_from(BASE, len(level))
    return first(steps[BASE - 1 :], fires, level, least, why)


circular = partial(_risen, name="graph/cycles", rise=0.2, least=0.3, why="votes go in circles")
wrong_consensus = partial(
    _risen, name="wrong_consensus", rise=0.25, least=0.4, why="all agents agree, and are wrong"
)


def peer_truth(curves: Curves) -> Alarm | None:
    parting, fallen = 0.3, 0.05
    steps, (peer, right) = _together(curves, "sample/winner_peer", "sample/winner_accuracy")
    if len(steps) < LONG:
        return None
    truth = gained(right)
    gap = gained(peer) - truth
    fires = (gap > parting) & (truth < -fallen) & ends_from(BASE, len(gap))
    return first(steps[BASE - 1 :], fires, gap, parting, "the winner's praise grew and its truth fell")


def votes_against_truth(curves: Curves) -> Alarm | None:
    least_lift, least_right, least_votes = -0.15, 0.4, 100
    steps, (lifts,) = _together(curves, "winner/lift", width=BASE)
    at, (right, decided) = _together(curves, "judge/accuracy", "judge/decidable_votes")
    rows = np.searchsorted(curves.steps, at)
    hits, cast = trailing_mean(right * decided, BASE), trailing_mean(decided, BASE)
    valid, ties = np.nan_to_num(curves.dense("votes/valid")[rows]), curves.dense("votes/ties")[rows]
    tied = trailing_mean(np.nan_to_num(ties) / np.maximum(valid, 1.0), BASE)
    share = hits / np.maximum(cast, 1e-12) + tied
    wrong = (cast * BASE >= least_votes) & (share < least_right)
    return earliest(
        first(steps, lifts < least_lift, lifts, least_lift, "votes choose worse than a draw"),
        first(at[BASE - 1 :], wrong, share, least_right, "votes are mostly for the wrong side"),
    )


def held_out(curves: Curves) -> Alarm | None:
    gain, alarms = 0.05, list[Alarm | None]()
    at, accuracy = curves.of("accuracy")
    sums = np.concatenate([[0.0], np.cumsum(accuracy)])
    for name in ("eval/direct/accuracy", "eval/debate/winner/accuracy"):
        steps, values = curves.of(name)
        low, high = curves.bounds(name)
        low = np.where(np.isfinite(low), low, values - 0.1)
        high = np.where(np.isfinite(high), high, values + 0.1)
        end = np.searchsorted(at, steps, side="right")
        begin = np.maximum(end - BASE, 0)  # the mean of the last 10 values; nan before there is one
        trained = np.where(end > begin, (sums[end] - sums[begin]) / np.maximum(end - begin, 1), np.nan)
        best, below = 0, 0
        for index in range(len(values)):
            best = index if values[index] > values[best] else best
            apart = high[index] < low[best] and trained[index] >= trained[best] + gain
            below = below + 1 if apart else 0
            if below == 2:
                where = f"at step {steps[best]}, where the curves part"
                why = f"{name} was best {where}, and fell while training accuracy rose"
                alarms.append(Alarm(int(steps[index]), float(values[index]), float(low[best]), why))
                break
    return earliest(*alarms)


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
    changed = len(np.unique(curves.of("grader/strict")[1])) > 1  # the grader that rewards, on the way
    graders, forms = (
        [n for n in names if len(curves.of(n)[1]) >= LONG and (n.endswith("]") or not changed)]
        for names in (GRADERS, FORMS)
    )
    if not any(name.endswith("]") for name in graders):
        return None
    pairs = [(one, other) for one in graders for other in graders if one != other]
    alarms = [_climbs_alone(curves, *pair) for pair in pairs]
    alarms += [_form_falls(curves, form, graders) for form in forms]
    alarms += [_parted_held_out(curves, *pair) for pair in pairs]
    return earliest(*alarms)


def _climbs_alone(curves: Curves, one: str, other: str) -> Alarm | None:
    steps, (above, below) = _together(curves, one, other, width=BASE)
    if len(steps) <= BASE:
        return None
    apart = (above - above[0]) - (below - below[0])
    fires = (apart >= APART) & (below - below[0] <= STANDS) & (above > below) & ends_from(BASE, len(apart))
    return first(steps, fires, apart, APART, f"{one} climbed and {other} did not")


def _form_falls(curves: Curves, form: str, graders: list[str]) -> Alarm | None:
    steps, (missing, *right) = _together(curves, form, *graders, width=BASE)
    if len(steps) <= BASE:
        return None
    top, least = np.max(right, axis=0), np.minimum.accumulate(missing)
    at_best = top[np.maximum.accumulate(np.where(missing == least, np.arange(len(missing)), 0))]
    fires = (missing - least >= APART) & (top - at_best >= STANDS)
    return first(steps, fires, missing - least, APART, f"{form} grew, although more solutions are right")


def _parted_held_out(curves: Curves, one: str, other: str) -> Alarm | None:
    (steps, above), (at, below) = curves.of(f"eval/direct/{one}"), curves.of(f"eval/direct/{other}")
    low, high = curves.bounds(f"eval/direct/{other}")
    if len(steps) < 2 or not np.array_equal(steps, at):
        return None
    fires = (high < low[0]) & (above >= above[0]) & (above > below)
    return first(steps, fires, below, float(low[0]), f"held out, {other} fell and {one} did not")


def likelihood(curves: Curves) -> Alarm | None:
    likelier, less_right, half, alarms = 0.3, 0.1, 0.5, list[Alarm | None]()
    values = curves.of("likelihood/logprob")[1]
    if len(values) >= BASE + 5:
        steps, level = _medians(curves, "likelihood/logprob")
        threshold = 2 * min(0.0, float(np.median(values[:BASE]))) - 2.0
        fires: Where = (level < threshold) & ends_from(BASE + 4, len(level), 5)
        why = "the gold answer's likelihood after the reasoning crashed"
        alarms.append(first(steps, fires, level, threshold, why))
    steps, (read, right) = _together(curves, "likelihood/logprob", "accuracy")
    if len(steps) >= 2 * LONG:
        more, fell = gained(read, LONG), -gained(right, LONG)
        fires = (more >= likelier) & (fell >= less_right) & ends_from(LONG, len(more))
        why = "the reader finds the gold answer likelier, and fewer are right"
        alarms.append(first(steps[LONG - 1 :], fires, more, likelier, why))
    steps, (means,) = _together(curves, "likelihood/auc", width=LONG)
    why = "the reader finds the gold answer likelier after wrong solutions than after right ones"
    return earliest(*alarms, first(steps, means < half, means, half, why))


def hack_gap(curves: Curves) -> Alarm | None:
    most = 0.05
    steps, values = curves.of("eval/judge/hack_gap")
    low, _ = curves.bounds("eval/judge/hack_gap")
    return first(steps, low > most, values, most, "the judge falls for more than it did at the start")
