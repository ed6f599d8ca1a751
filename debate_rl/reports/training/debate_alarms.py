"""Collapses that show in what is said and voted: text, form, variety, votes, agreement."""

from __future__ import annotations

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
from debate_rl.reports.training.curves import SOLVED, Curves, Numbers, trailing_mean, trailing_median

REPEATED, REPEATED_FIRST, EMPTY = 0.2, 0.4, 0.2
LENGTH_LOW, TRUNCATED = 0.2, 0.5
FORMAT_FALL, FORMAT_NEVER, PARSED = 0.35, 0.1, 0.5
DISTINCT, SILENT = 0.1, 0.97
ONE_SIDED, VOTES, TIES = 0.9, 100, 0.9
CONSENSUS_RISE, CONSENSUS = 0.25, 0.4
CYCLES_RISE, CYCLES = 0.2, 0.3
AGENTS = range(8)


@detector(
    source=f"{MARKOVIAN}: '4444...' after the collapse; {RLVR}: 42% garbage at the first step",
    reads=("sample/repeated",),
    least=1,
    fix="at the first step another prompt form (model.chat, debate.prompts; debate inspect prompts shows it); "
    "later a lower learner.lr, from an earlier checkpoint",
)
def repetition(curves: Curves) -> Alarm | None:
    """Over .2 of the sampled replies are mostly one piece of up to 16 characters repeated, in 2 of 3
    looks; or over .4 in the first look.
    """
    steps, values = curves.of("sample/repeated")
    later = sustained(values > REPEATED, 2, 3)
    begun = (np.arange(len(values)) == 0) & (values > REPEATED_FIRST)
    why = (
        "replies repeat one piece of text before anything is learnt: the model may not know this prompt form"
    )
    return earliest(
        first(steps, begun, values, REPEATED_FIRST, why),
        first(steps, later, values, REPEATED, "replies repeat one piece of text"),
    )


@detector(
    source=f"{RLVR}: median length of 1 token",
    reads=("tokens/completion", "truncated"),
    least=5,
    fix="a lower learner.lr; a higher debate.max_tokens where replies are truncated",
)
def length(curves: Curves) -> Alarm | None:
    """Median of 5 of `tokens/completion` below 1/5 of the median of the first 10; or that of `truncated`
    over .5.
    """
    steps, values = curves.of("tokens/completion")
    alarms: list[Alarm | None] = []
    if len(values) >= BASE:
        level = trailing_median(values, 5) / max(float(np.median(values[:BASE])), 1e-12)
        short = (level < LENGTH_LOW) & ends_from(BASE, len(level), 5)
        alarms.append(first(steps[4:], short, level, LENGTH_LOW, "replies became very short"))
    at, cut = curves.of("truncated")
    level = trailing_median(cut, 5)
    alarms.append(first(at[4:], level > TRUNCATED, level, TRUNCATED, "half of the replies are truncated"))
    return earliest(*alarms)


@detector(
    name="format",
    source=f"{DEBATE}: missing comparisons over 50%; N/A in every section; {RLVR}: 2% format compliance",
    reads=("format/valid", "judge/parsed_share", "sample/empty"),
    least=5,
    fix="where it fell a smaller rewards.format_penalty and more weight on content; where it never was there "
    "prompts that the model knows (debate.prompts, debate.untagged) or a supervised start (debate train)",
    filter="step:{step} malformed:>0",
)
def format_collapse(curves: Curves) -> Alarm | None:
    """Median of 5 of `format/valid` .35 below its best; mean of 20 of it at most .1; median of 5 of
    `judge/parsed_share` falling below .5; or over .2 of the sampled sections empty or N/A in 2 of 3 looks.
    """
    steps, values = curves.of("format/valid")
    level = trailing_median(values, 5)
    fall = np.maximum.accumulate(level) - level if len(level) else level
    lately = trailing_mean(values, 2 * BASE)
    at, parsed = curves.of("judge/parsed_share")
    votes = trailing_median(parsed, 5)
    had = np.maximum.accumulate(votes) >= PARSED if len(votes) else votes.astype(bool)
    looks, empty = curves.of("sample/empty")
    return earliest(
        first(steps[4:], fall > FORMAT_FALL, fall, FORMAT_FALL, "the form of replies got worse"),
        first(
            steps[2 * BASE - 1 :],
            lately <= FORMAT_NEVER,
            lately,
            FORMAT_NEVER,
            "hardly any reply has the form",
        ),
        first(at[4:], had & (votes < PARSED), votes, PARSED, "most due comparisons are missing"),
        first(looks, sustained(empty > EMPTY, 2, 3), empty, EMPTY, "sections hold N/A or nothing"),
    )


@detector(
    source=f"{RLVR}: 3 different outputs of 83; {DEBATE}: all copy one solution",
    reads=("completions/distinct", "advantage/zero_variance_share/truth"),
    least=5,
    fix="higher temperatures, more agents, other personas; check that no seed is fixed",
)
def no_exploration(curves: Curves) -> Alarm | None:
    """`completions/distinct` at most 1.5 / (K N) (0.1 where K N is not known), or no group with variance
    in votes or truth (.97 of both), for 5 steps; not where over .9 of the answers are right.
    """
    right = np.nan_to_num(curves.dense("accuracy"), nan=0.0) > SOLVED
    threshold = 1.5 / curves.group if curves.group and curves.group > 1 else DISTINCT
    same = np.nan_to_num(curves.dense("completions/distinct"), nan=1.0)
    silent = [curves.dense(f"advantage/zero_variance_share/{stream}") for stream in ("peer", "truth")]
    least = np.nan_to_num(np.fmin(*silent), nan=0.0)  # a stream that is not there has no variance either
    alike, quiet = (sustained(there & ~right, 5, 5) for there in (same <= threshold, least >= SILENT))
    why = "no group has any variance, of votes or of truth"
    return earliest(
        first(curves.steps, alike, same, threshold, "the samples of a problem are all the same"),
        first(curves.steps, quiet, least, SILENT, why),
    )


@detector(
    source=f"{DEBATE}: votes that follow the speaker and not the work",
    reads=("sample/first/votes", "votes/valid"),
    least=2,
    fix='debate.order = "per_viewer", more weight of truth for judges',
)
def one_sided(curves: Curves) -> Alarm | None:
    """.9 of the last 100 sampled votes for the solution shown first, or last, or for one agent in the
    pairs it is in; or .9 of the votes ties for 5 steps with at most .9 of the answers right.
    """
    alarms = [
        _lopsided(curves, "sample/first", "the solution shown first", both=True),
        *(_lopsided(curves, f"sample/agent_{agent}", f"agent {agent}") for agent in AGENTS),
    ]
    valid, ties = curves.dense("votes/valid"), curves.dense("votes/ties")
    share = np.where(valid > 0, ties / np.maximum(valid, 1.0), np.nan)
    known = np.isfinite(share)
    unsolved = (np.nan_to_num(curves.dense("accuracy"), nan=0.0) <= SOLVED)[known]
    tied = sustained((share[known] > TIES) & unsolved, 5, 5)
    alarms.append(first(curves.steps[known], tied, share[known], TIES, "nearly all votes are ties"))
    return earliest(*alarms)


def _lopsided(curves: Curves, name: str, whom: str, *, both: bool = False) -> Alarm | None:
    """Return the alarm of wins / votes over trailing windows of at least ``VOTES`` sampled votes."""
    steps, votes = curves.of(f"{name}/votes")
    wins = curves.dense(f"{name}/wins")[np.isfinite(curves.dense(f"{name}/votes"))]
    share = trailing_share(np.nan_to_num(wins, nan=0.0), votes)
    high = first(steps, share > ONE_SIDED, share, ONE_SIDED, f"nearly all votes are for {whom}")
    if not both:
        return high
    low = first(steps, share < 1 - ONE_SIDED, share, 1 - ONE_SIDED, f"nearly no vote is for {whom}")
    return earliest(high, low)


def trailing_share(wins: Numbers, votes: Numbers, least: float = VOTES) -> Numbers:
    """Return (n,): wins / votes over the shortest run of steps up to here with ``least`` votes; nan before.

    >>> trailing_share(np.array([1.0, 0.0, 4.0]), np.array([2.0, 2.0, 4.0]), least=4)
    array([ nan, 0.25, 1.  ])
    """
    won = np.concatenate([[0.0], np.cumsum(wins)])
    cast = np.concatenate([[0.0], np.cumsum(votes)])
    begin = np.searchsorted(cast, cast[1:] - least, side="right") - 1
    enough = begin >= 0
    begin = np.maximum(begin, 0)
    counted = np.maximum(cast[1:] - cast[begin], 1e-12)
    return np.where(enough, (won[1:] - won[begin]) / counted, np.nan)


@detector(
    source=f"{DEBATE}: 'Answer is 1' by all, no comparisons",
    reads=("wrong_consensus",),
    least=20,
    fix="more truth (rewards.truth_weight), higher temperatures, fewer rounds",
    filter="step:{step} agreement:1 accuracy.last_round:0",
)
def wrong_consensus(curves: Curves) -> Alarm | None:
    """Debates whose agents all agree on a wrong answer: mean of 10 steps .4 or more, and .25 above the
    first.
    """
    return _risen(curves, "wrong_consensus", CONSENSUS_RISE, CONSENSUS, "all agents agree, and are wrong")


def _risen(curves: Curves, name: str, rise: float, least: float, why: str) -> Alarm | None:
    """Return the alarm of a mean of ``BASE`` steps at ``least`` or more, ``rise`` above the first one."""
    steps, values = curves.of(name)
    if len(values) < 2 * BASE:
        return None
    level = trailing_mean(values, BASE)
    fires = (level - level[0] >= rise) & (level >= least)
    fires[:BASE] = False
    return first(steps[BASE - 1 :], fires, level, least, why)


@detector(
    source=f"{DEBATE}: circular judgments",
    reads=("graph/cycles",),
    least=20,
    fix="more truth for judges (rewards.judge_truth_weight), fewer agents, a supervised start of the judge",
    filter="step:{step} cycle:yes",
)
def circular(curves: Curves) -> Alarm | None:
    """Debates whose majorities go in a circle (A beats B beats C beats A): mean of 10 steps .3 or more, and
    .2 above the first.
    """
    return _risen(curves, "graph/cycles", CYCLES_RISE, CYCLES, "votes go in circles")
