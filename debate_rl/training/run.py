"""An open run: its folder, problems, model, policy and learner, its checkpoints and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

from debate.concurrency import run_async
from debate.types import Policy
from debate_rl.backends.service import ServiceError
from debate_rl.config import Config
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.grading import Verifying
from debate_rl.inference.remote import RemoteError
from debate_rl.metrics.held_out import kept_steps
from debate_rl.metrics.trackers import Trackers
from debate_rl.preflight.start import best_by
from debate_rl.rollouts.worker import RolloutWorker
from debate_rl.runs.checkpoint import (
    WARM_START,
    TrainState,
    latest_good,
    load_checkpoint,
    save_checkpoint,
)
from debate_rl.runs.folder import RunFolder, RunFolderError
from debate_rl.runs.provenance import problems_checksum
from debate_rl.runs.trainer_state import generators_kept
from debate_rl.sampling.draw_problems import Sampler
from debate_rl.sampling.load_problems import Problems
from debate_rl.training.stops import RankError, Stopped, Stops
from learner.update.learner import Learner

if TYPE_CHECKING:
    from debate_rl.backends.learner import ServiceLearner
    from debate_rl.evaluation.scores import Scores
    from debate_rl.likelihood import Reader
    from debate_rl.rollouts.lookahead import RolloutProcess
    from debate_rl.rollouts.records import LabelLedger
    from debate_rl.training.check_engine_weights import Canary
    from debate_rl.training.ranks import RankedLearner, RankGroup

Reason: TypeAlias = Literal["steps", "target", "hours", "alarm", "rollback", "signal", "error"]
BY_ALARM: tuple[Reason, ...] = ("alarm", "rollback")
"""Reasons for exit code 1: the run still has steps to do."""
LOWER = 0.5
"""A rollback multiplies the learning rate by this factor."""
Look: TypeAlias = Callable[[Problems], Mapping[str, bool | float]]
"""A check of the problems before any model is loaded or any file is written. It may refuse the run, and it
returns the values chosen for settings that are "auto"."""


class EngineError(ValueError):
    """An engine that does not compute with the model that learns; the message names the cause."""


@dataclass(frozen=True, slots=True)
class End:
    """Why the steps of a run ended, as a word and a sentence.

    ``back_to``: the step to which a rollback returns.
    """

    reason: Reason
    why: str
    back_to: int | None = None


@dataclass
class Run:
    """The parts of an open run, and the state of its steps.

    ``step``: the next step; ``ema``: running means of the baseline "rae". ``best``: the step with the best
    ``train.keep_best`` so far, and that figure. ``saved``: the newest checkpoint's step; ``saved_at``: when
    it was written, in seconds of ``clock``. ``began``: when opening the run began, in seconds of
    ``time.monotonic``. ``threads``: a line about the CPU's threads. ``fault``: what is wrong with the engine.
    """

    config: Config
    folder: RunFolder
    data: Problems
    model: Any
    tokenizer: Any
    policy: Policy
    learner: Learner | RankedLearner | ServiceLearner
    stops: Stops = field(default_factory=Stops)
    group: RankGroup | None = None
    verifying: Verifying | None = None
    reader: Reader | None = None
    canary: Canary | None = None
    tracker: Trackers = field(default_factory=Trackers)
    step: int = 0
    ema: dict[str, float] = field(default_factory=dict)
    evaluations: dict[int, Scores] = field(default_factory=dict)
    best: tuple[int, float] | None = None
    saved: int = 0
    clock: Callable[[], float] = time.monotonic
    saved_at: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    threads: str = ""
    fault: str | None = None
    end: End | None = None

    @cached_property
    def sampler(self) -> Sampler:
        """Draws the problems of the steps."""
        return Sampler(self.config, self.data)

    @cached_property
    def summarizer(self) -> Policy | None:
        """The policy that writes the summaries, or None if the trained policy writes them."""
        with generators_kept():
            return open_summarizer(self.config)

    @cached_property
    def rollouts(self) -> RolloutWorker | RolloutProcess:
        """Holds the steps' debates: in this process, or with ``train.async_level`` in one of its own."""
        if self.config.train.async_level:
            from debate_rl.rollouts.lookahead import RolloutProcess

            interruptible = self.stops.interruptible
            return RolloutProcess(self.config, self.policy, interruptible, version=self.step, ema=self.ema)
        return RolloutWorker(
            *(self.config, self.data, self.policy, self.stops.interruptible),
            *(self.verifying, self.summarizer, partial(self.advance, "turns")),
        )

    def advance(self, part: str, done: int, total: int) -> None:
        """Show the progress of a part of the current step."""
        self.tracker.advance(f"step {self.step}: {part}", done, total)

    @cached_property
    def ledger(self) -> LabelLedger:
        """Records the problems whose labels were used; opened once the run is restored."""
        from debate_rl.rollouts.records import LabelLedger

        return LabelLedger(self.folder.labels, self.step)

    @cached_property
    def measured(self) -> set[tuple[str, int]]:
        """The held-out sets and steps whose figures are kept."""
        return kept_steps(self.folder.held_out)

    def publish(self, version: int) -> dict[str, float]:
        """Send the learnt weights to the policy, and return the metrics of the canary.

        An engine with its own weights is immediately compared with the learner, and ``fault`` is set to the
        fault that is found, or to None.
        """
        try:
            run_async(self.policy.update(self.model, version))
            if self.canary is None:
                return {}
            started = time.perf_counter()
            engine: Any = self.policy
            found = self.canary.compare(*run_async(engine.check(self.canary.requests)))
            self.fault = found.fault
            return found.metrics | {"seconds/canary": time.perf_counter() - started}
        except ServiceError:
            raise  # a service that fails has lost the step
        except (ValueError, RemoteError) as error:
            self.fault = str(error)
            return {}

    def refuse_wrong_engine(self) -> None:
        """End a run whose engine does not compute with the learnt weights."""
        if self.fault:
            policy, kind = self.config.model.policy, self.config.engine.kind
            name = f"model.policy={policy}" if kind == "local" else f"engine.kind={kind}"
            raise EngineError(
                f"{name}: after update {self.step}, {self.fault}; "
                f"{self.step} of {self.config.train.steps} steps are saved in {self.folder.checkpoints}"
            )

    @property
    def best_of(self) -> str:
        """The figure and problems that choose the best checkpoint; a change restarts the choice."""
        return f"{best_by(self.config)} on {problems_checksum(self.data.never_trained)}"

    def save(self) -> None:
        """Write a checkpoint of the finished steps."""
        state = TrainState(
            step=self.step,
            policy_version=self.step,
            data_position=self.sampler.drawn,
            sampler=self.sampler.state(),
            seed=self.config.seed,
            baselines=tuple(sorted(self.ema.items())),
            best=self.best,
            best_of=self.best_of,
        )
        save_checkpoint(
            self.folder.checkpoints,
            state,
            model=self.model,
            parts={"learner": self.learner},
            keep_last=self.config.train.keep_last,
        )
        self.saved, self.saved_at = self.step, self.clock()

    def save_finished(self) -> None:
        """Write a checkpoint of the finished steps, unless there is one."""
        if self.saved != self.step:
            self.save()

    def saved_words(self) -> str:
        """Return a line about the saved steps, from which the same command resumes."""
        if self.saved == 0:
            return "no step is saved; the same command begins again with the first step"
        done = f"{self.saved} of {self.config.train.steps} steps"
        return f"{done} are saved in {self.folder.checkpoints}; the same command resumes from there"

    @contextmanager
    def finished_steps_saved(self) -> Iterator[None]:
        """Save the finished steps if the next step fails before its updates have begun.

        The draws and running means of the failed step are restored. A GPU out of memory ends the run with a
        ValueError that says what to lower.
        """
        means, memory = dict(self.ema), dict(self.sampler.memory)
        try:
            with generators_kept(on_error_only=True):
                yield
        except Exception as error:
            self.ema, self.sampler.memory = means, memory
            between = self.learner.steps == self.step and not self.learner.halfway
            if self.step and between and not isinstance(error, RankError | ServiceError):
                self.save_finished()
            if isinstance(error, torch.OutOfMemoryError):
                raise ValueError(
                    f"step {self.step}: {str(error).partition('. ')[0]}; lower learner.micro_batch_tokens, "
                    "set learner.gradient_checkpointing=true or, where the model itself samples, lower "
                    f"train.sample_batch_size; {self.saved_words()}"
                ) from error
            raise

    @contextmanager
    def end_recorded(self) -> Iterator[None]:
        """Write into run.json why the block ended. Save the finished steps if a signal ended it."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, Stopped) and not error.at_once:
                self._keep(error)
            reason: Reason = "signal" if isinstance(error, Stopped) else "error"
            with suppress(RunFolderError):  # of a full disk, for instance: the first error says more
                self._record(End(reason, f"{type(error).__name__}: {error}"[:300]))
            raise
        assert self.end is not None
        self._record(self.end)

    def _keep(self, stop: Stopped) -> None:
        """Save the finished steps of a run that a signal stopped, and say in ``stop`` what is saved."""
        try:
            if self.group is not None:
                self.group.refuse_lost()
            self.save_finished()
            stop.kept = self.saved_words()
        except RankError as lost:
            stop.kept = str(lost)

    def _record(self, end: End) -> None:
        self.end = end
        more = {} if end.back_to is None else {"back_to": end.back_to}
        self.folder.record_end(end.reason, step=self.step, why=end.why, **more)

    @contextmanager
    def warm_started_weights(self) -> Iterator[None]:
        """Put the weights of the warm start into the model within this block."""
        path = latest_good(self.folder.path / WARM_START)
        if path is None:
            raise ValueError(f"{self.folder.path}: has no warm-started weights")
        trained = {name: value.clone() for name, value in self.model.state_dict().items()}
        load_checkpoint(path, model=self.model, restore_rng=False, verify=False)
        try:
            yield
        finally:
            self.model.load_state_dict(trained)
