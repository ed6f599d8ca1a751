"""An open run: its folder, problems, model, policy and learner; how it is opened, saved and resumed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

from debate.concurrency import run_async
from debate.policy import freeze, speaker_at
from debate.prompting.prompt import check_fits
from debate.seeds import derive_seed
from debate.types import Policy
from debate_rl.backends.service import ServiceError
from debate_rl.config import Config
from debate_rl.engines import end_engines, local_settings, make_policy, open_summarizer
from debate_rl.evaluation.grading import Verifying, opened_verifying
from debate_rl.forecast.plan import chosen_here
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.remote import RemoteError
from debate_rl.metrics.held_out import kept_steps
from debate_rl.metrics.trackers import Trackers, open_trackers
from debate_rl.preflight.start import best_by, change_rules, checked_problems
from debate_rl.rollouts.worker import RolloutWorker
from debate_rl.runs.checkpoint import (
    WARM_START,
    CheckpointError,
    TrainState,
    checkpoints,
    latest_good,
    load_checkpoint,
    save_checkpoint,
    tidy,
)
from debate_rl.runs.folder import RunFolder, RunFolderError, ends_by, open_run, plain_config
from debate_rl.runs.provenance import problems_checksum
from debate_rl.runs.trainer_state import generators_kept, seed_generators
from debate_rl.runs.weights import FACT, use_threads
from debate_rl.sampling.problems import Problems
from debate_rl.sampling.sampler import Sampler
from debate_rl.training.start_weights import start_weights
from debate_rl.training.stops import RankError, Stopped, Stops, catch_stops
from learner.update.config import LearnerConfig
from learner.update.learner import Learner
from transcripts.store import seal_before, set_aside_from

if TYPE_CHECKING:
    from debate_rl.backends.learner import ServiceLearner
    from debate_rl.evaluation.scores import Scores
    from debate_rl.likelihood import Reader
    from debate_rl.rollouts.lookahead import RolloutProcess
    from debate_rl.rollouts.records import LabelLedger
    from debate_rl.training.canary import Canary
    from debate_rl.training.ranks import RankedLearner, RankGroup

Reason: TypeAlias = Literal["steps", "target", "hours", "alarm", "rollback", "signal", "error"]
BY_ALARM: tuple[Reason, ...] = ("alarm", "rollback")
"""Reasons for which a command's exit code is 1: steps are left to do."""
LOWER = 0.5
"""The factor of a rollback on the learning rate."""
Look: TypeAlias = Callable[[Problems], Mapping[str, bool | float]]
"""Looks at the problems before any model is loaded or anything written: it may refuse the run, and returns
the values chosen for settings that are "auto"."""


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

    ``step``: the next step; ``ema``: running means of the baseline "rae". ``best``: the step with the highest
    ``train.keep_best`` so far, and that figure. ``saved``: the newest checkpoint's step; ``saved_at``: when
    it was written, in seconds of ``clock``. ``began``: when the run began to be opened, in seconds of
    ``time.monotonic``. ``threads``: a line about those of a CPU. ``fault``: what is wrong with the engine.
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
            *(self.verifying, self.summarizer),
        )

    @cached_property
    def ledger(self) -> LabelLedger:
        """Names the problems whose labels were used; opened once the run is restored."""
        from debate_rl.rollouts.records import LabelLedger

        return LabelLedger(self.folder.labels, self.step)

    @cached_property
    def measured(self) -> set[tuple[str, int]]:
        """The held-out sets and steps whose figures are kept."""
        return kept_steps(self.folder.held_out)

    def publish(self, version: int) -> dict[str, float]:
        """Send the learnt weights to the policy, and return the metrics of the canary.

        An engine with weights of its own is compared with the learner immediately. ``fault`` is the result.
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
        """The figure and the problems that choose the best checkpoint. A change begins a new choice."""
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
        """Write the finished steps, unless they are in a checkpoint."""
        if self.saved != self.step:
            self.save()

    def saved_words(self) -> str:
        """Return what a resumed run begins from."""
        if self.saved == 0:
            return "no step is saved; the same command begins with the first"
        done = f"{self.saved} of {self.config.train.steps} steps"
        return f"{done} are saved in {self.folder.checkpoints}; the same command resumes from there"

    def restore(self) -> None:
        """Resume from the newest good checkpoint, if any, and publish the weights before any sampling."""
        path, version = latest_good(self.folder.checkpoints), self.policy.version
        if path is not None:
            state = load_checkpoint(path, model=self.model, parts={"learner": self.learner}, verify=False)
            if state.seed != self.config.seed and "seed" not in self.config.run.allow_changes:
                raise CheckpointError(
                    f"{path}: belongs to a run with seed {state.seed}, not {self.config.seed}"
                )
            self.step = self.saved = state.step
            self.sampler.restore(state.step, state.data_position, state.sampler)
            self.best = state.best if state.best_of == self.best_of else None
            self.ema, version = dict(state.baselines), state.policy_version
        elif checkpoints(self.folder.checkpoints):
            warnings.warn(f"{self.folder.path}: no checkpoint is good; the run begins again", stacklevel=2)
        self.publish(version)
        self.refuse_wrong_engine()

    @contextmanager
    def finished_steps_saved(self) -> Iterator[None]:
        """Save the finished steps if the next step fails before its updates have begun.

        The draws and running means of the failed step are put back. A GPU out of memory ends the run with a
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
            if isinstance(error, ServiceError):
                raise ServiceError(f"step {self.step}: {error}; {self.saved_words()}") from error
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


@contextmanager
def open_training(
    config: Config,
    *,
    look: Look | None = None,
    group: RankGroup | None = None,
    prepare: Callable[[Config], tuple[Config, Problems]] = checked_problems,
    settings: Callable[[Config, Mapping[str, bool | float]], LearnerConfig] = Config.resolved_learner,
) -> Iterator[Run]:
    """Open a run: a new run is warm-started if so configured, an old one resumes from its newest checkpoint.

    ``look``: None is ``chosen_here``. ``group``: the processes that learn together, if there are several.
    ``prepare`` returns the configuration and the problems, once both are checked; ``settings`` returns those
    of the learner. SIGINT and SIGTERM raise Stopped within: ``debate_rl.training.stops``.
    """
    began, since = time.monotonic(), time.time()
    with catch_stops() as stops, ExitStack() as stack:
        config, data = prepare(config)
        chosen = (look or partial(chosen_here, config))(data)
        findings, threads = data.findings() | {"chosen": dict(chosen)}, use_threads(config)
        if threads is not None:
            findings[FACT] = threads[0]
        facts = {"data_checksums": data.checksums, "findings": findings, "since": since}
        opened = open_run(config.run.dir, config, seed=config.seed, rules=change_rules(config), **facts)
        verifying = stack.enter_context(opened_verifying(config, checked=True))
        folder = stack.enter_context(opened)
        learners = group.ranks.count if group else 1
        model, tokenizer, policy = make_policy(config.with_chosen(chosen), learners=learners)
        stack.callback(end_engines, policy)
        seats = config.debate.seats or ("learning",)
        for speaker in dict.fromkeys(speaker_at(policy, seat) for seat in seats):
            for problem in data.played:
                check_fits(problem, speaker, config.debate)
        start_weights(config, folder, model, tokenizer, data, policy)
        if "frozen" in config.debate.seats:
            freeze(policy)
        seed_generators(derive_seed(config.seed, "generators"))
        learning = settings(config, chosen)
        learning = learning.model_copy(
            update={"lr": learning.lr * LOWER ** ends_by(folder.starts, "rollback")}
        )
        learner = _learner(model, config, learning, group)
        run = Run(*(config, folder, data, model, tokenizer, policy, learner, stops, group, verifying))
        run.began, run.threads = began, threads[1] if threads else ""
        _open_helpers(run)
        run.restore()
        stack.callback(run.rollouts.close)
        _tidy(run)
        about = {"steps": config.train.steps, "first_step": run.step, "settings": plain_config(config)}
        with open_trackers(folder.path, config.logging, **about) as run.tracker:
            yield run


def _learner(
    model: Any, config: Config, settings: LearnerConfig, group: RankGroup | None
) -> Learner | RankedLearner | ServiceLearner:
    if config.engine.kind != "local":
        from debate_rl.backends.learner import ServiceLearner

        return ServiceLearner(model, settings, total_steps=config.train.steps)
    if group is None:
        return Learner(model, settings, total_steps=config.train.steps)
    from debate_rl.training.ranks import RankedLearner

    return RankedLearner(group, model, config, settings)


def _open_helpers(run: Run) -> None:
    """Open the reader of likelihoods and the canary, if the recipe needs them."""
    config, learner = run.config, run.learner
    if config.rewards.reads_likelihood:
        from debate_rl.likelihood import open_reader

        run.reader = open_reader(config, learner, run.tokenizer, run.folder.path)
    if run.group is not None:
        run.group.saved = run.saved_words
    if hasattr(run.policy, "check"):  # an engine with weights of its own
        from debate_rl.training.canary import Canary, canary_requests

        encode = LocalPolicy(run.model, run.tokenizer, **local_settings(config)).encode
        requests = canary_requests(config, run.data.train, run.policy)
        run.canary = Canary(
            run.model, requests, encode=encode, logprobs=learner.logprobs, compute=learner.compute
        )


def _tidy(run: Run) -> None:
    """Set aside the files of steps that a resumed run repeats."""
    folder = run.folder
    if folder.resumed:
        folder.record()
    best = run.best[0] if run.best else None
    tidy(folder.checkpoints, run.step, best=best, keep_last=run.config.train.keep_last)
    set_aside_from(folder.transcripts, run.step)
    if run.config.held_out.judge_pairs:
        from debate_rl.judge_attack.pairs import set_aside_judged

        set_aside_judged(folder.path, run.step)
    seal_before(folder.transcripts, run.step)
