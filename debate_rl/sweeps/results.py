"""What a sweep came to: each arm's held-out figures over its seeds, and how it differs from the first arm.

With several seeds intervals say what other seeds and other held-out problems would give
(``crossed_mean``). With one seed they are clustered by problem, and say nothing of other
seeds. Differences are of the same seed, the same start and the same problems, taken problem by problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

from debate_rl.forecast.passes import learner_passes
from debate_rl.metrics.held_out import DIRECT, FIGURES, LEADS, HeldOut, gains, reach_of, read_held_out
from debate_rl.metrics.intervals import Estimate, crossed_mean, holm
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sweeps.arms import Arm, is_supervised
from debate_rl.sweeps.running import State, SweepRun

LEVEL = 0.05
"""The p-value, adjusted for all that was looked at, up to which an arm counts as worse than another."""
Evaluations = Mapping[SweepRun, Sequence[HeldOut]]


@dataclass(frozen=True, slots=True)
class ArmFigure:
    """One held-out figure of an arm after so many steps.

    ``seeds``: how many it is of. ``value``: its mean; ``gained``: since before the first step; ``less``: less
    the first arm after the same steps, or at its end where arms have not equally many, None of that arm and
    where no seed is shared; ``p``: of ``less``, adjusted for all arms (Holm 1979).
    """

    arm: str
    figure: str
    step: int
    seeds: int
    value: Estimate
    gained: Estimate | None
    less: Estimate | None
    p: float | None


@dataclass(frozen=True, slots=True)
class ArmCost:
    """What the runs of an arm took, in the mean of its seeds, and how they ended."""

    arm: str
    tokens: float
    """Tokens generated in training; evaluations are not counted."""
    passes: float
    """Tokens that went once forward through the model in training, the arms that it begins after among them:
    sampled and read by the sampler, and read by the learner as often as ``learner_passes`` says."""
    steps: float
    state: str


def read_evaluations(runs: Sequence[SweepRun]) -> dict[SweepRun, list[HeldOut]]:
    """Return the evaluations of each run that has any, by step."""
    found = {run: read_held_out(run.folder) for run in runs}
    return {run: evaluations for run, evaluations in found.items() if evaluations}


def figures_of(evaluations: Evaluations, arms: Sequence[Arm], names: Sequence[str]) -> list[ArmFigure]:
    """Return the figures of each arm, figure by figure; ``names`` () takes those of ``FIGURES`` it has."""
    had = set(chain.from_iterable(one.figures for each in evaluations.values() for one in each))
    wanted = names or [name for name in dict.fromkeys((DIRECT, *FIGURES)) if name in had]
    return [row for name in wanted for row in _with_p([*_rows(evaluations, arms, name)])]


def _rows(evaluations: Evaluations, arms: Sequence[Arm], name: str) -> Iterator[ArmFigure]:
    by_arm = {arm: _by_seed(evaluations, arm) for arm in arms}
    firsts = by_arm[arms[0]] if arms else {}
    ends = _last(firsts) if _differ_in_length(evaluations) else {}
    for arm in arms:
        last = _last(by_arm[arm])
        values = [totals for one in last.values() if (totals := one.totals(name))]
        first = {seed: each[0] for seed, each in by_arm[arm].items() if each[0].step < last[seed].step}
        base = {seed: ends.get(seed) or _at(firsts.get(seed, ()), one.step) for seed, one in last.items()}
        others = {seed: one for seed, one in base.items() if one is not None and arm != arms[0]}
        step = max((one.step for one in last.values()), default=0)
        gained, less = differences(first, last, name), differences(others, last, name)
        mean = crossed_mean(values, signed=name in LEADS)
        if mean is not None:
            yield ArmFigure(arm.name, name, step, len(values), mean, gained, less, None)


def _differ_in_length(evaluations: Evaluations) -> bool:
    """Return whether arms may have not equally many steps: those of replies are what their epochs take."""
    lengths = {run.config.train.steps for run in evaluations}
    return len(lengths) > 1 or any(is_supervised(run.config) for run in evaluations)


def _with_p(rows: Sequence[ArmFigure]) -> Iterator[ArmFigure]:
    """Yield rows of one figure with the p of their differences, adjusted for being so many."""
    known = [row for row in rows if row.less is not None and row.less.p is not None]
    adjusted = iter(holm([row.less.p or 0.0 for row in known if row.less]))
    for row in rows:
        yield replace(row, p=next(adjusted)) if row in known else row


def _by_seed(evaluations: Evaluations, arm: Arm) -> dict[int, Sequence[HeldOut]]:
    return {run.seed: each for run, each in evaluations.items() if run.arm == arm}


def _last(by_seed: Mapping[int, Sequence[HeldOut]]) -> dict[int, HeldOut]:
    """Return the newest evaluations after a step that all seeds share; each seed's own without any."""
    shared = (
        set.intersection(*({one.step for one in each} for each in by_seed.values())) if by_seed else set()
    )
    found = {seed: _at(each, max(shared)) if shared else each[-1] for seed, each in by_seed.items()}
    return {seed: one for seed, one in found.items() if one is not None}


def _at(evaluations: Sequence[HeldOut], step: int) -> HeldOut | None:
    return next((one for one in evaluations if one.step == step), None)


def differences(before: Mapping[int, HeldOut], after: Mapping[int, HeldOut], name: str) -> Estimate | None:
    """Return how much larger a figure is after than before, over the seeds that have both; None of none."""
    pairs = [gains(before[seed], after[seed], name) for seed in after if seed in before]
    runs = [{problem: (value, 1.0) for problem, value in found.items()} for found in pairs]
    return crossed_mean(runs, signed=True, most=reach_of(name))


def losers(evaluations: Evaluations, arms: Sequence[Arm], name: str, step: int, looks: int) -> dict[Arm, str]:
    """Return the arms that are worse than the best after a step, and by how much.

    Worse: the paired difference to the arm with the highest mean has a p of at most .05, adjusted for all
    arms (Holm) and for as many looks as the sweep takes (Bonferroni).
    """
    at = {
        arm: {seed: one for seed, each in _by_seed(evaluations, arm).items() if (one := _at(each, step))}
        for arm in arms
    }
    means = {
        arm: fmean(values)
        for arm, by_seed in at.items()
        if (values := [found.value for one in by_seed.values() if (found := one.estimate(name))])
    }
    if not means:
        return {}
    best = max(means, key=means.__getitem__)
    less = {arm: differences(at[best], at[arm], name) for arm in means if arm != best}
    known = {arm: found for arm, found in less.items() if found is not None and found.p is not None}
    adjusted = holm([found.p or 0.0 for found in known.values()])
    return {
        arm: f"after step {step} {name} is {found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}) beside "
        f"{best.name}, p {min(1.0, looks * p):.2g} adjusted"
        for (arm, found), p in zip(known.items(), adjusted, strict=True)
        if found.value < 0 and looks * p <= LEVEL
    }


def costs_of(runs: Sequence[SweepRun], arms: Sequence[Arm], state: State) -> list[ArmCost]:
    """Return what each arm took, and how its runs ended."""
    return [_cost(arm, [run for run in runs if run.arm == arm], state) for arm in arms]


def _cost(arm: Arm, runs: Sequence[SweepRun], state: State) -> ArmCost:
    lines = [_lines(run) for run in runs]
    tokens = fmean(sum(line.get("tokens/generated") or 0.0 for line in each) for each in lines)
    passes = fmean(map(passes_of, runs))
    names = [run.key for run in runs]
    done, failed = (sum(name in part for name in names) for part in (state.seconds, state.failed))
    words = [f"{done} of {len(runs)} done", *([f"{failed} failed"] if failed else [])]
    words += ["dropped"] if arm.folder in state.dropped else []
    return ArmCost(arm.name, tokens, passes, fmean(map(len, lines)), ", ".join(words))


def _lines(run: SweepRun) -> list[dict[str, float | None]]:
    metrics = run.folder / "metrics.jsonl"
    return read_metrics(metrics) if metrics.exists() else []


def passes_of(run: SweepRun) -> float:
    """Return the tokens that went forward through the model in a run, and in those that it begins after."""
    adapter, replies = run.config.model.lora_rank > 0, is_supervised(run.config)
    each = learner_passes(run.config.learner, adapter=adapter, replies=replies)
    own = sum(_sampled(line) + each * (line.get("read_tokens") or 0.0) for line in _lines(run))
    return own + (passes_of(run.after) if run.after is not None else 0.0)


def _sampled(line: Mapping[str, float | None]) -> float:
    """Return the tokens of a step's replies and prompts, as if no prompt was cached.

    >>> _sampled({"tokens/generated": 60.0, "tokens/completion": 6.0, "tokens/prompt": 20.0})
    260.0
    """
    generated, mean = line.get("tokens/generated") or 0.0, line.get("tokens/completion") or 0.0
    return generated + (generated / mean * (line.get("tokens/prompt") or 0.0) if mean else 0.0)
