"""All collapse detectors by name: rule, source, what they read, what to do, and measured false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from debate_rl.formatting import percent
from debate_rl.reports.training import debate_alarms, learning_alarms, truth_alarms
from debate_rl.reports.training.alarms import Alarm, Detector
from debate_rl.reports.training.curves import Curves
from debate_rl.reports.training.files import STREAMS
from debate_rl.reports.training.learning_alarms import WATCHED
from debate_rl.statistics import wilson

RUNS, FIRST_SEED, STEPS = 2000, 20_000, 200


class Measured(NamedTuple):
    """Healthy runs with an alarm; of collapses within 20 steps the share noticed, and the median delay."""

    fired: int
    seen: float
    delay: int


RATES: dict[str, Measured] = {
    "ratio": Measured(0, 1.00, 3),
    "entropy": Measured(3, 0.99, 7),
    "logprob": Measured(0, 1.00, 0),
    "gradient": Measured(11, 1.00, 10),
    "not_finite": Measured(0, 1.00, 11),
    "kl": Measured(2, 1.00, 10),
    "mismatch": Measured(0, 1.00, 3),
    "stall": Measured(5, 1.00, 2),
    "repetition": Measured(0, 1.00, 6),
    "length": Measured(0, 1.00, 9),
    "format": Measured(13, 1.00, 10),
    "reward_explosion": Measured(0, 1.00, 11),
    "no_exploration": Measured(0, 1.00, 20),
    "one_sided": Measured(11, 1.00, 16),
    "wrong_consensus": Measured(0, 1.00, 12),
    "peer_truth": Measured(0, 0.96, 22),
    "votes_against_truth": Measured(0, 1.00, 16),
    "held_out": Measured(0, 0.97, 39),
    "format_only": Measured(17, 0.99, 41),
}
"""As measured on healthy simulated runs, which are no promise for another task:

    python benchmarks/collapse_detectors.py --runs 2000 --first-seed 20000 --collapses 100

Thresholds were set on seeds below 12000. Noise is scaled beside runs of the quick-start.
"""
ANY = 62
"""Healthy runs in which some detector fired."""


def false_alarms(name: str) -> tuple[float, float, float]:
    """Return the share of healthy runs with an alarm of this detector, and its 95% interval (Wilson)."""
    share = RATES[name].fired / RUNS
    return share, *wilson(share, RUNS)


def told_rate(name: str) -> str:
    """Return a detector's rate as the report and the page have it.

    >>> told_rate("ratio")
    '0.0% [0.0%, 0.2%]'
    """
    return "{} [{}, {}]".format(*map(percent, false_alarms(name)))


MARKOVIAN = "markovian run analysis"
RLVR = "RLVR experiment notes"
DEBATE = "debate training analysis"

DETECTORS: dict[str, Detector] = {
    one.name: one
    for one in (
        Detector(
            "ratio",
            "`ratio_mean` outside 1/2 to 2 once, or outside 1/1.25 to 1.25 in 3 steps running",
            f"{MARKOVIAN}: 1.00, 1.17, then 21.75 and 26.25",
            ("ratio_mean",),
            1,
            learning_alarms.ratio,
            "a lower learner.lr, fewer minibatches or epochs an update",
        ),
        Detector(
            "entropy",
            "median of 5 of `entropy_mean` below 1/10 of, or above 3 times, the median of the first 10; "
            "or below 1/4 of what it was 20 steps before",
            f"{RLVR}: entropy 0.008 when KL exploded",
            ("entropy_mean",),
            15,
            learning_alarms.entropy,
            "a lower learner.lr, a higher learner.beta, an entropy bonus",
        ),
        Detector(
            "logprob",
            "mean log-probability of the sampled tokens below twice the median of its first 3 values, less 1",
            f"{MARKOVIAN}: -1.6, -1.9, then -41",
            ("sample/logprob",),
            4,
            learning_alarms.logprob,
            "a lower learner.lr; go back to an earlier checkpoint",
        ),
        Detector(
            "gradient",
            "`grad_norm` over 10 times the median of the 50 steps before in 3 of 5 steps; or over 100 "
            "times once",
            f"{RLVR}: 0.4 to 46.75, 148, 294",
            ("grad_norm",),
            11,
            learning_alarms.gradient,
            "learner.max_grad_norm = 1.0, a lower learner.lr, a longer warm-up",
        ),
        Detector(
            "not_finite",
            "loss, gradient, ratio, KL or entropy is no finite number; or `bad_steps` reaches 3",
            f"{RLVR}: loss NaN after a KL of 2685, gradient inf at step 100",
            (*WATCHED, "bad_steps"),
            1,
            learning_alarms.not_finite,
            "learner.adam_eps of 1e-5 or more, a warm-up, bfloat16 in place of float16",
        ),
        Detector(
            "kl",
            "median of 5 of `kl_mean` over .5; or `kl_max` over 1000 in 4 of 5 steps, or over 100 "
            "(median) in the first 3",
            f"{RLVR}: maxima of 100 (padding), 2685 and 9748; its 0.3, called exploded, healthy runs reach",
            ("kl_mean", "kl_max"),
            3,
            learning_alarms.kl,
            "a higher learner.beta, a lower learner.lr; look at the worst tokens (debate tokens)",
        ),
        Detector(
            "mismatch",
            "median of 5 of `mismatch_kl` over 0.01",
            f"{RLVR}: a temperature in one place and not in the other",
            ("mismatch_kl",),
            5,
            learning_alarms.mismatch,
            "the same temperature, model and numeric type for sampler and trainer",
        ),
        Detector(
            "stall",
            "a step over 10 minutes and over 5 times the median of the 50 before",
            f"{RLVR}: 10 minutes stuck at a step; 30 s, then 300 s a step before a run hung",
            ("seconds/rollout", "seconds/learn"),
            11,
            learning_alarms.stall,
            "look at the phase that took the time",
        ),
        Detector(
            "repetition",
            "over .2 of the sampled replies are mostly one piece of up to 16 characters repeated, in 2 "
            "of 3 looks",
            f"{MARKOVIAN}: '4444...' after the collapse",
            ("sample/repeated",),
            2,
            debate_alarms.repetition,
            "go back to an earlier checkpoint; check the chat template and learner.lr",
        ),
        Detector(
            "length",
            "median of 5 of `tokens/completion` below 1/5 of the median of the first 10; "
            "or that of `truncated` over .5",
            f"{RLVR}: median length of 1 token",
            ("tokens/completion", "truncated"),
            5,
            debate_alarms.length,
            "a lower learner.lr; a higher debate.max_tokens where replies are cut off",
        ),
        Detector(
            "format",
            "median of 5 of `format/valid` .35 below its best; of `judge/parsed_share` falling below .5; "
            "or over .2 of the sampled sections empty or N/A in 2 of 3 looks",
            f"{DEBATE}: missing comparisons over 50%; N/A in every section",
            ("format/valid", "judge/parsed_share", "sample/empty"),
            5,
            debate_alarms.format_collapse,
            "a smaller rewards.format_penalty, more weight on content",
            "step:{step} malformed:>0",
        ),
        Detector(
            "reward_explosion",
            "a stream's mean over 1.5 in size and over 5 times its first; or its spread over 5 and 5 "
            "times its first",
            f"{DEBATE}: 0.1, 2.5, 10.7; spread over 5",
            tuple(f"reward/{stream}/mean" for stream in STREAMS),
            1,
            truth_alarms.reward_explosion,
            "a lower learner.lr, gradient clipping, normalised advantages",
        ),
        Detector(
            "no_exploration",
            "`completions/distinct` at most 1.5 / (K N) (0.1 where K N is not known), or no group with "
            "variance "
            "in votes or truth (.97 of both), for 5 steps; not where over .9 of the answers are right",
            f"{RLVR}: 3 different outputs of 83; {DEBATE}: all copy one solution",
            ("completions/distinct", "advantage/zero_variance_share/truth"),
            5,
            debate_alarms.no_exploration,
            "higher temperatures, more agents, other personas; check that no seed is fixed",
        ),
        Detector(
            "one_sided",
            ".9 of the last 100 sampled votes for the solution shown first, or last, or for one agent "
            "in the pairs "
            "it is in; or .9 of the votes ties for 5 steps with at most .9 of the answers right",
            f"{DEBATE}: votes that follow the speaker and not the work",
            ("sample/first/votes", "votes/valid"),
            2,
            debate_alarms.one_sided,
            'debate.order = "per_viewer", more weight of truth for judges',
        ),
        Detector(
            "wrong_consensus",
            "debates whose agents all agree on a wrong answer: mean of 10 steps .4 or more, and .25 "
            "above the first",
            f"{DEBATE}: 'Answer is 1' by all, no comparisons",
            ("wrong_consensus",),
            20,
            debate_alarms.wrong_consensus,
            "more truth (rewards.truth_weight), higher temperatures, fewer rounds",
            "step:{step} agreement:1 accuracy.last_round:0",
        ),
        Detector(
            "peer_truth",
            "peer reward of the voted winner, in [0, 1], gained .3 on its truth, which fell by .05 "
            "(means of 10 "
            "looks against the first)",
            f"{DEBATE}: reward signal degradation",
            ("sample/winner_peer",),
            20,
            truth_alarms.peer_truth,
            "mix in truth: rewards.truth_weight = 0.5 or more",
            "step:{step} winner:wrong",
        ),
        Detector(
            "votes_against_truth",
            "mean of 10 of `winner/lift` below -.15; or of 100 or more votes on decidable pairs in 10 "
            "steps fewer than .4 right, the share of ties added",
            f"{DEBATE}: anticorrelated comparisons",
            ("winner/lift", "judge/accuracy"),
            10,
            truth_alarms.votes_against_truth,
            "more weight of truth for judges; better judging prompts",
            "step:{step} judge.accuracy:<0.5",
        ),
        Detector(
            "held_out",
            "held-out accuracy below its best with intervals apart, twice in a row, while training accuracy "
            "(mean of 10) is .05 above that at the best",
            f"{RLVR}: rewards of .6 to .7 while held-out fell from 28.9 to 22.3",
            truth_alarms.HELD_OUT,
            3,
            truth_alarms.held_out,
            "take the best checkpoint; more problems, a higher learner.beta",
            "step:{step}",
        ),
        Detector(
            "format_only",
            "`format/valid` .2 above its first for 100 steps, `accuracy` less than .01 above (means of 20)",
            f"{DEBATE}: format to 90-95%, correct at 0-5%",
            ("format/valid",),
            120,
            truth_alarms.format_only,
            "a smaller rewards.format_penalty, a truth reward, easier problems",
            "step:{step} malformed:0 accuracy:0",
        ),
    )
}
"""By name, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one detector says of a run: an alarm, or that it is quiet, or cannot say anything yet."""

    detector: Detector
    alarm: Alarm | None
    values: int

    @property
    def status(self) -> str:
        """One of "alarm", "quiet", "too few steps", "no data"."""
        if self.alarm is not None:
            return "alarm"
        if self.values == 0:
            return "no data"
        return "quiet" if self.values >= self.detector.least else "too few steps"


def readings(curves: Curves) -> list[Reading]:
    """Return what every detector says, in order."""
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        return [Reading(one, one.detect(curves), one.known(curves)) for one in DETECTORS.values()]


def alarms(found: Sequence[Reading]) -> list[Reading]:
    """Return those with an alarm, earliest first."""
    return sorted((one for one in found if one.alarm), key=lambda one: one.alarm.step if one.alarm else 0)
