"""The runs of a frontier: a sweep whose arms are its signals, from one start for each prior and seed.

First come the votes of every prior, whose runs make the warm starts; then these are measured, and the other
arms run. The same command runs what is left, as a sweep does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, load_config
from debate_rl.formatting import printable
from debate_rl.sweeps.arms import Arm, Sweep, config_of, folder_of
from debate_rl.sweeps.running import Runner, State, SweepRun, open_state, runs_of, with_arms
from experiments.frontier.signals import LABELS, Signal, signal_named
from experiments.frontier.start import Start, measured_start

FIRST = "votes"
"""The signal whose runs make the warm starts."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A start: a recipe, and what is changed of it, as ``key=value`` texts. ``name``: "" of one alone."""

    name: str
    recipe: str
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """An arm that is wanted: a signal on a prior. ``steps``: None are the recipe's."""

    prior: Prior
    signal: Signal
    steps: int | None = None

    @property
    def name(self) -> str:
        """What its arm is called."""
        words = (self.prior.name, self.signal.name, f"{self.steps} steps" if self.steps else "")
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Plan:
    """A frontier: its arms, the seeds of each, the folder of all of it, and how many runs at a time.

    ``own_held_out``: every seed has held-out problems of its own, which a synthetic family makes without end;
    else all have those of the recipe. ``jitter``: as ``train.jitter``; ``begins``: the folder of the same
    frontier without jitter, whose warm starts these runs begin with.
    """

    wanted: tuple[Wanted, ...]
    seeds: tuple[int, ...]
    out: str
    at_once: int = 1
    devices: tuple[str, ...] = ()
    own_held_out: bool = False
    jitter: int = 0
    begins: str = ""

    def of_seed(self, seed: int) -> tuple[str, ...]:
        """Return what all runs of a seed change, as ``key=value`` texts."""
        held_out = (f"held_out.seed={seed}",) if self.own_held_out else ()
        return (*held_out, *((f"train.jitter={self.jitter}",) if self.jitter else ()))

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The priors, each once."""
        return tuple(dict.fromkeys(one.prior for one in self.wanted))

    def sweep(self) -> Sweep:
        """Return the sweep that runs its arms."""
        recipe = self.wanted[0].prior.recipe
        return Sweep(
            recipe=recipe, out=self.out, seeds=self.seeds, at_once=self.at_once, devices=self.devices
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """What was run of an arm, by seed: its runs, one for each jitter, what was measured of the start, why one
    is missing.
    """

    wanted: Wanted
    runs: Mapping[int, tuple[SweepRun, ...]]
    starts: Mapping[int, Start]
    missing: Mapping[int, str] = field(default_factory=dict)


def joined(repeats: Sequence[Sequence[Ran]]) -> list[Ran]:
    """Return the arms of a frontier that was run with several jitters, each with all its runs."""
    return [
        replace(
            ones[0],
            runs={
                seed: tuple(run for one in ones for run in one.runs.get(seed, ()))
                for seed in dict.fromkeys(seed for one in ones for seed in one.runs)
            },
            missing={seed: why for one in ones for seed, why in one.missing.items()},
        )
        for ones in zip(*repeats, strict=True)
    ]


def planned(prior: Prior, names: Sequence[str]) -> list[Wanted]:
    """Return the arms of these signals on a prior; ValueError as ``signal_named``."""
    return [Wanted(prior, signal_named(name)) for name in dict.fromkeys((FIRST, *names))]


def check_plan(plan: Plan) -> None:
    """ValueError if arms could not be compared: no votes, no common start, nothing held out.

    And where a recipe says itself what is learnt from, or where an arm or a seed cannot be.
    """
    for prior in plan.priors:
        _check_prior(prior)
        first = next((one for one in plan.wanted if one.prior == prior and _is_first(one)), None)
        if first is None:
            raise ConfigError(
                f"{prior.name or prior.recipe}: has no arm {FIRST!r}, whose start the others take"
            )
        for seed in plan.seeds:
            config_of(plan.sweep(), _arm(first, {}), (f"seed={seed}",))
    for one in plan.wanted:
        known = replace(one.signal, alone=False)  # how many debates it holds is measured first
        config = config_of(plan.sweep(), _arm(replace(one, signal=known), {}))
        if config.train.epochs is not None and one.signal.name.startswith(f"{LABELS}="):
            raise ConfigError(
                f"{one.prior.recipe}: train.epochs = {config.train.epochs:g}: arm {one.name!r} has fewer "
                "problems and would have fewer steps; set train.steps in its place"
            )


def _check_prior(prior: Prior) -> None:
    config = load_config(Config, prior.recipe, prior.overrides)
    if config.stages is not None:
        raise ConfigError(f"{prior.recipe}: has stages, and arms begin with one start; name one stage's")
    if not config.held_out.limit or not config.held_out.every:
        raise ConfigError(
            f"{prior.recipe}: arms are compared by held-out problems, and held_out.limit or every is 0"
        )
    debate = config.debate
    if debate.num_agents < 3 or not (debate.num_rounds > 1 or debate.final_ballot):
        raise ConfigError(f"{prior.recipe}: nobody votes here; use debate.num_agents of 3 or more")
    rewards = config.rewards
    said = (
        ("train.control", config.train.control, "none"),
        ("rewards.pseudo", rewards.pseudo, "none"),
        ("rewards.peer_weight", rewards.peer_weight, "rest"),
    )
    for key, value, unset in said:
        if value != unset:
            raise ConfigError(
                f'{prior.recipe}: {key} = "{value}": --signals say what arms learn from; leave it out'
            )


def run_plan(plan: Plan, tell: Callable[[str], None]) -> list[Ran]:
    """Run what is left of a frontier, and return the results of its finished arms."""
    check_plan(plan)
    sweep, starts = plan.sweep(), dict[tuple[Prior, int], Start]()
    firsts = [one for one in plan.wanted if _is_first(one)]
    arms = {one: _arm(one, {}) for one in firsts}
    with open_state(sweep, [*arms.values()]) as state:
        runner = Runner(sweep, state, tell)
        runs = _runs(plan, arms)
        runner.run(runs)
        for one, run in _of_arms(arms, runs):
            if run.key not in runner.state.seconds:
                raise ConfigError(f"{run.name}: failed: {_why_not(runner.state, run)}")
            signals = [other.signal for other in plan.wanted if other.prior == one.prior]
            home = Path(plan.begins or plan.out) / "starts"
            path = home / f"{folder_of(one.prior.name or 'start')}-{run.seed}.json"
            starts[one.prior, run.seed] = measured_start(_start_config(sweep, run), signals, path)
            tell(f"{one.prior.name or one.prior.recipe}, seed {run.seed}: the start is measured; {path}")
        arms = {one: _arm(one, starts) for one in plan.wanted}
        runner.state = with_arms(runner.state, sweep, [*arms.values()])
        runs = _runs(plan, arms)
        runner.run(runs)
    ended = [*_of_arms(arms, runs)]
    return [_ran(one, plan, ended, starts, runner.state) for one in plan.wanted]


def _ran(
    one: Wanted,
    plan: Plan,
    runs: Sequence[tuple[Wanted, SweepRun]],
    starts: Mapping[tuple[Prior, int], Start],
    state: State,
) -> Ran:
    own = [run for other, run in runs if other == one]
    return Ran(
        one,
        {run.seed: (run,) for run in own if run.key in state.seconds},
        {seed: starts[one.prior, seed] for seed in plan.seeds},
        {run.seed: _why_not(state, run) for run in own if run.key not in state.seconds},
    )


def _why_not(state: State, run: SweepRun) -> str:
    """Return why a run is not done."""
    said = state.failed.get(run.key) or f"see {run.log}"
    return printable(said)


def _arm(one: Wanted, starts: Mapping[tuple[Prior, int], Start]) -> Arm:
    """Return the arm of a sweep. One that is alone draws as many more solutions as spend its tokens.

    How many is the mean over the seeds, so that an arm is one thing.
    """
    own = list(one.signal.overrides)
    if one.signal.alone:
        own.append(f"train.group_size={alone_debates(one, starts)}")
    if one.steps is not None:
        own.append(f"train.steps={one.steps}")
    recipe = one.prior.recipe
    return Arm(one.name, (*one.prior.overrides, *own), recipe)


def alone_debates(one: Wanted, starts: Mapping[tuple[Prior, int], Start]) -> int:
    """Return the debates of one round for each problem that spend the tokens of the recipe's debates."""
    own = [start for (prior, _), start in starts.items() if prior == one.prior]
    config = load_config(Config, one.prior.recipe, one.prior.overrides)
    tokens = sum(start.debate for start in own) / sum(start.solution for start in own)
    return round(config.train.group_size * tokens / config.debate.num_agents)


def _runs(plan: Plan, arms: Mapping[Wanted, Arm]) -> list[SweepRun]:
    """Return the runs; those of a prior and seed begin with the warm start of the votes of 7 steps.

    With a jitter all begin with that of the same votes without it, and each perturbs it alike.
    """
    by_arm = {arm: one for one, arm in arms.items()}
    found = runs_of(plan.sweep(), [*arms.values()], plan.of_seed)
    votes = {(by_arm[run.arm].prior, run.seed): run for run in reversed(found) if _is_first(by_arm[run.arm])}
    begun: list[SweepRun] = []
    for run in found:
        first = votes[by_arm[run.arm].prior, run.seed]
        start = Path(plan.begins) / first.key if plan.begins else first.folder
        begun.append(replace(run, start=start) if _makes_start(run) and start != run.folder else run)
    return begun


def _makes_start(run: SweepRun) -> bool:
    """Return whether the recipe of a run makes a warm start."""
    return bool(run.config.warm_start.steps) and run.config.warm_start.from_run is None


def _is_first(one: Wanted) -> bool:
    return one.signal.name == FIRST and one.steps is None


def _of_arms(arms: Mapping[Wanted, Arm], runs: Sequence[SweepRun]) -> Iterator[tuple[Wanted, SweepRun]]:
    by_arm = {arm: one for one, arm in arms.items()}
    yield from ((by_arm[run.arm], run) for run in runs)


def _start_config(sweep: Sweep, run: SweepRun) -> Config:
    """Return the configuration of a run that begins with the weights that this run began with."""
    begins = (f"warm_start.from_run={json.dumps(str(run.folder))}",) if _makes_start(run) else ()
    home = f"run.dir={json.dumps(f'{run.folder}-start')}"
    return config_of(sweep, run.arm, (*run.own, home, *begins))
