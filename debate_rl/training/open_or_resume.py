"""Open a new run, or resume a run from its newest good checkpoint and set aside files of later steps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from debate.policy import freeze, speaker_at
from debate.prompting.prompt import check_fits
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.engines import end_engines, local_settings, make_policy
from debate_rl.evaluation.grading import opened_verifying
from debate_rl.forecast.plan import chosen_here
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.trackers import open_trackers
from debate_rl.preflight.start import change_rules, checked_problems
from debate_rl.runs.checkpoint import CheckpointError, checkpoints, latest_good, load_checkpoint, tidy
from debate_rl.runs.folder import ends_by, open_run, plain_config
from debate_rl.runs.trainer_state import seed_generators
from debate_rl.runs.weights import FACT, use_threads
from debate_rl.sampling.load_problems import Problems
from debate_rl.training.run import LOWER, Look, Run
from debate_rl.training.start_weights import start_weights
from debate_rl.training.stops import catch_stops
from learner.update.config import LearnerConfig
from learner.update.learner import Learner
from transcripts.store import seal_before, set_aside_from

if TYPE_CHECKING:
    from debate_rl.backends.learner import ServiceLearner
    from debate_rl.training.ranks import RankedLearner, RankGroup


@contextmanager
def open_training(
    config: Config,
    *,
    look: Look | None = None,
    group: RankGroup | None = None,
    prepare: Callable[[Config], tuple[Config, Problems]] = checked_problems,
    settings: Callable[[Config, Mapping[str, bool | float]], LearnerConfig] = Config.resolved_learner,
) -> Iterator[Run]:
    """Open a run: warm-start a new run if so configured, or resume an old run from its newest checkpoint.

    ``look``: a check of the problems, by default ``chosen_here``. ``group``: the processes that learn
    together, if there are several. ``prepare`` returns the checked configuration and problems; ``settings``
    returns the learner's settings. SIGINT and SIGTERM raise Stopped within the block, as
    ``debate_rl.training.stops`` describes.
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
        resume(run)
        stack.callback(run.rollouts.close)
        set_aside_later_steps(run)
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
    """Show the learner's progress. Open the reader of likelihoods and the canary if needed."""
    config, learner = run.config, run.learner
    passes: Any = run.group.share.learner if run.group else learner
    passes.advance = partial(run.advance, "learning")
    if config.rewards.reads_likelihood:
        from debate_rl.likelihood import open_reader

        run.reader = open_reader(config, learner, run.tokenizer, run.folder.path)
    if run.group is not None:
        run.group.saved = run.saved_words
    if hasattr(run.policy, "check"):  # an engine with weights of its own
        from debate_rl.training.check_engine_weights import Canary, canary_requests

        encode = LocalPolicy(run.model, run.tokenizer, **local_settings(config)).encode
        requests = canary_requests(config, run.data.train, run.policy)
        run.canary = Canary(
            run.model, requests, encode=encode, logprobs=learner.logprobs, compute=learner.compute
        )


def resume(run: Run) -> None:
    """Resume from the newest good checkpoint, if any, and publish the weights before any sampling."""
    path, version = latest_good(run.folder.checkpoints), run.policy.version
    if path is not None:
        state = load_checkpoint(path, model=run.model, parts={"learner": run.learner}, verify=False)
        if state.seed != run.config.seed and "seed" not in run.config.run.allow_changes:
            raise CheckpointError(f"{path}: belongs to a run with seed {state.seed}, not {run.config.seed}")
        run.step = run.saved = state.step
        run.sampler.restore(state.step, state.data_position, state.sampler)
        run.best = state.best if state.best_of == run.best_of else None
        run.ema, version = dict(state.baselines), state.policy_version
    elif checkpoints(run.folder.checkpoints):
        warnings.warn(f"{run.folder.path}: every checkpoint is damaged; the run begins again", stacklevel=2)
    run.publish(version)
    run.refuse_wrong_engine()


def set_aside_later_steps(run: Run) -> None:
    """Move transcripts of steps that a resumed run repeats to ``superseded/``, and tidy its checkpoints."""
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
