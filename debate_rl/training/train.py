"""The loop: problems -> debates -> truth -> rewards -> advantages -> rows -> new weights.

Everything a step does is a pure function of the configuration, the weights and the step's number, so the same
seed gives the same run, and a run that stopped resumes from its newest checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from debate_rl.alarms.rules import MISMATCH
from debate_rl.config import Config
from debate_rl.evaluation.grading import of_learners
from debate_rl.inference.tools import engine_of
from debate_rl.inference.vllm import VLLMPolicy
from debate_rl.judge_attack.pairs import read_judgments
from debate_rl.metrics.debates import compression_metrics, debate_metrics, size_metrics
from debate_rl.models import engine_dtype, resolve_dtype
from debate_rl.runs.trainer_state import generators_kept_on_error
from debate_rl.training.adaptive import adaptive_metrics
from debate_rl.training.ends import End, Limits, all_done, end_recorded
from debate_rl.training.guards import Guards
from debate_rl.training.memory_check import checked_step
from debate_rl.training.ranks import RankError
from debate_rl.training.rollouts import Clock, Rollout, of_groups, step_records
from debate_rl.training.schedules import schedule_metrics
from debate_rl.training.session import Session, open_session
from debate_rl.training.stall_watch import StallWatch
from debate_rl.training.step_problems import groups_with_signal
from debate_rl.training.stops import Stopped
from envs.answers.keys import key_of
from envs.registry import key_by_itself
from learner.advantages import TurnAdvantage, turn_advantages
from learner.rows import make_rows
from learner.types import Transition
from rewards.labels import hides_any
from rewards.measured import measure, measured_metrics
from transcripts import write_step

Do: TypeAlias = Callable[[Any, int, Callable[[str], None]], dict[str, float]]
"""Does a step of a session and returns its metrics; the function hears of each phase that ends."""


class StuckError(ValueError):
    """A run whose last steps could not move the weights; the message says how many, and what is kept."""


def train(config: Config) -> Session:
    """Train from a configuration, or resume the run in its folder; return the session at its end."""
    while True:
        with open_session(config) as session:
            train_steps(session)
        if not goes_on(session):
            return session


def goes_on(session: Session) -> bool:
    """Return whether a run was rolled back and is to be opened again.

    Ranks, and an engine within this process, are not started twice: the same command goes on.
    """
    rolled_back = session.end is not None and session.end.reason == "rollback"
    return rolled_back and session.group is None and not isinstance(engine_of(session.policy), VLLMPolicy)


def train_steps(session: Session, do: Do | None = None) -> None:
    """Do the steps that are left of the run; what a signal does stands in ``debate_rl.training.stops``.

    ``session.end`` then says why it ended: all steps, a target, a time, or an alarm. ``do``: what a step
    of this session does; None is ``train_step``.
    """
    with end_recorded(session):
        try:
            session.end = _end_of_steps(session, do or train_step)
        except Stopped as stop:
            if not stop.at_once:
                session.keep(stop)
            raise


def _end_of_steps(session: Session, do: Do) -> End:
    """Do the steps that are left until one is the last; return why it was."""
    if session.config.held_out.judge_pairs:
        read_judgments(session.folder.path, 0)  # a damaged file is named before a step is lost
    limits, guards = Limits(session), Guards(session)
    end = limits.end_of(session.evaluate_first())
    with StallWatch(session.tracker.say) as watch:
        for step in range(session.step, session.config.train.steps):
            if end is not None:
                break
            watch.begin(step)
            with session.stops.deferred():
                metrics = do(session, step, watch.lap)
                _check_first_mismatch(session, metrics)
                figures = session.finish_step(step, metrics)
                _refuse_stuck(session)
                end = guards.after(step) or limits.end_of(figures)
    if end is None or (session.step == session.config.train.steps and end.reason == "hours"):
        return all_done(session)
    if end.reason != "rollback":
        session.save_finished()
    return end


def train_step(session: Session, step: int, lapped: Callable[[str], None] | None = None) -> dict[str, float]:
    """Do one step of the run and return its metrics; ``lapped`` hears of each phase that ends."""
    config, clock = session.config, Clock(lapped)
    ledger = session.ledger if hides_any(config.rewards) else None
    with finished_steps_saved(session):
        busy = session.engine_seconds()
        played = session.rollouts.roll_out(step, session.sampler.draw, session.ema, clock)
        session.sampler.remember(step, played.debates, played.visible())
        labels = ledger.use(step, played) if ledger is not None else {}
        now = config.at_step(step)
        if session.reader is not None and now.rewards.reads_likelihood:
            session.rest_engine()
            played.take_likelihoods(session.reader.read(played.debates, step), now.rewards)
        transitions = played.transitions()
        advantages = turn_advantages(transitions, now.rewards, now.advantages, session.ema)
        if now.rewards.peer_weight == "measured":
            labels |= measured_metrics(session.ema)
            measure(session.ema, played.debates, played.visible(), key_by_itself)
        clock.lap("reward")

        session.rest_engine()
        learnt = _learn(session, played, transitions, advantages.turns)
    session.publish(step + 1)
    session.rollouts.published(step + 1, session.ema)
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
    write_step(session.folder.transcripts, step, kept, tokens=config.logging.transcript_tokens, seal=True)
    session.tracker.show(step, records)
    clock.lap("record")
    key = key_of(session.data.environment)
    debate_figures = debate_metrics(
        played.debates,
        played.correct,
        played.rewards,
        evaluation=config.advantages.evaluation,
        grader=played.graded,
        key=key,
        sources=session.data.sources,
        verdicts=played.verdicts,
        verified=played.verified,
        likelihoods=played.likelihoods,
    )
    debate_figures |= size_metrics(played.debates, config.debate)
    debate_figures |= compression_metrics(played.debates, config.debate)
    debate_figures |= labels
    figures = debate_figures | schedule_metrics(config, step) | advantages.metrics | learnt
    whole, waited = sum(clock.seconds.values()), clock.seconds["seconds/rollout"]
    speed = {
        "tokens_per_second": figures["tokens/generated"] / (whole if config.train.async_level else waited)
    }
    if busy:
        worked = max(sum(session.engine_seconds()) - sum(busy), 0.0)  # one started anew counts from 0
        speed |= {"idle/learner": waited / whole, "idle/engines": 1 - worked / (whole * len(busy))}
    return figures | speed | clock.seconds


@contextmanager
def finished_steps_saved(session: Session) -> Iterator[None]:
    """Save the finished steps where the next cannot be done, if its updates have not begun.

    What the step drew, and what it took into means and memories, is put back. A GPU without memory left ends
    the run with ValueError, which says what to lower.
    """
    means, memory = dict(session.ema), dict(session.sampler.memory)
    try:
        with generators_kept_on_error():
            yield
    except Exception as error:
        session.ema, session.sampler.memory = means, memory
        learner = session.learner
        between = learner.steps == session.step and not learner.halfway
        if session.step and between and not isinstance(error, RankError):
            session.save_finished()
        if isinstance(error, torch.OutOfMemoryError):
            raise ValueError(
                f"step {session.step}: {str(error).partition('. ')[0]}; lower learner.micro_batch_tokens, "
                "set learner.gradient_checkpointing=true or, where the model itself samples, lower "
                f"train.sample_batch_size; {session.saved_words()}"
            ) from error
        raise


def _learn(
    session: Session,
    played: Rollout,
    transitions: Sequence[Transition],
    advantages: Sequence[TurnAdvantage | None],
) -> dict[str, float]:
    """Learn from a step's turns, with dynamic sampling from those of groups that have a signal alone.

    A step with a reward that is not finite is left out: such a rule's rewards of the other turns are not to
    be trusted either.
    """
    metrics = {"reward/not_finite": float(played.not_finite)}
    if session.config.train.adaptive.chunk:
        pairs = zip(played.debates, played.correct, strict=True)
        learning = [of_learners(debate, table) for debate, table in pairs]
        metrics |= adaptive_metrics(played.groups, learning, session.config.train)
    if played.not_finite:
        return metrics | session.learner.skip()
    if session.config.train.dynamic_sampling:
        signal = groups_with_signal(transitions, advantages, session.config.at_step(session.step))
        groups = len({transition.group for transition in transitions})
        metrics |= {
            "sampling/extra_problems": float(groups - session.config.train.batch_size),
            "sampling/silent_problems": float(groups - len(signal)),
        }
        pairs = zip(transitions, advantages, strict=True)
        advantages = [part if transition.group in signal else None for transition, part in pairs]
    return metrics | checked_step(session, make_rows(transitions, advantages, session.config.advantages))


def _check_first_mismatch(session: Session, metrics: Mapping[str, float]) -> None:
    """Warn of a first step whose sampler and trainer differ by more than rounding.

    Beyond a limit the run ends, and nothing of it is kept.
    """
    found, most = metrics.get("mismatch_kl", 0.0), session.config.train.max_first_mismatch
    if session.step or found <= MISMATCH:
        return
    apart = f"mismatch_mean {metrics['mismatch_mean']:.3g}, mismatch_max {metrics['mismatch_max']:.3g}"
    why = f"sampler and trainer give the same tokens other probabilities ({apart}). {_why_apart(session)}"
    if most is not None and found > most:
        raise ValueError(
            f"step 0: mismatch_kl is {found:.3g}, over train.max_first_mismatch = {most:g}: {why}; nothing "
            "was saved"
        )
    session.tracker.say(f"step 0: mismatch_kl is {found:.3g} nats a token, over {MISMATCH:g}: {why}")


def _why_apart(session: Session) -> str:
    """Return what makes sampler and trainer differ, as far as it is known, and what to do."""
    model, computes = session.config.model, session.learner.compute
    learns = str(computes or resolve_dtype(model)).removeprefix("torch.")
    if model.policy == "vllm" and (samples := engine_dtype(model)) != learns:
        return (
            f"The learner multiplies in {learns}, the engine in {samples}, and one of them rounds small "
            f'updates of the weights away: set learner.compute = "{samples}"'
        )
    return "Check that temperature, model, adapter and numeric type are one for both"


def _refuse_stuck(session: Session) -> None:
    """End a run that no longer learns, with its finished steps saved."""
    bad, most = session.learner.bad_steps, session.config.learner.max_bad_steps
    if bad < most:
        return
    session.save_finished()
    raise StuckError(
        f"step {session.step}: {bad} steps in a row had no finite gradient or reward (learner.max_bad_steps="
        f"{most}) and changed nothing; {session.step} of {session.config.train.steps} steps are saved in "
        f"{session.folder.checkpoints}; see grad_norm and reward/not_finite in {session.folder.metrics}"
    )
