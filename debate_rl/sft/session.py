"""Supervised runs, which train on replies instead of debates, and their forecast."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from statistics import fmean
from typing import Any, cast

import torch

from debate_rl.config import Config, TrainConfig
from debate_rl.engines import refuse_training, sleep_engine
from debate_rl.forecast.plan import Plan, planned
from debate_rl.forecast.time import UNTIMED, card_of, learner_passes, line_of, sheet_of, speed_here
from debate_rl.preflight.start import BEST_BY, HELD_BACK
from debate_rl.sampling.load_problems import Problems
from debate_rl.sft.replies import Encoded, Replies, batch_rows, load_replies, steps_of
from debate_rl.training.loop import Task, evaluate, evaluates_first
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.ranks import RankGroup
from debate_rl.training.run import Look, Run
from learner.update.config import LearnerConfig

LOSS = "learner.losses.cross_entropy:cross_entropy"
LOGGED = (
    *("loss", "grad_norm", "grad_norm_max", "grad_clipped", "update_per_lr", "lr", "updates"),
    *("skipped_updates", "bad_steps", "loss_scale", "kl_mean", "kl_max"),
    *("rows", "action_tokens", "row_tokens", "read_tokens", "reference_step"),
    *("sharing/difference", "sharing/noise"),
)
"""The learner's metrics that are meaningful for replies that the policy did not sample.

Entropy is not one of them: it falls because the replies are given, and would raise an alarm.
"""


def open_replies(
    config: Config, *, look: Look | None = None, group: RankGroup | None = None
) -> AbstractContextManager[Run]:
    """Open a supervised run. ``look`` and ``group`` are those of ``open_training``."""
    return open_training(config, look=look, group=group, prepare=prepared, settings=learner_settings)


def prepared(config: Config) -> tuple[Config, Problems]:
    """Check and return the configuration, with its number of steps, and the replies."""
    if not config.sft.data:
        raise ValueError("sft.data: is empty; set it to files of replies or data sets")
    refuse_training(config)
    data = load_replies(config)
    config = _in_steps(config, len(data.learnt))
    _refuse_no_best(config, data)
    return config, data


def learner_settings(config: Config, chosen: Mapping[str, bool | float]) -> LearnerConfig:
    """Return the learner's settings: cross-entropy and one update per step, whatever the recipe sets."""
    own = {"loss": LOSS, "minibatches": 1, "epochs": 1, "max_staleness": None, "tis": "token", "tis_cap": 0}
    return config.resolved_learner(chosen).model_copy(update=own)


def learn(run: Run, step: int, lapped: Callable[[str], None]) -> dict[str, float]:
    """Train on the next replies of the epoch for one step, and return the metrics of the step."""
    started = time.perf_counter()
    learnt = _replies(run).learnt
    drawn = [learnt[index] for index in run.sampler.draw(step).problems]
    sleep_engine(run.policy)
    with run.finished_steps_saved():
        metrics = run.learner.step(batch_rows(drawn, run.learner.steps))
    figures = {name: metrics[name] for name in LOGGED if name in metrics}
    if run.config.held_out.due(step + 1, run.config.train.steps):
        figures |= run.publish(step + 1)
    lapped("learn")
    return figures | {"seconds/learn": time.perf_counter() - started}


def evaluate_replies(run: Run, step: int) -> dict[str, float]:
    """Return the loss of held-back replies and the figures of held-out problems."""
    held_back = _replies(run).held_back
    loss = {HELD_BACK: mean_loss(run, held_back)} if held_back else {}
    return loss | evaluate(run, step)


def mean_loss(run: Run, examples: tuple[Encoded, ...]) -> float:
    """Return the mean cross-entropy of the learnt tokens, in nats per token."""
    total, size = 0.0, max(1, run.config.learner.micro_batch_tokens)
    for part in _passes(examples, size):
        total -= float(run.learner.logprobs(batch_rows(part)).to(torch.float64).sum())
    return total / sum(int(one.learnt.sum()) for one in examples)


def _measures_first(run: Run) -> bool:
    """Return True if an evaluation comes before the first step."""
    due = run.step == 0 and run.config.held_out.due(0, run.config.train.steps)
    alone = not run.data.held_out and bool(_replies(run).held_back)
    return evaluates_first(run) or (due and alone)


def _replies(run: Run) -> Replies:
    return cast("Replies", run.data)


REPLIES = Task(learn, evaluate_replies, _measures_first)


def _passes(examples: tuple[Encoded, ...], most: int) -> list[list[Encoded]]:
    """Return the examples in batches of at most ``most`` tokens with padding, longest examples first."""
    parts: list[list[Encoded]] = []
    for example in sorted(examples, key=lambda one: -len(one.ids)):
        if parts and (len(parts[-1]) + 1) * len(parts[-1][0].ids) <= most:
            parts[-1].append(example)
        else:
            parts.append([example])
    return parts


def _in_steps(config: Config, replies: int) -> Config:
    """Return the configuration with its number of steps and, unless set, direct evaluations."""
    train = {"steps": steps_of(config.sft, replies), "batch_size": config.sft.batch_size}
    held_out = {} if "direct" in config.held_out.model_fields_set else {"direct": True}
    return config.model_copy(
        update={
            "train": config.train.model_copy(update=train),
            "held_out": config.held_out.model_copy(update=held_out),
        }
    )


def _refuse_no_best(config: Config, data: Replies) -> None:
    """Raise ValueError if ``train.keep_best`` is not a measured metric."""
    name = config.train.keep_best
    if name in ("", TrainConfig().keep_best):
        return
    if name != HELD_BACK and not BEST_BY.fullmatch(name):
        raise ValueError(
            f"train.keep_best={name!r}: is not a metric of an evaluation; use {HELD_BACK} or "
            "a metric such as eval/direct/accuracy (docs/metrics.md)"
        )
    measured = data.held_back if name == HELD_BACK else data.held_out
    if not (measured and config.held_out.every):
        key = "sft.held_back" if name == HELD_BACK else "held_out.limit"
        raise ValueError(f"train.keep_best={name!r}: this run does not measure it; set {key}")


def planned_replies(config: Config, data: Problems, *, there: int | None = None) -> Plan | None:
    """Return the forecast of a supervised run in which every row is as long as the longest reply.

    It is the forecast of RL with one agent and replies of this length. ``there``: memory in bytes of the
    planned GPU; None: this machine.
    """
    longest = max(int(one.learnt.sum()) for one in cast("Replies", data).learnt)
    tokens = {"max_tokens": longest, "thinking_tokens": 0}
    debate = config.debate.one_round(alone=True).model_copy(update=tokens)
    learner = config.learner.model_copy(update={"tis_cap": 0, "share_prefixes": False})
    return planned(config.model_copy(update={"debate": debate, "learner": learner}), data, there=there)


def replies_time_line(config: Config, data: Problems, plan: Plan, *, here: bool, model: Any = None) -> str:
    """Return the line on the time of the remaining steps, in the form of ``time_line``."""
    speed = speed_here(config, plan.load, model) if here else None
    about, by = "about", "from a short probe of this model"
    if speed is None:
        card = card_of(plan.there) if plan.on_gpu else None
        if card is None:
            return f"  time    not known: {UNTIMED}"
        speed, about, by = card.speed(plan.model, plan.load), "at least", sheet_of(card)
    a_step = config.sft.batch_size * fmean(len(one.ids) for one in cast("Replies", data).learnt)
    passes = learner_passes(config.learner, adapter=config.model.lora_rank > 0, replies=True)
    plan, parts = replace(plan, config=config), f" with {a_step:,.0f} tokens"
    by = f"evaluations not counted; {by}"
    return line_of(plan, plan.done, a_step * passes / speed.score, 0.0, about, by, parts=parts)
