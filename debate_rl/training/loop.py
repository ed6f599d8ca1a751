"""The loop: problems -> debates -> truth -> rewards -> advantages -> rows -> new weights.

Everything a step does is a pure function of the configuration, the weights and the step's number. So the same
seed gives the same run, and a run that stopped resumes from its newest checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

from debate.ramps import ramps_of
from debate_rl.alarms.rules import MISMATCH
from debate_rl.backends.service import ServiceError
from debate_rl.config import RAMPED, Config
from debate_rl.engines import sleep_engine, states_of
from debate_rl.formatting import counted, duration
from debate_rl.metrics.debates import compression_metrics, debate_metrics, size_metrics
from debate_rl.models import engine_dtype, resolve_dtype
from debate_rl.preflight.start import best_by, is_better
from debate_rl.rollouts.records import of_groups, step_records
from debate_rl.rollouts.worker import Clock, Rollout, adaptive_metrics, groups_with_signal
from debate_rl.runs.folder import wall_seconds
from debate_rl.training.act_on_alarms import Guards
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.run import End, Run
from debate_rl.training.stops import StallWatch
from envs.answers.keys import key_of
from envs.registry import key_by_itself
from learner.advantages import TurnAdvantage, turn_advantages
from learner.rows import make_rows
from learner.types import Transition
from rewards.measured import measure, measured_metrics
from transcripts import write_step

HOUR_S = 3600.0
WEIGHTS = (("rewards", "truth_weight"), ("advantages", "lambda_gen"), ("advantages", "lambda_judge"))
"""Weights of the streams, logged whether or not they change."""


class StuckError(ValueError):
    """A run whose last steps could not change the weights. The message gives their number."""


@dataclass(frozen=True)
class Task:
    """The task of a run: debates, or supervised replies.

    ``step`` does a step and returns its metrics; at the end of each phase, it calls its last argument with
    the phase's name. ``evaluate`` returns held-out figures. ``evaluates_first`` says whether to
    evaluate before the first step.
    """

    step: Callable[[Run, int, Callable[[str], None]], dict[str, float]]
    evaluate: Callable[[Run, int], dict[str, float]]
    evaluates_first: Callable[[Run], bool]


def train(config: Config) -> Run:
    """Train from a configuration, or resume the run in its folder. Return the run at its end."""
    while True:
        with open_training(config) as run:
            train_steps(run)
        if not goes_on(run):
            return run


def goes_on(run: Run) -> bool:
    """Return whether a run was rolled back and should be opened again in this process.

    A run with ranks or with an in-process engine is not reopened; running the same command resumes it.
    """
    rolled_back = run.end is not None and run.end.reason == "rollback"
    within = run.config.model.policy == "vllm" and run.config.vllm_within
    return rolled_back and run.group is None and not within


def train_steps(run: Run, task: Task | None = None) -> None:
    """Do the remaining steps of a run. ``run.end`` then says why it ended.

    ``task``: None means learning from debates. Signals: see ``debate_rl.training.stops``.
    """
    with run.end_recorded():
        try:
            run.end = _end_of_steps(run, task or DEBATES)
        except ServiceError as error:
            raise ServiceError(f"step {run.step}: {error}; {run.saved_words()}") from error


def _end_of_steps(run: Run, task: Task) -> End:
    """Do the remaining steps, and return why the run ended."""
    if run.config.held_out.judge_pairs:
        from debate_rl.judge_attack.pairs import read_judgments

        read_judgments(run.folder.path, 0)  # a damaged file is named before a step is lost
    steps, guards = run.config.train.steps, Guards(run)
    opened = wall_seconds(run.folder.starts) + time.monotonic() - run.began - run.clock()
    evaluate_first(run, task)
    end = reached_limit(run, opened + run.clock())
    with StallWatch(run.tracker.say) as watch:
        for step in range(run.step, steps):
            if end is not None:
                break
            watch.begin(step)
            with run.stops.deferred():
                metrics = task.step(run, step, watch.lap)
                check_first_mismatch(run, metrics)
                finish_step(run, step, metrics, task)
                _refuse_stuck(run)
                end = guards.act(step) or reached_limit(run, opened + run.clock())
    if end is None or (run.step == steps and end.reason == "hours"):
        return End("steps", f"{counted(steps, 'step')} done, as many as train.steps")
    if end.reason != "rollback":
        run.save_finished()
    return end


def train_step(run: Run, step: int, lapped: Callable[[str], None] | None = None) -> dict[str, float]:
    """Do one step on debates, and return its metrics. ``lapped`` is called with each phase that ends."""
    config, now, clock = run.config, run.config.at_step(step), Clock(lapped)
    worked = [state.seconds for state in states_of(run.policy)]
    with run.finished_steps_saved():
        played = run.rollouts.roll_out(step, run.sampler.draw, run.ema, clock)
        run.sampler.remember(step, played.last_grades())
        labels = run.ledger.use(step, played) if config.rewards.hides_any_label else {}
        if run.reader is not None and now.rewards.reads_likelihood:
            sleep_engine(run.policy)
            played.take_likelihoods(run.reader.read(played.debates, step), now.rewards)
        transitions = played.transitions()
        advantages = turn_advantages(transitions, now.rewards, now.advantages, run.ema)
        if now.rewards.peer_weight == "measured":
            labels |= measured_metrics(run.ema)
            measure(run.ema, played.debates, played.visible(), key_by_itself)
        clock.lap("reward")
        sleep_engine(run.policy)
        learnt = _learn(run, played, transitions, advantages.turns)
    learnt |= run.publish(step + 1)
    run.rollouts.published(step + 1, run.ema)
    clock.lap("learn")
    records = step_records(
        step,
        played.debates,
        played.correct,
        played.rewards,
        advantages.turns,
        played.timings,
        groups=played.groups,
        mode=config.grader.mode_at(step),
        verdicts=played.verdicts,
        likelihoods=played.likelihoods,
        credits=played.credits,
    )
    kept = of_groups(records, config.logging.transcript_groups)
    write_step(run.folder.transcripts, step, kept, tokens=config.logging.transcript_tokens, seal=True)
    run.tracker.show(step, records)
    clock.lap("record")
    figures = _debate_figures(run, played) | labels | schedule_metrics(config, step)
    figures |= advantages.metrics | learnt
    return figures | _speed(run, worked, figures["tokens/generated"], clock.seconds) | clock.seconds


def _learn(
    run: Run,
    played: Rollout,
    transitions: Sequence[Transition],
    advantages: Sequence[TurnAdvantage | None],
) -> dict[str, float]:
    """Learn from a step's turns. With dynamic sampling, learn only from groups that have a signal.

    Skip a step that has a non-finite reward: its other rewards come from the same faulty rule.
    """
    train, metrics = run.config.train, {"reward/not_finite": float(played.not_finite)}
    if train.adaptive:
        metrics |= adaptive_metrics(played.groups, played.of_learners(), train)
    if played.not_finite:
        return metrics | run.learner.skip()
    if train.dynamic_sampling:
        signal = groups_with_signal(transitions, advantages, run.config.at_step(run.step))
        groups = len({transition.group for transition in transitions})
        metrics |= {
            "sampling/extra_problems": float(groups - train.batch_size),
            "sampling/silent_problems": float(groups - len(signal)),
        }
        pairs = zip(transitions, advantages, strict=True)
        advantages = [part if transition.group in signal else None for transition, part in pairs]
    return metrics | run.learner.step(make_rows(transitions, advantages, run.config.advantages))


def _debate_figures(run: Run, played: Rollout) -> dict[str, float]:
    figures = debate_metrics(
        played.debates,
        played.correct,
        played.rewards,
        evaluation=run.config.advantages.evaluation,
        grader=played.graded,
        key=key_of(run.data.environment),
        sources=run.data.sources,
        verdicts=played.verdicts,
        verified=played.verified,
        likelihoods=played.likelihoods,
    )
    debate = run.config.debate
    return figures | size_metrics(played.debates, debate) | compression_metrics(played.debates, debate)


def _speed(
    run: Run, before: Sequence[float], generated: float, seconds: Mapping[str, float]
) -> dict[str, float]:
    """Return tokens per second, and the fractions of time that the learner and the engines were idle.

    ``before``: the seconds that each engine had worked before the step.
    """
    whole, waited = sum(seconds.values()), seconds["seconds/rollout"]
    speed = {"tokens_per_second": generated / (whole if run.config.train.async_level else waited)}
    if before:
        engines = [state.seconds for state in states_of(run.policy)]
        worked = max(sum(engines) - sum(before), 0.0)  # a restarted engine counts from 0
        speed |= {"idle/learner": waited / whole, "idle/engines": 1 - worked / (whole * len(before))}
    return speed


def schedule_metrics(config: Config, step: int) -> dict[str, float]:
    """Return the values of a run's schedules at a step."""
    now = config.at_step(step)
    changing = [(table, key) for table in RAMPED for key in ramps_of(getattr(config, table))]
    if config.rewards.reads_likelihood:
        changing.append(("rewards", "likelihood_weight"))
    figures = {f"schedule/{key}": getattr(getattr(now, table), key) for table, key in (*WEIGHTS, *changing)}
    if len(config.grader.modes) > 1:
        figures["grader/strict"] = float(config.grader.mode_at(step) == config.grader.final)
    if config.shots.count:
        figures["shots"] = float(config.shots.count_at(step))
    return figures


def finish_step(
    run: Run, step: int, metrics: Mapping[str, float], task: Task | None = None
) -> dict[str, float]:
    """Log a finished step, evaluate and save if due, and return the held-out figures, if any.

    A wrong engine ends the run with its steps saved.
    """
    done, train = step + 1, run.config.train
    due = run.config.held_out.due(done, train.steps) and not run.fault
    figures = _timed_evaluation(run, done, task or DEBATES) if due else {}
    run.tracker.log(step, {**metrics, **run.sampler.finish(step), **figures})
    run.step = done
    by_steps = train.save_every > 0 and done % train.save_every == 0
    by_time = run.clock() - run.saved_at >= SAVED_WITHIN_S
    if _is_best(run, figures) or done == train.steps or by_steps or by_time or run.fault:
        run.save()
    run.refuse_wrong_engine()
    return figures


def _is_best(run: Run, figures: Mapping[str, float]) -> bool:
    """Return whether the held-out figure by which checkpoints are kept is the best so far; then record it."""
    name = best_by(run.config)
    value = figures.get(name, nan)  # a judge without any valid vote has no accuracy
    better = isfinite(value) and (run.best is None or is_better(name, value, run.best[1]))
    if better:
        run.best = (run.step, value)
    return better


def evaluate_first(run: Run, task: Task | None = None) -> dict[str, float]:
    """Evaluate before the first step, if an evaluation is due; store and return the held-out figures."""
    task = task or DEBATES
    figures = _timed_evaluation(run, 0, task) if task.evaluates_first(run) else {}
    if figures:
        run.tracker.begin(figures)
    return figures


def _timed_evaluation(run: Run, done: int, task: Task) -> dict[str, float]:
    started = time.perf_counter()
    figures = task.evaluate(run, done)
    return figures | {"seconds/evaluate": time.perf_counter() - started} if figures else {}


def evaluate(run: Run, step: int) -> dict[str, float]:
    """Return held-out figures under the names of metrics.jsonl, or {} without held-out problems."""
    if not run.data.never_trained:
        return {}
    from debate_rl.training.evaluating import evaluate_held_out

    return evaluate_held_out(run, step)


def evaluates_first(run: Run) -> bool:
    """Return whether to evaluate before the first step: only once, and only if steps follow."""
    due = run.step == 0 and run.config.held_out.due(0, run.config.train.steps)
    return due and bool(run.data.held_out) and ("", 0) not in run.measured


SAVED_WITHIN_S = 1800
"""Seconds since the last checkpoint after which the next finished step writes a checkpoint."""
MAX_BAD_STEPS = 10
"""Number of consecutive steps without a finite gradient or reward after which a run ends."""
DEBATES = Task(train_step, evaluate, evaluates_first)


def reached_limit(run: Run, spent: float) -> End | None:
    """Return the end of a run that has reached its target or its hours, or None if it continues.

    ``spent``: wall seconds of all launches.
    """
    train = run.config.train
    if train.target is not None:
        from debate_rl.curriculum.promotion import look_at

        looked = look_at(train.target, run.folder.held_out, run.step)
        if looked is not None and looked.outcome is not None:
            return End("target", looked.why)
    if train.hours is not None and spent >= train.hours * HOUR_S:
        return End("hours", f"the run took {duration(spent)}, and train.hours = {train.hours:g}")
    return None


def check_first_mismatch(run: Run, metrics: Mapping[str, float]) -> None:
    """Warn if sampler and trainer differ by more than rounding in the first step.

    Beyond ``train.max_first_mismatch``, raise ValueError.
    """
    found, most = metrics.get("mismatch_kl", 0.0), run.config.train.max_first_mismatch
    if run.step or found <= MISMATCH:
        return
    apart = f"mismatch_mean {metrics['mismatch_mean']:.3g}, mismatch_max {metrics['mismatch_max']:.3g}"
    model, computes = run.config.model, run.learner.compute
    learns = str(computes or resolve_dtype(model)).removeprefix("torch.")
    cause = "Check that temperature, model, adapter and numeric type are the same for both"
    if model.policy == "vllm" and (samples := engine_dtype(model)) != learns:
        cause = (
            f"The learner multiplies in {learns}, the engine in {samples}, and one of them loses small "
            f'weight updates by rounding: set learner.compute = "{samples}"'
        )
    why = f"sampler and trainer give the same tokens different probabilities ({apart}). {cause}"
    if most is not None and found > most:
        raise ValueError(
            f"step 0: mismatch_kl is {found:.3g}, over train.max_first_mismatch = {most:g}: {why}; nothing "
            "was saved"
        )
    run.tracker.say(f"step 0: mismatch_kl is {found:.3g} nats per token, over {MISMATCH:g}: {why}")


def _refuse_stuck(run: Run) -> None:
    """End a run that no longer learns, with its finished steps saved."""
    bad = run.learner.bad_steps
    if bad < MAX_BAD_STEPS:
        return
    run.save_finished()
    raise StuckError(
        f"step {run.step}: {bad} steps in a row had no finite gradient or reward and "
        f"changed nothing; {run.step} of {run.config.train.steps} steps are saved in "
        f"{run.folder.checkpoints}; see grad_norm and reward/not_finite in {run.folder.metrics}"
    )
