"""A run that is open: its folder, problems, model, policy and learner; how they are saved and found again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isfinite, nan
from typing import Any

from debate.concurrency import run_async
from debate.policy import freeze, speaker_at
from debate.prompting.prompt import check_fits
from debate.seeds import derive_seed
from debate.types import Policy
from debate_rl.config import Config
from debate_rl.engines import end_engines, make_policy, open_summarizer, states_of
from debate_rl.evaluation.grading import Verifying, opened_verifying
from debate_rl.evaluation.report import held_out, metrics
from debate_rl.evaluation.scores import Scores
from debate_rl.inference.remote import RemoteError
from debate_rl.inference.tools import engine_of
from debate_rl.inference.vllm import VLLMPolicy
from debate_rl.judge_attack.judging import JudgeWatch
from debate_rl.judge_attack.pairs import set_aside_judged
from debate_rl.likelihood import Reader, open_reader
from debate_rl.metrics.held_out import append_held_out, kept_steps
from debate_rl.metrics.trackers import Trackers, open_trackers
from debate_rl.problems import Problems
from debate_rl.runs.checkpoint import (
    WARM_START,
    CheckpointError,
    TrainState,
    checkpoints,
    latest_good,
    load_checkpoint,
    save_checkpoint,
    tidy,
    warn_damaged,
)
from debate_rl.runs.folder import RunFolder, open_run, plain_config
from debate_rl.runs.provenance import problems_checksum
from debate_rl.runs.trainer_state import generators_kept, seed_generators
from debate_rl.runs.weights import FACT, use_threads
from debate_rl.training.canary import Canary, CanaryError, Finding, canary_of
from debate_rl.training.ends import End
from debate_rl.training.evaluating import evaluate_on
from debate_rl.training.guards import lowered
from debate_rl.training.label_ledger import LabelLedger
from debate_rl.training.lookahead import RolloutProcess
from debate_rl.training.plan import chosen_here
from debate_rl.training.ranks import RankedLearner, RankError, RankGroup
from debate_rl.training.rollouts import RolloutWorker
from debate_rl.training.sampler import Sampler
from debate_rl.training.start_checks import best_by, change_rules, is_better
from debate_rl.training.start_problems import checked_problems
from debate_rl.training.start_weights import start_weights
from debate_rl.training.stops import Stopped, Stops, catch_stops
from learner.update.config import LearnerConfig
from learner.update.learner import Learner
from transcripts.store import seal_before, set_aside_from

Look = Callable[[Problems], Mapping[str, bool | float]]


@dataclass
class Session:
    """Everything the loop works with. ``step``: the next step to do; ``ema``: running means of "rae".

    ``best``: the step with the highest ``train.keep_best`` so far, and that figure. ``saved``: the newest
    checkpoint's step; ``saved_at``: when it was written, or the run opened, in seconds of ``clock``.
    ``memory_checked``: whether the estimate was compared with what learning takes. ``end``: why its steps
    ended. ``reader``: of the likelihood reward, if there is one. ``began``: when the run began to be opened,
    in seconds of ``time.monotonic``. ``threads``: a line about those of a CPU.
    """

    config: Config
    folder: RunFolder
    data: Problems
    model: Any
    tokenizer: Any
    policy: Policy
    learner: Learner | RankedLearner
    tracker: Trackers = field(default_factory=Trackers)
    step: int = 0
    ema: dict[str, float] = field(default_factory=dict)
    evaluations: dict[int, Scores] = field(default_factory=dict)
    best: tuple[int, float] | None = None
    saved: int = 0
    memory_checked: bool = False
    clock: Callable[[], float] = time.monotonic
    saved_at: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    threads: str = ""
    stops: Stops = field(default_factory=Stops)
    canary: Canary | None = None
    found: Finding = field(default_factory=Finding)
    group: RankGroup | None = None
    verifying: Verifying | None = None
    end: End | None = None
    reader: Reader | None = None

    @classmethod
    def prepared(cls, config: Config) -> tuple[Config, Problems]:
        """Return the configuration as the run has it, and its problems, once both are checked."""
        return checked_problems(config)

    @classmethod
    def learner_settings(cls, config: Config, chosen: Mapping[str, bool | float]) -> LearnerConfig:
        """Return the learner's settings, with what was chosen of them."""
        return config.resolved_learner(chosen)

    @cached_property
    def rollouts(self) -> RolloutWorker | RolloutProcess:
        """What holds the steps' debates: this process, or with ``train.async_level`` one of its own."""
        if self.config.train.async_level:
            return RolloutProcess(self.config, self.policy, self.stops, version=self.step, ema=self.ema)
        return RolloutWorker(self.config, self.data, self.policy, self.stops, self.verifying, self.summarizer)

    @cached_property
    def sampler(self) -> Sampler:
        """What draws the problems of the steps."""
        return Sampler(self.config, self.data)

    @cached_property
    def ledger(self) -> LabelLedger:
        """Whose labels the steps so far used; opened once the run has gone back to its checkpoint."""
        return LabelLedger(self.folder.labels, self.step)

    @cached_property
    def summarizer(self) -> Policy | None:
        """What writes the summaries, if it is not the policy."""
        with generators_kept():
            return open_summarizer(self.config)

    @cached_property
    def _measured(self) -> set[tuple[str, int]]:
        """The held-out sets and steps whose figures are kept."""
        return kept_steps(self.folder.held_out)

    def engine_seconds(self) -> list[float]:
        """Return the seconds that each engine with a process of its own has worked; nothing without any."""
        return [state.seconds for state in states_of(self.policy)]

    def rest_engine(self) -> None:
        """Have an engine that sleeps give its memory back, until new weights are published."""
        if isinstance(engine := engine_of(self.policy), VLLMPolicy):
            engine.sleep()

    def publish(self, version: int) -> None:
        """Hand what the learner has learnt to the policy; one that holds the same model notes the version.

        An engine with weights of its own is compared with the learner at once: ``found`` is the result.
        """
        try:
            run_async(self.policy.update(self.model, version))
            if self.canary is not None:
                started = time.perf_counter()
                engine: Any = self.policy
                self.found = self.canary.compare(*run_async(engine.check(self.canary.requests)))
                self.found.metrics["seconds/canary"] = time.perf_counter() - started
        except (ValueError, RemoteError) as error:
            self.found = Finding(fault=str(error))

    def finish_step(self, step: int, metrics: Mapping[str, float]) -> dict[str, float]:
        """Log a finished step, and evaluate and save when due; a wrong engine ends the run with it saved.

        Return the held-out figures, where it was evaluated.
        """
        done = step + 1
        steps = self.config.train.steps
        started = time.perf_counter()
        due = self.config.held_out.due(done, steps) and not self.found.fault
        figures = self.evaluate(done) if due else {}
        if figures:
            figures["seconds/evaluate"] = time.perf_counter() - started
        self.tracker.log(step, {**metrics, **self.sampler.finish(step), **self.found.metrics, **figures})
        self.step = done
        if self._is_best(figures) or self._save_is_due() or self.found.fault:
            self.save()
        self._refuse_wrong_engine()
        return figures

    def _refuse_wrong_engine(self) -> None:
        """End a run whose engine does not compute with what was learnt."""
        if self.found.fault:
            raise CanaryError(
                f"model.policy={self.config.model.policy}: after update {self.step}, {self.found.fault}; "
                f"{self.step} of {self.config.train.steps} steps are saved in {self.folder.checkpoints}"
            )

    def _save_is_due(self) -> bool:
        """Return whether the finished steps are to be saved: at the end, by their number, or by the time."""
        train = self.config.train
        by_steps = train.save_every > 0 and self.step % train.save_every == 0
        spent = self.clock() - self.saved_at
        return self.step == train.steps or by_steps or 0 < 60 * train.save_minutes <= spent

    @property
    def evaluates_first(self) -> bool:
        """Whether held-out problems are evaluated before the first step: once, and if steps are to follow."""
        due = self.step == 0 and self.config.held_out.due(0, self.config.train.steps)
        return due and bool(self.data.held_out) and ("", 0) not in self._measured

    def evaluate_first(self) -> dict[str, float]:
        """Keep the held-out figures from before the first step, unless they are kept already; return them."""
        started = time.perf_counter()
        figures = self.evaluate(0) if self.evaluates_first else {}
        if figures:
            figures["seconds/evaluate"] = time.perf_counter() - started
            self.tracker.begin(figures)
        return figures

    def _is_best(self, figures: Mapping[str, float]) -> bool:
        """Note whether the weights are better than any before, by the held-out figure that decides."""
        name = best_by(self.config)
        if not name or not figures:
            return False
        value = figures.get(name, nan)  # a judge without any valid vote has no accuracy
        better = isfinite(value) and (self.best is None or is_better(name, value, self.best[1]))
        if better:
            self.best = (self.step, value)
        return better

    def _best_of(self) -> str:
        """Return the figure and the problems that the best checkpoint is chosen by; others choose anew."""
        return f"{best_by(self.config)} on {problems_checksum(self.data.never_trained)}"

    def evaluate(self, step: int) -> dict[str, float]:
        """Return held-out figures under the names of metrics.jsonl; nothing without held-out problems.

        What each problem gave is kept in held_out.jsonl. The run draws the same after it as without it.
        """
        figures: dict[str, float] = {}
        for part in self.data.evaluated(self.config):
            with generators_kept():
                scores = evaluate_on(self, part, step)
            if not part.name:
                watch = JudgeWatch(self.folder.path, self.config, part, self.policy, self.tracker)
                scores, watched = watch.measure(scores, step)
                figures |= watched
                self.evaluations[step] = scores
            if (part.name, step) not in self._measured:
                append_held_out(self.folder.held_out, held_out(scores, step, data=part.name))
                self._measured.add((part.name, step))
            figures |= metrics(scores, part.name)
        return figures

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
            best_of=self._best_of(),
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
        """Have the finished steps in a checkpoint when this returns."""
        if self.saved != self.step:
            self.save()

    def keep(self, stop: Stopped) -> None:
        """Save the finished steps of a run that a signal stopped, and have the stop say so."""
        try:
            if self.group is not None:
                self.group.refuse_lost()
            self.save_finished()
            stop.kept = self.saved_words()
        except RankError as lost:
            stop.kept = str(lost)

    def saved_words(self) -> str:
        """Return what a resumed run begins from."""
        if self.saved == 0:
            return "no step was finished; the same command begins with the first"
        done = f"{self.saved} of {self.config.train.steps} steps"
        return f"{done} are saved in {self.folder.checkpoints}; the same command resumes from there"

    @contextmanager
    def warm_started_weights(self) -> Iterator[None]:
        """Put the weights of the warm start into the model for a while."""
        path = latest_good(self.folder.path / WARM_START)
        if path is None:
            raise ValueError(f"{self.folder.path}: holds no warm-started weights")
        trained = {name: value.clone() for name, value in self.model.state_dict().items()}
        load_checkpoint(path, model=self.model, restore_rng=False, verify=False)
        try:
            yield
        finally:
            self.model.load_state_dict(trained)

    def restore(self) -> None:
        """Go on from the newest good checkpoint, if any; the weights are published before any sampling."""
        path = latest_good(self.folder.checkpoints)
        if path is None:
            if checkpoints(self.folder.checkpoints):
                warn_damaged(f"{self.folder.path}: no checkpoint is good; the run begins again")
            self.publish(self.policy.version)
            self._refuse_wrong_engine()
            return
        state = load_checkpoint(path, model=self.model, parts={"learner": self.learner}, verify=False)
        if state.seed != self.config.seed and "seed" not in self.config.run.allow_changes:
            raise CheckpointError(f"{path}: is of a run with seed {state.seed}, not {self.config.seed}")
        self.step = self.saved = state.step
        self.sampler.restore(state.step, state.data_position, state.sampler)
        self.best = state.best if state.best_of == self._best_of() else None
        self.ema = dict(state.baselines)
        self.publish(state.policy_version)
        self._refuse_wrong_engine()


@contextmanager
def open_session(
    config: Config,
    *,
    look: Look | None = None,
    group: RankGroup | None = None,
    kind: type[Session] | None = None,
) -> Iterator[Session]:
    """Open a run: a new one is warm-started if so configured, an old one resumes from its newest checkpoint.

    ``look`` is given the problems before any model is loaded or anything written. It may refuse the run, and
    returns what was chosen of the settings that are "auto"; None is ``chosen_here``. ``group``: the processes
    that learn together, if there are several. ``kind``: what is learnt from; None is debates.

    SIGINT and SIGTERM raise Stopped within: ``debate_rl.training.stops``.
    """
    look = look or partial(chosen_here, config)
    with catch_stops() as stops, _opened(config, stops, look, group, kind or Session) as session:
        yield session


@contextmanager
def _opened(
    config: Config, stops: Stops, look: Look, group: RankGroup | None, kind: type[Session]
) -> Iterator[Session]:
    began, since = time.monotonic(), time.time()
    config, data = kind.prepared(config)
    chosen = look(data)
    facts = {"data_checksums": data.checksums, "findings": data.findings() | {"chosen": dict(chosen)}}
    threads = use_threads(config)
    if threads is not None:
        facts["findings"][FACT] = threads[0]
    facts |= {"since": since}
    run = open_run(config.run.dir, config, seed=config.seed, rules=change_rules(config), **facts)
    with opened_verifying(config, checked=True) as verifying, run as folder, ExitStack() as stack:
        learners = group.ranks.count if group else 1
        model, tokenizer, policy = make_policy(config.with_chosen(chosen), learners=learners)
        stack.callback(end_engines, policy)
        for speaker in dict.fromkeys(
            speaker_at(policy, seat) for seat in config.debate.seats or ("learning",)
        ):
            for problem in data.played:
                check_fits(problem, speaker, config.debate)
        start_weights(config, folder, model, tokenizer, data, policy)
        if "frozen" in config.debate.seats:
            freeze(policy)
        seed_generators(derive_seed(config.seed, "generators"))
        learning = lowered(kind.learner_settings(config, chosen), folder.starts)
        learner = _learner(model, config, learning, group)
        session = kind(config, folder, data, model, tokenizer, policy, learner, stops=stops, group=group)
        session.verifying, session.began = verifying, began
        session.threads = threads[1] if threads else ""
        session.reader = open_reader(config, learner, tokenizer, folder.path)
        if group is not None:
            group.saved = session.saved_words
        session.canary = canary_of(session)
        session.restore()
        stack.callback(session.rollouts.close)
        if folder.resumed:
            folder.record()
        best = session.best[0] if session.best else None
        tidy(folder.checkpoints, session.step, best=best, keep_last=config.train.keep_last)
        set_aside_from(folder.transcripts, session.step)
        seal_before(folder.transcripts, session.step)
        steps, first = config.train.steps, session.step
        about = {"steps": steps, "first_step": first, "settings": plain_config(config)}
        set_aside_judged(folder.path, first)
        with open_trackers(folder.path, config.logging, **about) as session.tracker:
            yield session


def _learner(
    model: Any, config: Config, settings: LearnerConfig, group: RankGroup | None
) -> Learner | RankedLearner:
    if group is not None:
        return RankedLearner(group, model, config, settings)
    return Learner(model, settings, total_steps=config.train.steps)
