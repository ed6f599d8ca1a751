"""The results of a sweep: held-out figures of each arm over its seeds, and differences from the first arm.

With several seeds, intervals account for the variation over seeds and over problems (``crossed_mean``). With
one seed, intervals are clustered by problem and ignore the variation over seeds. Differences are paired by
seed and problem; runs of the same seed have the same start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

from debate_rl.forecast.time import learner_passes
from debate_rl.metrics.held_out import DIRECT, FIGURES, LEADS, HeldOut, gains, reach_of, read_held_out
from debate_rl.metrics.intervals import Estimate, crossed_mean, holm
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sweeps.arms import Arm, is_supervised
from debate_rl.sweeps.running import State, SweepRun

Evaluations = Mapping[SweepRun, Sequence[HeldOut]]


@dataclass(frozen=True, slots=True)
class ArmFigure:
    """A held-out figure of an arm after ``step`` steps, over ``seeds`` seeds.

    ``gained``: the change since before the first step. ``less``: the difference from the first arm after the
    same number of steps, or at its end if arms differ in length; None for the first arm, and if no seed is
    shared. ``p``: the p-value of ``less``, adjusted for all arms [Holm 1979].
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
    """The mean cost of an arm's runs, and how the runs ended.

    ``tokens``: tokens generated in training. ``passes``: tokens times forward passes in training, including
    the arms that it continues: tokens sampled, read by the sampler, and read by the learner (times
    ``learner_passes``). ``steps``: training steps. Evaluations are not counted.
    """

    arm: str
    tokens: float
    passes: float
    steps: float
    state: str


def read_evaluations(runs: Sequence[SweepRun]) -> dict[SweepRun, list[HeldOut]]:
    """Return the evaluations of each run in the order of steps, without runs that have none."""
    found = {run: read_held_out(run.folder) for run in runs}
    return {run: evaluations for run, evaluations in found.items() if evaluations}


def figures_of(evaluations: Evaluations, arms: Sequence[Arm], names: Sequence[str]) -> list[ArmFigure]:
    """Return the figures of the arms by figure. ``names``: the figures; (): the default figures."""
    had = set(chain.from_iterable(one.figures for each in evaluations.values() for one in each))
    wanted = names or [name for name in dict.fromkeys((DIRECT, *FIGURES)) if name in had]
    found: list[ArmFigure] = []
    for name in wanted:
        rows = [*_rows(evaluations, arms, name)]
        known = [row for row in rows if row.less is not None and row.less.p is not None]
        adjusted = iter(holm([row.less.p or 0.0 for row in known if row.less]))
        found += [replace(row, p=next(adjusted)) if row in known else row for row in rows]
    return found


def _rows(evaluations: Evaluations, arms: Sequence[Arm], name: str) -> Iterator[ArmFigure]:
    by_arm: dict[Arm, dict[int, Sequence[HeldOut]]] = {arm: {} for arm in arms}
    for run, each in evaluations.items():
        if run.arm in by_arm:
            by_arm[run.arm][run.seed] = each
    firsts = by_arm[arms[0]] if arms else {}
    lengths = {
        run.config.train.steps for run in evaluations
    }  # steps of supervised runs depend on the number of replies
    ends = _last(firsts) if len(lengths) > 1 or any(is_supervised(run.config) for run in evaluations) else {}
    for arm, by_seed in by_arm.items():
        last = _last(by_seed)
        values = [totals for one in last.values() if (totals := one.totals(name))]
        first = {seed: each[0] for seed, each in by_seed.items() if each[0].step < last[seed].step}
        base = {seed: ends.get(seed) or _at(firsts.get(seed, ()), one.step) for seed, one in last.items()}
        others = {seed: one for seed, one in base.items() if one is not None and arm != arms[0]}
        step = max((one.step for one in last.values()), default=0)
        gained, less = differences(first, last, name), differences(others, last, name)
        mean = crossed_mean(values, signed=name in LEADS)
        if mean is not None:
            yield ArmFigure(arm.name, name, step, len(values), mean, gained, less, None)


def _last(by_seed: Mapping[int, Sequence[HeldOut]]) -> dict[int, HeldOut]:
    """Return the newest evaluation after a step that all seeds share, or else each seed's newest."""
    steps = [{one.step for one in each} for each in by_seed.values()]
    shared = set.intersection(*steps) if steps else set()
    found = {seed: _at(each, max(shared)) if shared else each[-1] for seed, each in by_seed.items()}
    return {seed: one for seed, one in found.items() if one is not None}


def _at(evaluations: Sequence[HeldOut], step: int) -> HeldOut | None:
    return next((one for one in evaluations if one.step == step), None)


def differences(before: Mapping[int, HeldOut], after: Mapping[int, HeldOut], name: str) -> Estimate | None:
    """Return the mean difference of a figure, ``after`` minus ``before``, over shared seeds, or None."""
    pairs = [gains(before[seed], after[seed], name) for seed in after if seed in before]
    runs = [{problem: (value, 1.0) for problem, value in found.items()} for found in pairs]
    return crossed_mean(runs, signed=True, most=reach_of(name))


def costs_of(runs: Sequence[SweepRun], arms: Sequence[Arm], state: State) -> list[ArmCost]:
    """Return the cost of each arm and the outcome of its runs."""
    costs: list[ArmCost] = []
    for arm in arms:
        own = [run for run in runs if run.arm == arm]
        lines = [_lines(run) for run in own]
        tokens = fmean(sum(line.get("tokens/generated") or 0.0 for line in each) for each in lines)
        done, failed = (sum(run.key in part for run in own) for part in (state.seconds, state.failed))
        words = f"{done} of {len(own)} done" + (f", {failed} failed" if failed else "")
        costs.append(ArmCost(arm.name, tokens, fmean(map(passes_of, own)), fmean(map(len, lines)), words))
    return costs


def _lines(run: SweepRun) -> list[dict[str, float | None]]:
    metrics = run.folder / "metrics.jsonl"
    return read_metrics(metrics) if metrics.exists() else []


def passes_of(run: SweepRun) -> float:
    """Return tokens times forward passes of a run, including the runs that it continues."""
    adapter, replies = run.config.model.lora_rank > 0, is_supervised(run.config)
    each = learner_passes(run.config.learner, adapter=adapter, replies=replies)
    own = sum(_sampled(line) + each * (line.get("read_tokens") or 0.0) for line in _lines(run))
    return own + (passes_of(run.after) if run.after is not None else 0.0)


def _sampled(line: Mapping[str, float | None]) -> float:
    """Return the number of tokens of a step's replies and prompts, without prompt caching.

    >>> _sampled({"tokens/generated": 60.0, "tokens/completion": 6.0, "tokens/prompt": 20.0})
    260.0
    """
    generated, mean = line.get("tokens/generated") or 0.0, line.get("tokens/completion") or 0.0
    return generated + (generated / mean * (line.get("tokens/prompt") or 0.0) if mean else 0.0)
