"""The runs of a sweep: each a ``debate train`` in a process of its own, several at a time if asked.

What is done stands in OUT/sweep.json, and a run that stopped goes on from its newest checkpoint: the same
command finishes a sweep that was stopped or killed. What a run comes to depends neither on how many run at a
time nor on their order.
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
from debate_rl.metrics.held_out import kept_steps
from debate_rl.preflight.start import change_rules
from debate_rl.runs.checkpoint import WARM_START, checkpoints
from debate_rl.runs.folder import LOCK, changed_settings, is_locked, locked, write_whole
from debate_rl.runs.provenance import usable_cores
from debate_rl.sweeps.arms import Arm, Sweep, config_of

STATE = "sweep.json"
BEGINS = ("seed", "model", "env", "debate", "shots", "warm_start")
"""The parts of a configuration that decide the weights after a warm start."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class SweepRun:
    """A run of a sweep.

    ``start``: the run whose warm start it begins from, None for its own. ``after``: the run with whose
    trained weights it begins, once that is done. ``own``: what it changes beside its arm, its seed and folder
    among it, as ``key=value`` texts.
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
        """What lines call it."""
        return f"{self.arm.name}, seed {self.seed}"

    @property
    def key(self) -> str:
        """What it is in the state of the sweep."""
        return f"{self.arm.folder}/{self.folder.name}"

    @property
    def log(self) -> Path:
        """The file with what it printed."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def has_evaluated(self, step: int) -> bool:
        """Return whether the first held-out set was evaluated after so many steps."""
        return ("", step) in kept_steps(self.folder / "held_out.jsonl")

    def can_begin(self, done: Mapping[str, float]) -> bool:
        """Return whether the weights that it begins from are there; ``done``: the runs that are, by key."""
        if self.after is not None:
            return self.after.key in done
        return self.start is None or bool(checkpoints(self.start / WARM_START))

    def start_words(self) -> tuple[str, ...]:
        """Return the override that names the weights of another run that it begins with, or nothing."""
        named = (
            str(self.start) if self.start else f"{self.after.folder}@{self.arm.weights}" if self.after else ""
        )
        return (f"warm_start.from_run={json.dumps(named)}",) if named else ()

    def why_not(self) -> str:
        """Return why it cannot begin, once nothing else runs."""
        if self.after is not None:
            return f"{self.after.name} is not done, and it begins with its weights"
        return f"{self.start} has no warm start to begin from"

    def is_free(self) -> bool:
        """Return whether no process holds it; one of a sweep that was killed is still saving its step."""
        return not is_locked(self.folder)


class State(Settings):
    """OUT/sweep.json: what a sweep is and how far it has come; runs are named ARM/seed_N."""

    recipe: str
    arms: dict[str, list[str]] = Field(default_factory=dict)
    """What each arm changes, by its folder."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """The runs that are done, and how long the last start of each took."""
    failed: dict[str, str] = Field(default_factory=dict)
    """The runs that failed, and their last line."""
    dropped: dict[str, str] = Field(default_factory=dict)
    """The arms that were dropped, and why."""


def runs_of(
    sweep: Sweep, arms: Sequence[Arm], of_seed: Callable[[int], Sequence[str]] = lambda _: ()
) -> list[SweepRun]:
    """Return the runs of a sweep, seed by seed, so that arms can be compared early.

    ``of_seed``: what all runs of a seed change, as ``key=value`` texts.
    """
    first = config_of(sweep, arms[0]).seed
    found: dict[Path, SweepRun] = {}
    begun: dict[str, Path] = {}
    for seed in sweep.seeds_from(first):
        for arm in arms:
            folder = _folder(sweep, arm.folder, seed)
            own = (f"seed={seed}", f"run.dir={json.dumps(str(folder))}", *of_seed(seed))
            config = config_of(sweep, arm, own)
            after, start = found[_folder(sweep, arm.after, seed)] if arm.after else None, None
            if config.warm_start.steps and config.warm_start.from_run is None and after is None:
                parts = json.dumps([config.model_dump(mode="json")[name] for name in BEGINS])
                start = begun.get(parts)
                if start is None and not config.train.jitter:  # what was perturbed is not to be so again
                    begun[parts] = folder
            found[folder] = SweepRun(arm, seed, folder, config, start, after, own)
    return [*found.values()]


def _folder(sweep: Sweep, arm: str, seed: int) -> Path:
    return Path(sweep.out) / arm / f"seed_{seed}"


@contextmanager
def open_state(sweep: Sweep, arms: Sequence[Arm]) -> Iterator[State]:
    """Yield the state of the sweep in its folder, which is held until the end.

    Arms and seeds may be added to a sweep, and a run whose folder was removed is done again; ConfigError
    where one of its arms was another.
    """
    home = Path(sweep.out)
    home.mkdir(parents=True, exist_ok=True)
    with locked(home):
        state = read_state(home)
        if state is None:
            others = sorted(path.name for path in home.iterdir() if path.name != LOCK)
            if others:
                raise ConfigError(f"out={home}: holds {others[0]} and no sweep; choose another out=")
            state = State(recipe=sweep.recipe)
        there = {key: seconds for key, seconds in state.seconds.items() if (home / key).is_dir()}
        yield with_arms(state.model_copy(update={"seconds": there}), sweep, arms)


def with_arms(state: State, sweep: Sweep, arms: Sequence[Arm]) -> State:
    """Return the state with these arms; ConfigError where one of them was another."""
    if state.recipe != sweep.recipe:
        raise ConfigError(
            f"out={sweep.out} holds a sweep of {state.recipe}, and this one is of {sweep.recipe}; "
            "choose another out="
        )
    for arm in arms:
        before = state.arms.get(arm.folder, arm.changes)
        if before != arm.changes:
            had, has = (
                " ".join(one for one in ones if one not in others) or "nothing"
                for ones, others in ((before, arm.changes), (arm.changes, before))
            )
            raise ConfigError(
                f"out={sweep.out} holds a sweep whose arm {arm.name} has {had!r} where this one has {has!r}; "
                "choose another out="
            )
    return state.model_copy(update={"arms": state.arms | {arm.folder: arm.changes for arm in arms}})


def read_state(home: Path) -> State | None:
    """Return how far the sweep in a folder has come, None without any; ConfigError for a damaged one."""
    try:
        return read_facts(State, home / STATE, "choose another out=")
    except FileNotFoundError:
        return None


def refuse_changed(run: SweepRun) -> None:
    """ConfigError for a run that was done with other settings than its recipe has now."""
    rules = replace(change_rules(run.config), may_grow=())
    changed = changed_settings(run.folder, run.config)
    for key, change in changed.items():
        if key != "warm_start.from_run" and not rules.allow(key, change):
            before, now = change
            raise ConfigError(
                f"{run.folder}: was done with another recipe: {key} was {before!r}, now {now!r}; "
                "set it back, remove the folder, and it is done again, or choose another out="
            )


@dataclass
class Runner:
    """Does the runs of a sweep; ``tell`` gets a line where one begins, ends or is dropped."""

    sweep: Sweep
    state: State
    tell: Tell
    running: dict[SweepRun, Child] = field(default_factory=dict)

    def run(self, runs: Sequence[SweepRun], *, until: int | None = None) -> None:
        """Do what is left of the runs, of each up to the evaluation after step ``until`` if one is given.

        However it ends, the runs in progress save the steps they have finished. ConfigError where one that
        is done was another run.
        """
        for run in runs:
            if run.key in self.state.seconds:
                refuse_changed(run)
        left = [run for run in runs if not self._is_over(run, until)]
        free = [*self.sweep.places]
        try:
            while left or self.running:
                able = [run for run in left if run.can_begin(self.state.seconds)]
                while free and (ready := next((run for run in able if run.is_free()), None)):
                    left.remove(ready)
                    able.remove(ready)
                    self._begin(ready, free.pop(0))
                if not self.running and not able:
                    self._fail(left)
                    return
                time.sleep(0.2)
                free += [device for run in list(self.running) for device in self._looked_after(run, until)]
        finally:
            self._stop()

    def _is_over(self, run: SweepRun, until: int | None) -> bool:
        name = run.key
        over = name in self.state.seconds or run.arm.folder in self.state.dropped
        return over or (until is not None and run.has_evaluated(until))

    def _begin(self, run: SweepRun, device: str) -> None:
        self._note(failed={name: line for name, line in self.state.failed.items() if name != run.key})
        self.tell(f"{run.name}: begins; {run.log}")
        self.running[run] = Child.begin(run, self.sweep.recipe, device, len(self.sweep.places))

    def _looked_after(self, run: SweepRun, until: int | None) -> Iterator[str]:
        """Yield the device of a run that has ended; one that has come far enough is stopped."""
        child = self.running[run]
        code = child.process.poll()
        if code is None:
            if until is not None and not child.stopping and run.has_evaluated(until):
                child.stop()
            return
        del self.running[run]
        seconds = time.monotonic() - child.began
        if code == 0:
            self._note(seconds=self.state.seconds | {run.key: round(seconds, 1)})
            self.tell(f"{run.name}: done after {duration(seconds)}")
        elif child.stopping:
            self.tell(f"{run.name}: stopped after the evaluation of step {until}")
        else:
            said = _last_line(run.log) or f"exit code {code}"
            self._note(failed=self.state.failed | {run.key: said})
            self.tell(f"{run.name}: failed: {said}")
        yield child.device

    def _fail(self, left: Sequence[SweepRun]) -> None:
        """Note that runs cannot begin, as the run that had to give them their weights failed."""
        for run in left:
            said = run.why_not()
            self._note(failed=self.state.failed | {run.key: said})
            self.tell(f"{run.name}: failed: {said}")

    def drop(self, arm: Arm, why: str) -> None:
        """Leave an arm out of what is run from now on."""
        self._note(dropped=self.state.dropped | {arm.folder: why})
        self.tell(f"{arm.name}: dropped: {why}")

    def _note(self, **changes: Mapping[str, object]) -> None:
        self.state = self.state.model_copy(update=changes)
        write_whole(Path(self.sweep.out) / STATE, self.state.model_dump_json(indent=1).encode())

    def _stop(self) -> None:
        """Have the runs in progress save what they have finished, and wait for them."""
        for child in self.running.values():
            child.stop()
        for child in self.running.values():
            child.process.wait()
        self.running.clear()


@dataclass
class Child:
    """A run in progress, in a process of its own."""

    process: subprocess.Popen[bytes]
    device: str
    began: float
    stopping: bool = False

    @classmethod
    def begin(cls, run: SweepRun, recipe: str, device: str, at_once: int) -> Child:
        """Start a run, or go on with it, one of so many at once; what it prints is added to its log."""
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        own = (*run.own, "logging.progress=lines")
        words = (run.arm.recipe or recipe, *run.arm.overrides, *own, *run.start_words())
        command = [*_begun_by_a_sweep(), "-m", "debate_rl", "train", *words]
        environment = shared_threads(at_once) | os.environ
        if device:
            environment["CUDA_VISIBLE_DEVICES"] = device
        with run.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        return cls(process, device, time.monotonic())

    def stop(self) -> None:
        """Have it finish its step, save and end."""
        self.stopping = True
        with suppress(ProcessLookupError):
            self.process.terminate()


def shared_threads(at_once: int) -> dict[str, str]:
    """Return the environment that gives each of so many processes an equal share of the cores.

    torch takes a thread for each core; two such processes wait for each other and are slower than in turn.

    >>> shared_threads(1), shared_threads(10_000)
    ({}, {'OMP_NUM_THREADS': '1'})
    """
    return {"OMP_NUM_THREADS": str(max(1, usable_cores() // at_once))} if at_once > 1 else {}


ENDS_WITH_PARENT = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, {signal.SIGTERM:d})  # PR_SET_PDEATHSIG, which outlives execv
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Has the kernel send SIGTERM to a run when its sweep dies, so that its folder is free again.

Not a preexec_fn of Popen's, which may wait forever for a lock that another thread held when it was forked.
"""


def _begun_by_a_sweep() -> list[str]:
    return [sys.executable, *(["-S", "-c", ENDS_WITH_PARENT] if sys.platform == "linux" else [])]


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return printable(next((line for line in reversed(lines) if line.strip()), ""))
