"""Train the runs of a sweep, each as a ``debate train`` in a separate process, ``at_once`` at a time.

OUT/sweep.json stores finished runs, and a stopped run resumes from its newest checkpoint, so the same command
resumes a sweep that was stopped or killed. Results do not depend on the number of concurrent runs or on
their order.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from debate.settings import Settings
from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, read_facts
from debate_rl.formatting import duration, printable
from debate_rl.preflight.start import change_rules
from debate_rl.runs.checkpoint import WARM_START, checkpoints
from debate_rl.runs.folder import LOCK, changed_settings, is_locked, locked, write_whole
from debate_rl.runs.provenance import usable_cores
from debate_rl.sweeps.arms import Arm, Sweep, config_of

STATE = "sweep.json"
BEGINS = ("seed", "model", "env", "debate", "shots", "warm_start")
"""The parts of a configuration that determine the weights after a warm start."""
ENDS_WITH_PARENT = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, {signal.SIGTERM:d})  # PR_SET_PDEATHSIG, which outlives execv
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes the kernel send SIGTERM to a run when the sweep dies, which releases the lock on the run folder.

Popen's preexec_fn is not used: it may deadlock on a lock that another thread held during the fork.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SweepRun:
    """A run of a sweep.

    ``start``: another run whose warm start this run uses, or None. ``after``: another run whose trained
    weights this run starts from, or None. ``own``: changes of this run in addition to those of the arm (seed,
    folder), as ``key=value`` texts.
    """

    arm: Arm
    seed: int
    folder: Path
    config: Config
    start: Path | None = None
    after: SweepRun | None = None
    own: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the run in printed lines."""
        return f"{self.arm.name}, seed {self.seed}"

    @property
    def key(self) -> str:
        """The name of the run in the state of the sweep."""
        return f"{self.arm.folder}/{self.folder.name}"

    @property
    def log(self) -> Path:
        """The file with the output of the run."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def can_begin(self, done: Mapping[str, float]) -> bool:
        """Return True if the start weights of the run exist. ``done``: finished runs by key."""
        if self.after is not None:
            return self.after.key in done
        return self.start is None or bool(checkpoints(self.start / WARM_START))

    def why_not(self) -> str:
        """Return the reason that the run cannot start, after all other runs have ended."""
        if self.after is not None:
            return f"needs the weights of {self.after.name}, which did not finish"
        return f"needs the warm start of {self.start}, which does not exist"

    def start_words(self) -> tuple[str, ...]:
        """Return the override that sets the start weights to those of another run, or ()."""
        named = str(self.start or "")
        if self.after is not None:
            named = f"{self.after.folder}@{self.arm.weights}"
        return (f"warm_start.from_run={json.dumps(named)}",) if named else ()


class State(Settings):
    """The contents of OUT/sweep.json: arms and progress of a sweep. Runs are named ARM/seed_N."""

    recipe: str
    arms: dict[str, list[str]] = Field(default_factory=dict)
    """The changes of each arm, by the folder of the arm."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """The finished runs, with the seconds from their last start to their end."""
    failed: dict[str, str] = Field(default_factory=dict)
    """The failed runs, with the last line of their output."""


def runs_of(
    sweep: Sweep, arms: Sequence[Arm], of_seed: Callable[[int], Sequence[str]] = lambda _: ()
) -> list[SweepRun]:
    """Return the runs of a sweep, ordered by seed, so that arms can be compared early.

    Runs with the same seed and equal ``BEGINS`` share one warm start. ``of_seed``: returns the changes of all
    runs of a seed, as ``key=value`` texts.
    """
    found: dict[Path, SweepRun] = {}
    begun: dict[str, Path] = {}
    for seed in sweep.seeds_from(config_of(sweep, arms[0]).seed):
        for arm in arms:
            folder = Path(sweep.out) / arm.folder / f"seed_{seed}"
            own = (f"seed={seed}", f"run.dir={json.dumps(str(folder))}", *of_seed(seed))
            config = config_of(sweep, arm, own)
            after = found[Path(sweep.out) / arm.after / f"seed_{seed}"] if arm.after else None
            start = None
            if config.warm_start.steps and config.warm_start.from_run is None and after is None:
                parts = json.dumps([config.model_dump(mode="json")[name] for name in BEGINS])
                start = begun.get(parts)
                if start is None and not config.train.jitter:  # perturbed weights are not perturbed again
                    begun[parts] = folder
            found[folder] = SweepRun(arm, seed, folder, config, start, after, own)
    return [*found.values()]


@contextmanager
def open_state(sweep: Sweep, arms: Sequence[Arm]) -> Iterator[State]:
    """Lock the folder of the sweep, and yield the state of the sweep.

    Arms and seeds may be added, and a run whose folder was removed is repeated. Raise ConfigError if the
    folder contains another sweep, an arm has changed, or the state is damaged.
    """
    home = Path(sweep.out)
    home.mkdir(parents=True, exist_ok=True)
    with locked(home):
        try:
            state = read_facts(State, home / STATE, "choose another out=")
        except FileNotFoundError:
            others = sorted(path.name for path in home.iterdir() if path.name != LOCK)
            if others:
                refused = f"out={home}: contains {others[0]} but no sweep; choose another out="
                raise ConfigError(refused) from None
            state = State(recipe=sweep.recipe)
        there = {key: seconds for key, seconds in state.seconds.items() if (home / key).is_dir()}
        yield with_arms(state.model_copy(update={"seconds": there}), sweep, arms)


def with_arms(state: State, sweep: Sweep, arms: Sequence[Arm]) -> State:
    """Return the state with these arms. Raise ConfigError if the recipe or an arm has changed."""
    head, end = f"out={sweep.out} contains a sweep", "choose another out="
    if state.recipe != sweep.recipe:
        raise ConfigError(f"{head} of {state.recipe}, not of {sweep.recipe}; {end}")
    for arm in arms:
        before = state.arms.get(arm.folder, arm.changes)
        had = " ".join(one for one in before if one not in arm.changes) or "nothing"
        has = " ".join(one for one in arm.changes if one not in before) or "nothing"
        if before != arm.changes:
            raise ConfigError(f"{head} whose arm {arm.name} has {had!r} instead of {has!r}; {end}")
    return state.model_copy(update={"arms": state.arms | {arm.folder: arm.changes for arm in arms}})


def _refuse_changed(run: SweepRun) -> None:
    """Raise ConfigError if the settings of a finished run differ from those of its recipe."""
    rules = replace(change_rules(run.config), may_grow=())
    for key, change in changed_settings(run.folder, run.config).items():
        if key != "warm_start.from_run" and not rules.allow(key, change):
            before, now = change
            raise ConfigError(
                f"{run.folder}: has other settings: {key} was {before!r} and is now {now!r}; restore "
                f"the value, remove the folder to repeat the run, or choose another out"
            )


@dataclass
class Child:
    """The process of a run in progress, and its device."""

    process: subprocess.Popen[bytes]
    device: str
    began: float


@dataclass
class Runner:
    """Runs a sweep. ``tell`` receives a line when a run starts or ends."""

    sweep: Sweep
    state: State
    tell: Callable[[str], None]
    running: dict[SweepRun, Child] = field(default_factory=dict)

    def run(self, runs: Sequence[SweepRun]) -> None:
        """Train the unfinished runs. After an error or a stop, runs in progress save their finished steps.

        Raise ConfigError if a finished run has other settings.
        """
        for run in runs:
            if run.key in self.state.seconds:
                _refuse_changed(run)
        left = [run for run in runs if run.key not in self.state.seconds]
        free = [*self.sweep.places]
        try:
            while left or self.running:
                able = [run for run in left if run.can_begin(self.state.seconds)]
                # a run of a killed sweep may still be saving its step
                while free and (ready := next((run for run in able if not is_locked(run.folder)), None)):
                    left.remove(ready)
                    able.remove(ready)
                    self._begin(ready, free.pop(0))
                if not self.running and not able:
                    for run in left:  # the run with their start weights failed
                        self._fail(run, run.why_not())
                    return
                time.sleep(0.2)
                free += [device for run in list(self.running) for device in self._ended(run)]
        finally:
            for child in self.running.values():
                with suppress(ProcessLookupError):
                    child.process.terminate()
            for child in self.running.values():
                child.process.wait()
            self.running.clear()

    def _begin(self, run: SweepRun, device: str) -> None:
        """Start or resume a run. Append its output to its log."""
        self._note(failed={name: line for name, line in self.state.failed.items() if name != run.key})
        self.tell(f"{run.name}: started; log: {run.log}")
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        python = [sys.executable, *(["-S", "-c", ENDS_WITH_PARENT] if sys.platform == "linux" else [])]
        words = (run.arm.recipe or self.sweep.recipe, *run.arm.overrides, *run.own, "logging.progress=lines")
        at_once = len(self.sweep.places)  # each gets an equal share of the cores
        threads = {"OMP_NUM_THREADS": str(max(1, usable_cores() // at_once))} if at_once > 1 else {}
        environment = threads | os.environ | ({"CUDA_VISIBLE_DEVICES": device} if device else {})
        with run.log.open("ab") as log:
            process = subprocess.Popen(
                [*python, "-m", "debate_rl", "train", *words, *run.start_words()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self.running[run] = Child(process, device, time.monotonic())

    def _ended(self, run: SweepRun) -> Iterator[str]:
        """Yield the device of a run if the run has ended."""
        child = self.running[run]
        code = child.process.poll()
        if code is None:
            return
        del self.running[run]
        seconds = time.monotonic() - child.began
        if code == 0:
            self._note(seconds=self.state.seconds | {run.key: round(seconds, 1)})
            self.tell(f"{run.name}: done after {duration(seconds)}")
        else:
            with run.log.open("rb") as file:
                file.seek(max(0, run.log.stat().st_size - 4096))
                lines = file.read().decode("utf-8", "replace").splitlines()
            last = next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
            self._fail(run, printable(last))
        yield child.device

    def _fail(self, run: SweepRun, said: str) -> None:
        self._note(failed=self.state.failed | {run.key: said})
        self.tell(f"{run.name}: failed: {said}")

    def _note(self, **changes: Mapping[str, object]) -> None:
        self.state = self.state.model_copy(update=changes)
        write_whole(Path(self.sweep.out) / STATE, self.state.model_dump_json(indent=1).encode())
