"""``debate solve RUN --plan``: whether a model fits given GPUs, and how many problems it answers per hour."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debate import Problem
from debate.files import read_json
from debate.prompting.prompt import opening_tokens
from debate_rl.config import Config
from debate_rl.engines import counting_policy
from debate_rl.forecast.memory import engine_memory, overhead_of, size
from debate_rl.forecast.time import CARDS, Card
from debate_rl.formatting import duration
from debate_rl.models import sketch_model
from debate_rl.strategies.solving import strategy_named
from debate_rl.strategies.work import SolvePlan
from debate_rl.warm_start.tokenizer import tiny_vocabulary

HOUR = 3600.0
SHARE = 0.9  # fraction of the memory that an engine takes on its own GPUs
_GPUS = re.compile(r"(?:(\d{1,3})\s*x\s*)?(\S.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Deployment:
    """The planned machine: ``gpus`` of one kind share the model, with ``bits`` per weight.

    ``speed``: measured tokens per second, None if not measured. ``tokens``: tokens per problem in an earlier
    solve; None means the maximum.
    """

    card: Card
    gpus: int = 1
    bits: int = 16
    speed: float | None = None
    tokens: float | None = None


def deployment_of(gpus: str, bits: int, speed: float | None, file: str | None) -> Deployment:
    """Return the planned machine that the options describe. ValueError for invalid options."""
    count, card = gpus_named(gpus)
    if bits not in (4, 8, 16):
        raise ValueError(f"--bits {bits}: must be 16, 8 or 4")
    if speed is not None and not (0 < speed < 1e9 and file is None):
        raise ValueError(f"--speed {speed:g}: must be more than 0, and cannot be given with --measured")
    if file is None:
        return Deployment(card, count, bits, speed)
    return Deployment(card, count, bits, *measured(file))


def gpus_named(text: str) -> tuple[int, Card]:
    """Return the number and kind of GPUs in a text. ValueError lists the known kinds.

    >>> count, card = gpus_named("4xL4")
    >>> count, card.name, card.gib
    (4, 'L4', 24)
    """
    match = _GPUS.fullmatch(text.strip())
    count, name = (int(match[1] or 1), match[2].split()[0].upper()) if match else (0, "")
    found = next((card for card in CARDS if card.name.split()[0].upper() == name), None)
    if found is None or not 1 <= count <= 64:
        known = ", ".join(card.name.split()[0] for card in CARDS)
        raise ValueError(f"--gpus {text}: write number and kind, as in 4xL4; known: {known}")
    return count, found


def measured(file: str) -> tuple[float, float]:
    """Return tokens per second and tokens per problem of an earlier ``debate solve --json FILE``."""
    try:
        figures = read_json(Path(file))
        speed, tokens = float(figures["tokens_per_second"]), float(figures["tokens_generated"])
        return speed, tokens / int(figures["problems"])
    except (LookupError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(
            f"--measured {file}: has no speed; give a file written by debate solve --json"
        ) from error


def deployment(
    config: Config, plan: SolvePlan, of: Deployment, *, problems: int | None = None
) -> dict[str, Any]:
    """Return bytes, concurrent replies, tokens per problem and problems per hour.

    Weights take bits / 8 bytes each, divided equally among the GPUs; the cache has 16 bits. ``overhead_of``
    is reserved on each GPU. ``speed_at_most`` is the data sheet's limit: one pass over all weights per token
    of all concurrent replies, and two operations per weight and token.
    """
    model, _ = sketch_model(config.model, vocabulary=tiny_vocabulary(config), on_gpu=True)
    parameters = sum(one.numel() for one in model.parameters())
    room = int(of.card.found * 2**30)
    vllm = config.model.vllm.model_copy(update={"gpu_memory_utilization": SHARE})
    whole = config.model_copy(update={"model": config.model.model_copy(update={"vllm": vllm})})
    engine = engine_memory(model, whole, of.gpus * room, beside=False)
    weights = parameters * of.bits // 8
    engine = replace(engine, weights=weights, overhead=of.gpus * overhead_of(room))
    each = config.debate.max_tokens + config.debate.thinking_tokens
    # Tokens of a solution's prompt with an empty problem.
    own = config.model_copy(update={"model": config.model.model_copy(update={"policy": None})})
    alone = config.debate.one_round(alone=True)
    prompt = opening_tokens(Problem("plan", ""), counting_policy(own), alone)
    replies = engine.tokens // (prompt + each)
    most = plan.tokens or each * strategy_named(plan.strategy).replies(plan.samples, config.debate)
    spent = of.tokens or most
    read = of.card.bytes * of.gpus / weights * max(1, replies)
    bound = min(read, of.card.operations * of.gpus / 2 / parameters)
    speed = of.speed
    return {
        "gpus": of.gpus,
        "gpu": of.card.name,
        "bits": of.bits,
        "parameters": parameters,
        "weights_bytes": weights,
        "memory_bytes": of.gpus * room,
        "fits": replies >= 1,
        "cache_tokens": engine.tokens,
        "replies_at_once": replies,
        "prompt_tokens": prompt,
        "reply_tokens": each,
        "tokens_per_problem": spent,
        "tokens_measured": of.tokens is not None,
        "speed": speed,
        "speed_at_most": bound if replies else None,
        "per_hour": None if speed is None else speed * HOUR / spent,
        "per_hour_at_most": bound * HOUR / spent if replies else None,
        "problems": problems,
        "hours": None if speed is None else (problems or 0) * spent / speed / HOUR,
        "seconds": plan.seconds,
    }


def plan_lines(figures: dict[str, Any]) -> list[str]:
    """Return the figures in words, each with its source."""
    of = figures
    counted = (
        f"counted:     {of['parameters']:,} parameters in {of['bits']} bits: {size(of['weights_bytes'])} of "
        f"{size(of['memory_bytes'])} ({of['gpus']} x {of['gpu']})"
    )
    if not of["fits"]:
        return [
            counted,
            "             does not fit: the memory has no room for a reply; use more GPUs or fewer bits",
        ]
    what = "measured" if of["tokens_measured"] else "if every reply reaches its token limit"
    spent = f"{of['tokens_per_problem']:,.0f} tokens per problem ({what})"
    lines = [
        counted,
        f"             cache of {of['cache_tokens']:,} tokens: {of['replies_at_once']:,} replies of "
        f"{of['reply_tokens']:,} tokens, after prompts of {of['prompt_tokens']:,} tokens plus the problem",
        f"data sheet:  at most {of['speed_at_most']:,.0f} tokens per second and "
        f"{of['per_hour_at_most']:,.0f} problems per hour; nothing was run on that GPU",
    ]
    if of["speed"] is None:
        return [*lines, f"measured:    nothing: --speed or --measured gives problems per hour; {spent}"]
    hour = f"{of['per_hour']:,.0f} problems per hour"
    lines.append(f"measured:    {of['speed']:,.0f} tokens per second, {spent}: {hour}")
    if of["problems"]:
        verdict = ""
        if of["seconds"] is not None:
            fits = of["hours"] * HOUR <= of["seconds"]
            verdict = f", {'within' if fits else 'more than'} the {of['seconds'] / HOUR:g} h available"
        lines.append(f"             {of['problems']:,} problems take {duration(of['hours'] * HOUR)}{verdict}")
    return lines
