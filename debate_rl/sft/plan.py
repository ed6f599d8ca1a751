"""What memory a supervised run needs: the estimate of RL, of one agent with replies as long."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any, cast

from debate_rl.config import Config
from debate_rl.forecast.cards import card_of
from debate_rl.forecast.passes import learner_passes
from debate_rl.forecast.plan import Plan, planned
from debate_rl.forecast.time_line import line_of, sheet_of, timed_here
from debate_rl.sampling.problems import Problems
from debate_rl.sft.replies import Replies


def planned_replies(config: Config, data: Problems, *, there: int | None = None) -> Plan | None:
    """Return the needs of a run whose rows are all as long as its longest reply behind its first prompt.

    That is what RL of one agent would need whose replies spend so many tokens. ``there``: bytes of the memory
    of the GPU it is planned for; None means this machine.
    """
    longest = max(int(one.learnt.sum()) for one in cast("Replies", data).learnt)
    tokens = {"max_tokens": longest, "thinking_tokens": 0}
    debate = config.debate.one_round(alone=True).model_copy(update=tokens)
    learner = config.learner.model_copy(update={"tis_cap": 0, "share_prefixes": False})
    return planned(config.model_copy(update={"debate": debate, "learner": learner}), data, there=there)


def replies_time_line(config: Config, data: Problems, plan: Plan, *, here: bool, model: Any = None) -> str:
    """Return the line about the time of the steps that are left, as ``time_line`` has it of RL."""
    if here:
        speed, about, by = timed_here(plan, model)
    elif (card := card_of(plan.there)) is not None:
        speed, about, by = card.speed(plan.model, plan.load), "at least", sheet_of(card)
    else:
        return "  time    not known: nothing was timed on that card, and no data sheet of it is known here"
    a_step = config.sft.batch_size * fmean(len(one.ids) for one in cast("Replies", data).learnt)
    passes = learner_passes(config.learner, adapter=config.model.lora_rank > 0, replies=True)
    plan, parts = replace(plan, config=config), f" with {a_step:,.0f} tokens"
    by = f"evaluations not counted; {by}"
    return line_of(plan, plan.done, a_step * passes / speed.score, 0.0, about, by, parts=parts)
