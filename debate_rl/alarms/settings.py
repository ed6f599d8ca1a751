"""A run's settings by dotted key: what a source warns of, and advice less what is set already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

Settings = Mapping[str, Any]
NOTHING_LEFT = "what is proposed for this is set already"
_WANTED = re.compile(r'(\w+\.\w+) (?:=|of) ("[^"]*"|[\d.e-]+)( or more)?')
RLVR, MARKOVIAN, DEBATE = "RLVR experiment notes", "markovian run analysis", "debate training analysis"


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one, keys joined by dots, in order.

    >>> flat({"learner": {"lr": 1e-5}, "seed": 0})
    {'learner.lr': 1e-05, 'seed': 0}
    """
    result: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [*tables.items()][::-1]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict) and len(key) < 200:
            inner = cast("dict[str, Any]", value)
            waiting.extend([(f"{key}.{name}", nested) for name, nested in inner.items()][::-1])
        else:
            result[key] = value
    return result


def setting(settings: Settings, key: str, kind: type = object) -> Any:
    """Return a setting of this kind (float takes whole numbers too); None where there is none."""
    value = settings.get(key)
    if type(value) is int and abs(value) > 1 << 53:  # no count of ours, and too large for a float
        return None
    if kind is float and type(value) is int:
        return value
    return value if isinstance(value, kind) and (kind is object or not isinstance(value, bool)) else None


def group_size(settings: Settings) -> int | None:
    """Return how many debates each problem has, at least; None where it is not known."""
    chunk: int | None = setting(settings, "train.adaptive.chunk", int)
    return chunk or setting(settings, "train.group_size", int)


def open_advice(settings: Settings, text: str) -> str:
    """Return the parts of a proposal, between commas and semicolons, without those that are set.

    >>> open_advice({"learner.max_grad_norm": 1.0}, "learner.max_grad_norm = 1.0, a lower learner.lr")
    'a lower learner.lr'
    """
    pieces = re.split("(, |; )", text)
    parts = zip(pieces[::2], [*pieces[1::2], ""], strict=True)
    kept = "".join(part + end for part, end in parts if not _is_set(settings, part))
    return kept.removesuffix(", ").removesuffix("; ") or NOTHING_LEFT


def _is_set(settings: Settings, part: str) -> bool:
    wanted = _WANTED.search(part)
    if wanted is None:
        return False
    key, value, more = wanted.groups()
    if value.startswith('"'):
        return setting(settings, key, str) == value.strip('"')
    has = setting(settings, key, float)
    return has is not None and (has >= float(value) if more else has == float(value))


def risky(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, rule, source) of each setting that a source warns of."""

    def of(key: str, kind: type = float) -> Any:
        return setting(settings, key, kind)

    lr, beta, eps = of("learner.lr"), of("learner.beta"), of("learner.adam_eps")
    rank, norm = of("model.lora_rank", int), of("learner.max_grad_norm")
    weight, penalty = of("rewards.likelihood_weight") or 0.0, of("rewards.format_penalty")
    problems, debates = of("train.batch_size", int), group_size(settings)
    tiny = any(key.startswith("model.tiny") for key in settings)
    if lr is not None and not tiny and rank == 0 and lr >= 2e-5:
        rule = "full weights: 2e-5 and 5e-5 collapsed a 1.7B model, 5e-6 to 1e-5 trained it"
        yield f"learner.lr = {lr:g}", rule, RLVR
    if lr is not None and not tiny and rank and lr > 5e-5:
        yield f"learner.lr = {lr:g}", "LoRA: 1e-5 to 5e-5; 1e-4 was too much", MARKOVIAN
    if beta is not None and 0 < beta < 1e-3 and lr is not None and lr >= 5e-6:
        rule = "beta of 1e-4 at lr 5e-6: KL maximum 9748, entropy 0.008; 1e-3 held"
        yield f"learner.beta = {beta:g}", rule, RLVR
    if beta == 0 and of("learner.keep_reference", object) is not True:
        yield "learner.beta = 0", "no reference: drift is neither held nor measured (no kl_mean)", RLVR
    if weight and of("learner.loss", str) == "ppo":
        rule = "PPO with a likelihood reward: ratio 21.75, log-probability -1.8 to -41, reasoning of 4444"
        yield "learner.loss = ppo", rule, MARKOVIAN
    if weight >= 1:
        rule = "a weight of 1 from the first step on; 0.1 to 0.5 advised, raised by a ramp"
        yield f"rewards.likelihood_weight = {weight:g}", rule, MARKOVIAN
    if eps is not None and eps <= 1e-7 and not of("learner.warmup_steps", int):
        rule = "Adam's eps of 1e-7 without a warm-up: KL of 2685 within 8 steps"
        yield f"learner.adam_eps = {eps:g}", rule, RLVR
    if norm is not None and (norm == 0 or norm > 10):
        yield f"learner.max_grad_norm = {norm:g}", "cut gradients at 1.0", MARKOVIAN
    if problems is not None and debates is not None and problems * debates < 16:
        rule = "small batches: 12 answers a step was too few for a baseline, 32 advised"
        yield f"{problems} x {debates} debates a step", rule, MARKOVIAN
    if of("held_out.every", int) == 0 or of("held_out.limit", int) == 0:
        rule = "never evaluated: nobody can tell when it was at its best"
        yield "held_out.every or held_out.limit = 0", rule, MARKOVIAN
    if penalty is not None and penalty < -0.5:
        rule = "a format penalty over 0.5 lets the form dominate the content"
        yield f"rewards.format_penalty = {penalty:g}", rule, DEBATE
    if (of("debate.num_agents", int) or 0) > 1 and of("rewards.truth_weight") == 0:
        rule = "votes alone: where few solve it, praise goes to wrong work; mix in half truth"
        yield "rewards.truth_weight = 0", rule, DEBATE
