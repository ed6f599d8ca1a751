"""Simulated runs with their noise drawn debate by debate: healthy ones, and ones that collapse.

A healthy run learns: the chance of a right answer rises along a logistic curve, problems differ in difficulty
(logit of standard deviation 1.3), and answers, votes and form are drawn from binomials at the size of its
steps. Figures of the learner are log-normal, autocorrelated and drifting, with heavy tails for gradients and
the largest KL. Scales were set beside quick-start runs; docs/report.md has both. In a collapse one
thing goes wrong at some step of a healthy run, and reward falls later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from debate_rl.alarms.curves import Curves, trailing_mean
from debate_rl.metrics.intervals import Numbers

SIZES = ((8, 4, 3), (12, 4, 3), (16, 4, 3), (8, 8, 5), (32, 4, 3), (64, 8, 3))
"""P, K, N of a step."""
LOOKS = 100
"""Steps of which debates are sampled."""
PROBLEM_SPREAD = 1.3
ONSET = 100
SPEEDS = (5, 20, 60)
"""Steps from the onset until a collapse is complete."""
LAG = 1.5
"""Reward falls like the collapse, over as many steps, beginning half as many later."""


@dataclass(frozen=True, slots=True)
class Run:
    """A simulated run: its figures, the noiseless chance of a right answer, and its size."""

    curves: Curves
    skill: Numbers
    size: tuple[int, int, int]


class Draws:
    """Random curves of one run of so many steps."""

    def __init__(self, rng: np.random.Generator, steps: int) -> None:
        self.rng, self.steps = rng, steps
        self.at = np.arange(steps)

    def between(self, low: float, high: float) -> float:
        """A number, evenly."""
        return float(self.rng.uniform(low, high))

    def noise(self, scale: float, keep: float = 0.0, *, heavy: bool = False) -> Numbers:
        """Autocorrelated noise (T,) of this standard deviation; ``heavy``: Student's t with 4 degrees."""
        drawn = self.rng.standard_t(4, self.steps) / 2**0.5 if heavy else self.rng.normal(size=self.steps)
        return np.asarray(lfilter([scale * (1 - keep * keep) ** 0.5], [1.0, -keep], drawn), dtype=float)

    def rise(self, low: float, high: float) -> Numbers:
        """A logistic curve (T,) from low to high, its middle and its width drawn."""
        middle, width = self.between(0, 0.8) * self.steps, self.between(0.03, 0.3) * self.steps
        curve = 1 / (1 + np.exp(-(self.at - middle) / width))
        return low + (high - low) * (curve - curve[0]) / max(float(curve[-1] - curve[0]), 1e-9)

    def share(self, chance: Numbers, counts: Numbers | int) -> Numbers:
        """Binomial shares (T,); nan where nothing is counted."""
        counted = np.broadcast_to(np.asarray(counts), chance.shape).astype(int)
        drawn = self.rng.binomial(counted, np.clip(chance, 0, 1))
        return np.where(counted > 0, drawn / np.maximum(counted, 1), np.nan)


def sigmoid(logit: Numbers) -> Numbers:
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-logit))


def healthy_run(seed: int, steps: int = 200, size: tuple[int, int, int] | None = None) -> Run:
    """Return a run that learns, or at least does no harm."""
    rng = np.random.default_rng(seed)
    draws = Draws(rng, steps)
    size = size or SIZES[int(rng.integers(len(SIZES)))]
    skill = draws.rise(start := draws.between(-2.5, 0.5), start + draws.between(0.0, 3.0))
    skill = skill + draws.noise(draws.between(0.0, 0.15), 0.97)
    values = _answers(draws, skill, size) | _form(draws, size) | _learner(draws)
    values |= _sampled(draws, skill) | _evaluations(draws, skill)
    values |= _second_grader(Draws(np.random.default_rng([seed, 2]), steps), values["accuracy"], size)
    values |= _circles(Draws(np.random.default_rng([seed, 3]), steps), size)
    values |= _likelihood(Draws(np.random.default_rng([seed, 4]), steps), values["accuracy"], size)
    evaluated = np.isfinite(values["eval/direct/accuracy"])
    values |= _hack_gap(Draws(np.random.default_rng([seed, 5]), steps), evaluated)
    return Run(Curves(draws.at, values, {}, size[1] * size[2]), sigmoid(skill), size)


def _answers(draws: Draws, skill: Numbers, size: tuple[int, int, int]) -> dict[str, Numbers]:
    """Grades of two rounds, votes and their winners, drawn for each debate."""
    problems, debates, agents = size
    rng = draws.rng
    hard = rng.normal(0, PROBLEM_SPREAD, (draws.steps, problems, 1, 1))
    logit = skill[:, None, None, None] + hard
    later = draws.between(0.0, 1.2)
    shape = (draws.steps, problems, debates, agents)
    rounds = [rng.random(shape) < sigmoid(logit + add) for add in (0.0, later)]
    right = [found.reshape(draws.steps, -1).mean(axis=1) for found in rounds]
    both = (right[0] + right[1]) / 2
    judging = sigmoid(draws.rise(low := draws.between(0.0, 1.5), low + draws.between(-0.3, 1.5)))
    votes = agents * (agents - 1) * (agents - 2) // 2 * problems * debates * 2
    rights = [found.sum(axis=3) for found in rounds]
    share_of = agents * (agents - 1) / 2
    decidable = sum((r * (agents - r)).sum(axis=(1, 2)) for r in rights) / share_of * votes / 2
    decidable = np.round(decidable / (problems * debates)).astype(int)
    accuracy = draws.share(judging, decidable)
    mixed = (rights[1] > 0) & (rights[1] < agents)
    chosen = rng.random(mixed.shape) < judging[:, None, None]
    winner = np.where(mixed, chosen, rights[1] == agents)
    grouped = [found.reshape(draws.steps, problems, -1) for found in rounds]
    alike = np.mean([(g.all(axis=2) | ~g.any(axis=2)).mean(axis=1) for g in grouped], axis=0)
    lure = np.clip(draws.between(0.05, 0.6) + draws.noise(0.05, 0.98), 0, 1)
    wholly = np.mean([g.all(axis=2).mean(axis=1) for g in grouped], axis=0)
    agreed = (rights[1] == 0) & (rng.random(mixed.shape) < lure[:, None, None])
    return {
        "accuracy": both,
        "accuracy/all_right": wholly,
        "accuracy/all_wrong": alike - wholly,
        "accuracy/round_0": right[0],
        "accuracy/round_1": right[1],
        "reward/truth/mean": both,
        "reward/truth/std": np.sqrt(both * (1 - both)),
        "reward/peer/mean": draws.noise(0.003),
        "reward/peer/std": np.abs(draws.between(0.3, 0.8) + draws.noise(0.03, 0.3)),
        "reward/judge/mean": 2 * accuracy - 1,
        "judge/accuracy": accuracy,
        "judge/decidable_votes": decidable.astype(float),
        "winner/accuracy": winner.mean(axis=(1, 2)),
        "winner/lift": (winner - rights[1] / agents).mean(axis=(1, 2)),
        "wrong_consensus": agreed.mean(axis=(1, 2)),
        "advantage/zero_variance_share/truth": alike,
        "advantage/zero_variance_share/peer": draws.share(
            np.full(draws.steps, draws.between(0, 0.2)), problems
        ),
        "votes/valid": np.full(draws.steps, float(votes)),
        "votes/ties": votes * draws.share(np.full(draws.steps, draws.between(0, 0.4)), votes),
    }


def _form(draws: Draws, size: tuple[int, int, int]) -> dict[str, Numbers]:
    """Form and lengths; three runs in ten still learn the form."""
    problems, debates, agents = size
    turns = problems * debates * agents * 3
    learns = draws.rng.random() < 0.3
    start, end = (draws.between(0, 2), draws.between(3, 5)) if learns else (draws.between(3, 5),) * 2
    form = sigmoid(draws.rise(start, end) + draws.noise(0.5, 0.5))
    variety = draws.rise(high := draws.between(0.25, 1.0), high * draws.between(0.6, 1.0))
    distinct = np.clip(variety + draws.noise(0.12 / problems**0.5, 0.3), 1 / (debates * agents), 1)
    longer = draws.rise(0.0, draws.between(-0.3, 0.6)) + draws.noise(0.05, 0.9)
    return {
        "format/valid": draws.share(form, turns),
        "judge/parsed_share": draws.share(np.sqrt(form), turns * 2 // 3),
        "truncated": draws.share(np.clip(draws.between(0, 0.08) + draws.noise(0.01, 0.9), 0, 1), turns),
        "tokens/completion": draws.between(20, 2000) * np.exp(longer),
        "completions/distinct": distinct,
    }


def _circles(draws: Draws, size: tuple[int, int, int]) -> dict[str, Numbers]:
    """Debates whose votes go in a circle; they have draws of their own."""
    chance = np.clip(draws.between(0.0, 0.4) + draws.noise(0.05, 0.95), 0, 1)
    return {"graph/cycles": draws.share(chance, size[0] * size[1])}


def _second_grader(draws: Draws, right: Numbers, size: tuple[int, int, int]) -> dict[str, Numbers]:
    """A stricter grader beside: it wants a form, which half of the runs learn; it has draws of its own."""
    solutions = 2 * size[0] * size[1] * size[2]
    low = draws.between(-1, 4)
    high = low + (draws.between(0, 3) if draws.rng.random() < 0.5 else 0.0)
    form = sigmoid(draws.rise(low, high) + draws.noise(0.1, 0.97) + draws.noise(0.1))
    return _graded_by_form(draws, form, right, solutions)


def _graded_by_form(draws: Draws, form: Numbers, right: Numbers, solutions: int) -> dict[str, Numbers]:
    count = np.round(right * solutions).astype(int)
    strict = draws.rng.binomial(count, form) / solutions
    return {"accuracy [boxed]": strict, "missing [boxed]": 1 - draws.share(form, solutions)}


def _likelihood(draws: Draws, right: Numbers, size: tuple[int, int, int]) -> dict[str, Numbers]:
    """What a frozen reader makes of right and of wrong solutions, better or worse written as the run goes on.

    Spread over problems as in the miniature of configs/seeds: a standard deviation of 2 nats.
    """
    high, low = draws.between(-1.5, -0.05), draws.between(-8.0, -2.0)
    clearer = draws.rise(0.0, draws.between(-0.3, 0.5))
    mixed = right * high + (1 - right) * (low + clearer)
    likelier = draws.between(0.6, 0.99) + draws.noise(0.03, 0.9)
    return {
        "likelihood/logprob": mixed + draws.noise(2.0 / size[0] ** 0.5),
        "likelihood/auc": draws.share(np.clip(likelier, 0, 1), 2 * size[0]),
    }


def _hack_gap(draws: Draws, evaluated: NDArray[np.bool_]) -> dict[str, Numbers]:
    """What persuaders cost the judge more than the start judge, on 100 to 300 pairs at each evaluation.

    A healthy judge ends up to .03 better or worse; what a pair gives has a standard deviation of .1 to .3, as
    the mean of seven persuaders has that judges err on one by one.
    """
    pairs, each = int(draws.rng.integers(100, 301)), draws.between(0.1, 0.3)
    mean = draws.rise(0.0, draws.between(-0.03, 0.03)) + draws.noise(each / pairs**0.5)
    reach = 1.97 * each / pairs**0.5
    return {
        f"eval/judge/hack_gap{end}": np.where(evaluated, mean + by, np.nan)
        for end, by in (("", 0.0), ("/low", -reach), ("/high", reach))
    }


def _learner(draws: Draws) -> dict[str, Numbers]:
    """Figures of the optimizer; now and then a step is slow."""
    moved = 1 - np.exp(-(draws.at + 1) / draws.between(5, 150))
    drift = draws.between(0.002, 0.1) * moved
    largest = np.log(draws.between(0.1, 8) * moved**0.5) + draws.noise(draws.between(0.7, 1.8), 0.4)
    slow = np.where(draws.rng.random(draws.steps) < 0.01, draws.between(1, 3), 1.0)
    seconds = draws.between(3, 400) * np.exp(draws.noise(0.2, 0.5)) * slow
    fall = draws.rise(0.0, -draws.between(0.0, 1.2)) + draws.noise(draws.between(0.05, 0.35), 0.5)
    gradients = draws.rise(0.0, draws.between(-0.7, 0.7)) + draws.noise(
        draws.between(0.15, 0.6), 0.4, heavy=True
    )
    return {
        "loss": draws.noise(0.01),
        "ratio_mean": np.exp(draws.noise(10 ** draws.between(-4, -1.5), heavy=True)),
        "kl_mean": (drift + 1e-4) * np.exp(draws.noise(draws.between(0.2, 0.9), 0.4)),
        "kl_max": np.exp(largest),
        "entropy_mean": draws.between(0.05, 1.0) * np.exp(fall),
        "grad_norm": 10 ** draws.between(-2, 0) * np.exp(gradients),
        "mismatch_kl": 10 ** draws.between(-7, -3.2) * np.exp(draws.noise(0.4, 0.3)),
        "bad_steps": (draws.rng.random(draws.steps) < 0.005).astype(float),
        "seconds/rollout": 0.6 * seconds,
        "seconds/learn": 0.4 * seconds,
    }


def _sampled(draws: Draws, skill: Numbers) -> dict[str, Numbers]:
    """What is read from stored debates, some of each look."""
    looked = np.zeros(draws.steps, bool)
    looked[np.linspace(0, draws.steps - 1, min(LOOKS, draws.steps)).astype(int)] = True
    debates = 20
    seats = sigmoid(draws.rng.normal(0, 0.5, 3)[:, None] + np.stack([draws.noise(0.1, 0.9)] * 3))
    praise = draws.rise(low := draws.between(0.65, 0.9), low + draws.between(-0.05, 0.12))
    placed = sigmoid(draws.between(-0.6, 0.6) + draws.noise(0.2, 0.95))
    votes = 5 * debates
    spoken = draws.rise(level := -draws.between(0.05, 1.5), level * draws.between(0.5, 1.2))
    right = sigmoid((skill + 0.8) / (1 + PROBLEM_SPREAD**2 / 2.9) ** 0.5)
    values = {
        "sample/first/votes": np.full(draws.steps, float(votes)),
        "sample/first/wins": votes * draws.share(placed, votes),
        "sample/winner_peer": praise + draws.noise(0.2 / debates**0.5),
        "sample/winner_accuracy": draws.share(right, debates // 2),
        "sample/repeated": draws.share(np.full(draws.steps, draws.between(0, 0.02)), debates * 9),
        "sample/empty": draws.share(np.full(draws.steps, draws.between(0, 0.02)), debates * 9),
        "sample/logprob": spoken * np.exp(draws.noise(0.08, 0.5)),
    }
    for seat in range(3):
        values[f"sample/agent_{seat}/votes"] = np.full(draws.steps, float(votes * 2 // 3))
        values[f"sample/agent_{seat}/wins"] = votes * 2 // 3 * draws.share(seats[seat], votes * 2 // 3)
    return {name: np.where(looked, column, np.nan) for name, column in values.items()}


def _evaluations(draws: Draws, skill: Numbers) -> dict[str, Numbers]:
    """Held-out accuracy every 20 or 50 steps on 100 to 300 problems, a little below training."""
    every, problems = (20, 50)[int(draws.rng.integers(2))], int(draws.rng.integers(100, 301))
    values: dict[str, Numbers] = {}
    hard = draws.rng.normal(0, PROBLEM_SPREAD, (1, problems))
    gap = draws.rise(0.0, draws.between(0.0, 0.2))
    for name, bonus in (
        ("eval/direct/accuracy", 0.0),
        ("eval/debate/winner/accuracy", draws.between(0.2, 1.2)),
    ):
        chance = sigmoid((skill + bonus - gap)[:, None] + hard)
        graded = (draws.rng.random(chance.shape) < chance).astype(float)
        mean, reach = graded.mean(axis=1), 1.97 * graded.std(axis=1) / problems**0.5
        done = (draws.at + 1) % every == 0
        for end, column in (("", mean), ("/low", mean - reach), ("/high", mean + reach)):
            values[name + end] = np.where(done, column, np.nan)
    return values


def ramp(steps: int, onset: int, speed: int) -> Numbers:
    """Return (T,): 0 before the onset, 1 from ``speed`` steps after it."""
    return np.clip((np.arange(steps) - onset + 1) / speed, 0, 1)


Change = Callable[[Draws, dict[str, Numbers], Numbers], None]
"""Changes columns in place; the ramp (T,) goes from 0 to 1."""


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
    right = values["sample/winner_accuracy"] * (1 - 0.8 * part)
    values["sample/winner_accuracy"] = right


def _held_out(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    for name in ("eval/direct/accuracy", "eval/debate/winner/accuracy"):
        for end in ("", "/low", "/high"):
            values[name + end] = values[name + end] * (1 - 0.6 * part)
    values["accuracy"] = np.minimum(values["accuracy"] + 0.15 * part, 1.0)


def _format_only(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    """Form is learnt from the first step, nothing else; there is no onset."""
    share = ramp(draws.steps, 0, 40)
    values["format/valid"] = draws.share(0.6 + 0.38 * share, 200)
    flat = np.full(draws.steps, float(np.mean(values["accuracy"][:20])))
    values["accuracy"] = draws.share(flat, 200)


def _against_truth(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["judge/accuracy"] = values["judge/accuracy"] * (1 - part) + 0.1 * part
    values["winner/lift"] = values["winner/lift"] * (1 - part) - 0.3 * part


def _explosion(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["reward/peer/mean"] = values["reward/peer/mean"] + 0.1 * (107.0**part - 1)


def _not_finite(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    values["bad_steps"] = np.where(part >= 0.5, np.cumsum(part >= 0.5), values["bad_steps"])


def _grader_drift(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    """Solutions go on to be right, and leave the form that the stricter grader wants."""
    values["accuracy"] = np.minimum(values["accuracy"] + 0.1 * part, 1.0)
    form = (1 - values["missing [boxed]"]) * (1 - 0.9 * part)
    values |= _graded_by_form(draws, np.clip(form, 0, 1), values["accuracy"], 300)


def _likelihood_collapse(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    """Half of the runs crash as the source's did; in the others the reader is gamed while accuracy halves."""
    crashes = draws.rng.random() < 0.5
    read = values["likelihood/logprob"]
    values["likelihood/logprob"] = read * (1 - part) - 41.0 * part if crashes else read + 2.0 * part
    if not crashes:
        values["accuracy"] = values["accuracy"] * (1 - 0.5 * part)


def _hacked(draws: Draws, values: dict[str, Numbers], part: Numbers) -> None:
    for end in ("", "/low", "/high"):
        values[f"eval/judge/hack_gap{end}"] = values[f"eval/judge/hack_gap{end}"] + 0.3 * part


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
    "constant_truth": _towards("advantage/zero_variance_share/truth", 1.0),
    "no_exploration": _towards("completions/distinct", 0.0),
    "one_sided": _one_sided,
    "circular": _drawn("graph/cycles", 0.9, 32),
    "wrong_consensus": _drawn("wrong_consensus", 0.9, 32),
    "peer_truth": _peer_truth,
    "votes_against_truth": _against_truth,
    "held_out": _held_out,
    "format_only": _format_only,
    "grader_drift": _grader_drift,
    "likelihood": _likelihood_collapse,
    "hack_gap": _hacked,
}
"""By the name of the detector that is to notice."""
KEEP_REWARD = ("constant_truth", "held_out", "format_only", "stall", "grader_drift", "hack_gap")
"""Collapses in which the training reward does not fall."""


def collapsed_run(name: str, seed: int, *, speed: int, onset: int = ONSET, steps: int = 200) -> Run:
    """Return a run that is healthy until ``onset``, and then collapses within ``speed`` steps."""
    run = healthy_run(seed, steps)
    draws = Draws(np.random.default_rng([seed, 1]), steps)
    values = dict(run.curves.values)
    if name not in KEEP_REWARD:
        falling = ramp(steps, onset + speed // 2, round(LAG * speed))
        for column in ("accuracy", "accuracy/round_0", "accuracy/round_1", "reward/truth/mean"):
            values[column] = values[column] * (1 - falling)
    COLLAPSES[name](draws, values, ramp(steps, onset, speed))
    if name == "no_exploration":
        least = 1 / (run.curves.group or 12)
        values["completions/distinct"] = np.maximum(values["completions/distinct"], least)
    return replace(run, curves=Curves(run.curves.steps, values, {}, run.curves.group))


def reward_fell_at(curves: Curves, onset: int = ONSET) -> int | None:
    """Return the first step whose mean of 10 of `correct` is below half of that before the onset."""
    steps, values = curves.of("accuracy")
    means, steps = trailing_mean(values, 10), steps[9:]
    before = means[steps < onset]
    if not len(before):
        return None
    fallen = np.flatnonzero((means < before[-1] / 2) & (steps >= onset))
    return int(steps[fallen[0]]) if len(fallen) else None
