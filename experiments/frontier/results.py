"""The results of a frontier's arms: gains by seed, paired by problem, with p_v, p_c and p_m."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, variance

from debate_rl.metrics.held_out import JUDGE, NAME, WINNER, HeldOut, gain, read_held_out
from debate_rl.metrics.intervals import Estimate
from debate_rl.metrics.step_log import read_metrics
from debate_rl.preflight.votes import votes_by_round
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.sweeps.results import differences
from debate_rl.sweeps.running import SweepRun
from envs.answers.keys import key_of
from experiments.frontier.running import Ran
from experiments.frontier.signals import signal_named
from experiments.frontier.start import Judged
from transcripts import Record, read_records

FIRST_ANSWER = "debate/accuracy/round_0"


@dataclass(frozen=True, slots=True)
class OfSeed:
    """One run of an arm. ``first``, ``winner``: the evaluations' figures, by step, in order.

    ``gain``, ``winner_gain``: of the last evaluation minus the first, problem by problem; the latter None
    where nobody votes. ``judge_gain``: the same of judge accuracy in the evaluations' own debates, on the
    problems with decidable pairs in both. ``shown``: p_v, p_c and p_m by round of what training showed.
    ``generated`` and ``read``: tokens of training. ``labels``: problems whose label counted. With several
    jitters all are means over these, and ``gains`` are those of first answers, one for each.
    """

    gain: Estimate
    winner_gain: Estimate | None
    first: tuple[tuple[int, float], ...]
    winner: tuple[tuple[int, float], ...]
    shown: Mapping[int, Judged]
    generated: float
    read: float
    labels: int
    judge_gain: Estimate | None = None
    gains: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """An arm over its seeds. ``start``: p_v, p_c, p_m by round before training, in the mean of the seeds;
    ``starts``: those of each seed.
    """

    prior: str
    signal: str
    control: str
    steps: int
    start: Mapping[int, Judged]
    seeds: Mapping[int, OfSeed]
    evaluations: Mapping[int, Sequence[HeldOut]]
    starts: Sequence[Mapping[int, Judged]] = ()

    @property
    def gain(self) -> Estimate | None:
        """The gain of first answers, with its interval over seeds and problems."""
        return self._gain(FIRST_ANSWER)

    @property
    def winner_gain(self) -> Estimate | None:
        """The gain of the voted winner; None if nobody votes."""
        return self._gain(WINNER)

    @property
    def judge_gain(self) -> Estimate | None:
        """What judge accuracy gained; None if nobody votes."""
        return self._gain(JUDGE)

    @property
    def jitter_sd(self) -> float | None:
        """The standard deviation of the gain over jitters of one seed; None if no seed has two."""
        known = [variance(one.gains) for one in self.seeds.values() if len(one.gains) > 1]
        return sqrt(fmean(known)) if known else None

    def _gain(self, name: str) -> Estimate | None:
        if signal_named(self.signal).alone and name != FIRST_ANSWER:
            return None
        firsts, lasts = ({s: each[at] for s, each in self.evaluations.items()} for at in (0, -1))
        return differences(firsts, lasts, name)

    def p_v(self, round_: int = 0) -> float | None:
        """The share of decidable pairs that votes call right before training."""
        return self.start[round_].p_v if round_ in self.start else None

    def p_c(self, round_: int = 0) -> float | None:
        """The share of the same pairs on which the right answer is the commoner one."""
        return self.start[round_].p_c if round_ in self.start else None

    def p_m(self, round_: int = 0) -> float | None:
        """The share of problems on which the majority's answer of a round is right before training."""
        return self.start[round_].p_m if round_ in self.start else None


def cells_of(ran: Sequence[Ran]) -> list[Cell]:
    """Return the cells that have a run which is done."""
    return [_cell(one) for one in ran if one.runs]


def shortest(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that have the fewest steps of their prior: those that rules and labels compare."""
    least: dict[str, int] = {}
    for one in cells:
        least[one.prior] = min(one.steps, least.get(one.prior, one.steps))
    return [one for one in cells if one.steps == least[one.prior]]


def _cell(one: Ran) -> Cell:
    signal = one.wanted.signal
    each = {seed: [_evaluations(run) for run in runs] for seed, runs in one.runs.items()}
    evaluations = {seed: _pooled(own) for seed, own in each.items()}
    starts = [one.starts[seed].judged.get(signal.name, {}) for seed in one.runs]
    return Cell(
        one.wanted.prior.name,
        signal.name,
        signal.control,
        next(iter(one.runs.values()))[0].config.train.steps,
        _joined(starts),
        {
            seed: replace(
                _of_seed(runs, evaluations[seed], alone=signal.alone),
                gains=tuple(_first_gain(own) for own in each[seed]),
            )
            for seed, runs in one.runs.items()
        },
        evaluations,
        starts,
    )


def _evaluations(run: SweepRun) -> list[HeldOut]:
    """Return the evaluations of a run; ValueError without one before its first step and after its last."""
    found = read_held_out(run.folder)
    for at, step in ((0, 0), (-1, run.config.train.steps)):
        if not found or found[at].step != step:
            raise ValueError(
                f"{run.folder / NAME}: has no evaluation after step {step}, where arms are compared; remove "
                "the folder, and it is done again"
            )
    return found


def _pooled(repeats: Sequence[Sequence[HeldOut]]) -> list[HeldOut]:
    """Return the evaluations of one seed's runs as one: on each problem the values of all."""
    return [_added(ones) for ones in zip(*repeats, strict=True)]


def _added(ones: Sequence[HeldOut]) -> HeldOut:
    figures: dict[str, dict[str, tuple[float, int]]] = {}
    for one in ones:
        for name, by_problem in one.figures.items():
            own = figures.setdefault(name, {})
            for id, (total, count) in by_problem.items():
                before = own.get(id, (0.0, 0))
                own[id] = (before[0] + total, before[1] + count)
    return replace(ones[0], figures=figures)


def _first_gain(evaluations: Sequence[HeldOut]) -> float:
    found = gain(evaluations[0], evaluations[-1], FIRST_ANSWER)
    if found is None:
        raise ValueError(f"an evaluation has no {FIRST_ANSWER}")
    return found.difference.value


def _joined(tables: Sequence[Mapping[int, Judged]]) -> dict[int, Judged]:
    """Return p_v, p_c and p_m by round in the mean of the seeds that have any, and all their pairs."""
    rounds = sorted({round_ for table in tables for round_ in table})
    return {round_: _mean([table[round_] for table in tables if round_ in table]) for round_ in rounds}


def _mean(ones: Sequence[Judged]) -> Judged:
    shares = {name: fmean(getattr(one, name) for one in ones) for name in ("p_v", "p_c", "p_m")}
    return Judged(pairs=sum(one.pairs for one in ones), **shares)


def _of_seed(runs: Sequence[SweepRun], evaluations: Sequence[HeldOut], *, alone: bool) -> OfSeed:
    first = gain(evaluations[0], evaluations[-1], FIRST_ANSWER)
    winner, judge = (
        None if alone else gain(evaluations[0], evaluations[-1], name) for name in (WINNER, JUDGE)
    )
    if first is None:
        raise ValueError(f"{runs[0].folder}: its evaluations have no {FIRST_ANSWER}")
    lines = [read_metrics(run.folder / "metrics.jsonl") for run in runs]
    records = [list(read_records(run.folder / "transcripts")) for run in runs]
    return OfSeed(
        first.difference,
        None if winner is None else winner.difference,
        _trace(evaluations, FIRST_ANSWER),
        () if winner is None else _trace(evaluations, WINNER),
        _joined([_shown(run, own) for run, own in zip(runs, records, strict=True)]),
        fmean(sum(line.get("tokens/generated") or 0.0 for line in each) for each in lines),
        fmean(sum(map(_read, each)) for each in lines),
        round(fmean(_labels(*each) for each in zip(runs, lines, records, strict=True))),
        None if judge is None else judge.difference,
    )


def _trace(evaluations: Sequence[HeldOut], name: str) -> tuple[tuple[int, float], ...]:
    known = [(one.step, one.estimate(name)) for one in evaluations]
    return tuple((step, found.value) for step, found in known if found is not None)


def _read(line: Mapping[str, float | None]) -> float:
    """Return the tokens of a step's prompts: their mean by the number of replies."""
    generated, mean = line.get("tokens/generated") or 0.0, line.get("tokens/completion") or 0.0
    return generated / mean * (line.get("tokens/prompt") or 0.0) if mean else 0.0


def _labels(run: SweepRun, lines: Sequence[Mapping[str, float | None]], records: Sequence[Record]) -> int:
    """Return how many problems had a label that counted, by the end."""
    rewards = run.config.rewards
    if not rewards.hides_any_label and run.config.train.control == "none":
        return len({one.debate.problem.id for one in records})
    return round(max((line.get("labels/used") or 0.0 for line in lines), default=0.0))


def _shown(run: SweepRun, records: Sequence[Record]) -> dict[int, Judged]:
    """Return p_v, p_c and p_m by round of what training showed."""
    key = key_of(load_run_problems(run.config).environment)
    debates, correct = [one.debate for one in records], [one.correct for one in records]
    found = votes_by_round(debates, correct, key, [(one.step, one.group) for one in records])
    return {one.round: Judged.of(one) for one in found}


def difference(cell: Cell, other: Cell, figure: str = FIRST_ANSWER) -> dict[int, Estimate]:
    """Return by seed how much higher a figure is at the end of a cell, problem by problem."""
    pairs = {
        seed: gain(other.evaluations[seed][-1], own[-1], figure)
        for seed, own in cell.evaluations.items()
        if seed in other.evaluations
    }
    return {seed: found.difference for seed, found in pairs.items() if found is not None}


def less(cell: Cell, other: Cell, figure: str = FIRST_ANSWER) -> Estimate | None:
    """Return how much higher a figure is at the end of a cell, over the seeds that both have."""
    before, after = ({seed: each[-1] for seed, each in one.evaluations.items()} for one in (other, cell))
    return differences(before, after, figure)
