"""A run's settings by dotted key: risky values, and advice without the parts that are already set."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, cast

Settings = Mapping[str, Any]
NOTHING_LEFT = "all proposed settings are already in use"
_WANTED = re.compile(r'(\w+\.\w+) (?:=|of) ("[^"]*"|[\d.e-]+)( or more)?')
TABLE = tomllib.loads((files("debate_rl.alarms") / "detectors.toml").read_text(encoding="utf-8"))
"""The detectors and the risky settings, as data."""


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one table with dotted keys, in order.

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
    """Return a setting of this type (float also accepts integers), or None."""
    value = settings.get(key)
    if type(value) is int and abs(value) > 1 << 53:  # no count of ours, and too large for a float
        return None
    if kind is float and type(value) is int:
        return value
    return value if isinstance(value, kind) and (kind is object or not isinstance(value, bool)) else None


def group_size(settings: Settings) -> int | None:
    """Return the minimum number of debates per problem, or None if unknown."""
    chunk: int | None = setting(settings, "train.adaptive.chunk", int)
    return chunk or setting(settings, "train.group_size", int)


def open_advice(settings: Settings, text: str) -> str:
    """Return the parts of a proposal that are not set yet. Commas and semicolons separate parts.

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
    """Yield (setting, rule, source) of each setting that a publication warns of."""

    def of(key: str, kind: type = float) -> Any:
        return setting(settings, key, kind)

    lr, beta, eps = of("learner.lr"), of("learner.beta"), of("learner.adam_eps")
    rank, norm = of("model.lora_rank", int), of("learner.max_grad_norm")
    weight, penalty = of("rewards.likelihood_weight") or 0.0, of("rewards.format_penalty")
    problems, debates = of("train.batch_size", int), group_size(settings)
    rate = lr if lr is not None and not any(key.startswith("model.tiny") for key in settings) else 0.0
    found = {
        "full_lr": rank == 0 and rate >= 2e-5,
        "lora_lr": rank and rate > 5e-5,
        "low_beta": beta is not None and 0 < beta < 1e-3 and lr is not None and lr >= 5e-6,
        "no_beta": beta == 0 and of("learner.keep_reference", object) is not True,
        "ppo": weight and of("learner.loss", str) == "ppo",
        "likelihood": weight >= 1,
        "eps": eps is not None and eps <= 1e-7 and not of("learner.warmup_steps", int),
        "norm": norm is not None and (norm == 0 or norm > 10),
        "small": problems is not None and debates is not None and problems * debates < 16,
        "never": of("held_out.every", int) == 0 or of("held_out.limit", int) == 0,
        "penalty": penalty is not None and penalty < -0.5,
        "votes": (of("debate.num_agents", int) or 0) > 1 and of("rewards.truth_weight") == 0,
    }
    numbers = {"lr": lr, "beta": beta, "weight": weight, "eps": eps, "norm": norm, "penalty": penalty}
    for name, (shown, rule, source) in TABLE["risky"].items():
        if found[name]:
            yield shown.format(**numbers, problems=problems, debates=debates), rule, source
