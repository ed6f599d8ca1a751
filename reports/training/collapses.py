"""Simulated collapses: a healthy run in which one thing goes wrong at some step, and reward falls later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from reports.training.curves import Curves, Numbers, trailing_mean
from reports.training.simulation import Draws, Run, healthy_run, sigmoid

ONSET = 100
SPEEDS = (5, 20, 60)
"""Steps from the onset until a collapse is complete."""
LAG = 1.5
"""Reward falls like the collapse, over as many steps, beginning half as many later."""

Change = Callable[[Draws, dict[str, Numbers], Numbers], None]
"""Changes columns in place; the ramp (T,) goes from 0 to 1."""


def ramp(steps: int, onset: int, speed: int) -> Numbers:
    """Return (T,): 0 before the onset, 1 from ``speed`` steps after it."""
    return np.clip((np.arange(steps) - onset + 1) / speed, 0, 1)


def _times(name: str, factor: float) -> Change:
    """A figure that is multiplied in the end."""

    def change(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
        values[name] = values[name] * factor**part

    return change


def _towards(name: str, end: float) -> Change:
    """A figure that ends at a value."""

    def change(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
        values[name] = values[name] * (1 - part) + end * part

    return change


def _drawn(name: str, end: float, counts: int) -> Change:
    """A share that ends at a value, drawn anew."""

    def change(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
        mixed = values[name] * (1 - part) + end * part
        known = np.nan_to_num(mixed, nan=0.0)
        values[name] = np.where(np.isfinite(mixed), draws.share(known, counts), np.nan)

    return change


def _ratio(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["ratio_mean"] = values["ratio_mean"] * 26.25**part


def _one_sided(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    votes = values["sample/first/votes"]
    wins = values["sample/first/wins"] * (1 - part) + votes * 0.99 * part
    values["sample/first/wins"] = np.minimum(wins, votes)


def _logprob(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["sample/logprob"] = values["sample/logprob"] * (1 - part) - 41.0 * part


def _peer_truth(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["sample/winner_peer"] = values["sample/winner_peer"] * (1 - part) + 0.98 * part
    right = values["sample/winner_right"] * (1 - 0.8 * part)
    values["sample/winner_right"] = right


def _held_out(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    for name in ("eval/direct/sample", "eval/debate/winner"):
        for end in ("", "/low", "/high"):
            values[name + end] = values[name + end] * (1 - 0.6 * part)
    values["correct"] = np.minimum(values["correct"] + 0.15 * part, 1.0)


def _format_only(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    """Form is learnt from the first step, nothing else; there is no onset."""
    share = ramp(draws.steps, 0, 40)
    values["format/valid"] = draws.share(0.6 + 0.38 * share, 200)
    flat = np.full(draws.steps, float(np.mean(values["correct"][:20])))
    values["correct"] = draws.share(flat, 200)


def _against_truth(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["judge/accuracy"] = values["judge/accuracy"] * (1 - part) + 0.1 * part
    values["winner/lift"] = values["winner/lift"] * (1 - part) - 0.3 * part


def _explosion(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["reward/peer/mean"] = values["reward/peer/mean"] + 0.1 * (107.0**part - 1)


def _not_finite(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["bad_steps"] = np.where(part >= 0.5, np.cumsum(part >= 0.5), values["bad_steps"])


COLLAPSES: Mapping[str, Change] = {
    "ratio": _ratio,
    "entropy": _times("entropy_mean", 0.01),
    "logprob": _logprob,
    "gradient": _times("grad_norm", 300.0),
    "not_finite": _not_finite,
    "kl": _times("kl_mean", 1000.0),
    "mismatch": _towards("mismatch_kl", 0.1),
    "stall": _towards("seconds/rollout", 7200.0),
    "repetition": _drawn("sample/repeated", 0.9, 180),
    "length": _times("tokens/completion", 0.01),
    "format": _drawn("format/valid", 0.2, 288),
    "reward_explosion": _explosion,
    "no_exploration": _towards("completions/distinct", 0.0),
    "one_sided": _one_sided,
    "wrong_consensus": _drawn("debates/wrong_consensus", 0.9, 32),
    "peer_truth": _peer_truth,
    "votes_against_truth": _against_truth,
    "held_out": _held_out,
    "format_only": _format_only,
}
"""By the name of the detector that is to notice."""
KEEP_REWARD = ("held_out", "format_only", "stall")
"""Collapses in which the training reward does not fall."""


def collapsed_run(name: str, seed: int, *, speed: int, onset: int = ONSET, steps: int = 200) -> Run:
    """Return a run that is healthy until ``onset``, and then collapses within ``speed`` steps."""
    run = healthy_run(seed, steps)
    draws = Draws(np.random.default_rng([seed, 1]), steps)
    values = dict(run.curves.values)
    if name not in KEEP_REWARD:
        falling = ramp(steps, onset + speed // 2, round(LAG * speed))
        for column in ("correct", "correct/round_0", "correct/round_1", "reward/truth/mean"):
            values[column] = values[column] * (1 - falling)
    COLLAPSES[name](draws, values, ramp(steps, onset, speed))
    if name == "no_exploration":
        least = 1 / (run.curves.group or 12)
        values["completions/distinct"] = np.maximum(values["completions/distinct"], least)
    return replace(run, curves=Curves(run.curves.steps, values, {}, run.curves.group))


def reward_fell_at(curves: Curves, onset: int = ONSET) -> int | None:
    """Return the first step whose mean of 10 of `correct` is below half of that before the onset."""
    steps, values = curves.of("correct")
    means, steps = trailing_mean(values, 10), steps[9:]
    before = means[steps < onset]
    if not len(before):
        return None
    fallen = np.flatnonzero((means < before[-1] / 2) & (steps >= onset))
    return int(steps[fallen[0]]) if len(fallen) else None


__all__ = ["COLLAPSES", "ONSET", "SPEEDS", "collapsed_run", "ramp", "reward_fell_at", "sigmoid"]
