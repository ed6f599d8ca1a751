"""Advantages of one reward stream: (value - baseline) / scale.

Sources: GRPO (arXiv 2402.03300) subtracts the group's mean and divides by its standard deviation. RLOO (arXiv
2402.14740) subtracts the mean of the other values. Dr. GRPO (arXiv 2503.20783) omits the division.
Role-conditioned estimation (SPIRAL, arXiv 2506.24119) subtracts a running mean per persona. See
``learner.advantages.context_effects`` for baselines with context effects.
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from learner.advantages.context_effects import Effects, context_effects
from learner.types import Transition

Baseline: TypeAlias = Literal["group", "rloo", "rae", "none"]
Scale: TypeAlias = Literal["group", "batch", "none"]
Values: TypeAlias = NDArray[np.float64]

GROUP_STD_EPS = 1e-4
BATCH_STD_FLOOR = 0.1
SAME = 1e-9
"""If the fitted baselines of equal values are closer than this, they differ only by rounding."""


def stream_advantages(
    values: Sequence[float | None],
    groups: Sequence[Hashable],
    *,
    baseline: Baseline,
    scale: Scale,
    ema: MutableMapping[str, float] | None = None,
    decay: float = 0.95,
) -> list[float | None]:
    """Return one advantage for each value, in order. None stays None and does not affect other values.

    ``groups`` has the group of each value. A group with fewer than two values, or with equal values, has no
    contrast. All its advantages are None with the baselines "group" and "rloo", and with the scale "group".
    "rae" subtracts the running mean in ``ema`` under the group's name (initially 0), and then updates it with
    the mean of the step's values: the first mean replaces it, later means get the weight 1 - ``decay``. Pass
    the same ``ema`` in each step.

    >>> stream_advantages([1.0, 0.0, None, 1.0], ["p", "p", "p", "q"], baseline="group", scale="none")
    [0.5, -0.5, None, None]
    >>> stream_advantages([1.0, 0.0, 0.5], "ppp", baseline="rloo", scale="none")
    [0.75, -0.75, 0.0]
    """
    return stream_parts(values, groups, baseline=baseline, scale=scale, ema=ema, decay=decay)[0]


@dataclass(frozen=True, slots=True, eq=False)
class GroupParts:
    """The intermediate results for the advantages of one group of n values.

    ``members``: the indices of the values. ``centre`` (n,) is subtracted from the values; None for baseline
    "none". ``std`` is the standard deviation of the group or the batch, and ``divisor`` the number derived
    from it; both are None for scale "none". ``advantages`` (n,): None without contrast. ``effects`` (n,): the
    effects of the values' contexts.
    """

    members: list[int]
    values: Values
    centre: Values | None
    std: float | None
    divisor: float | None
    advantages: Values | None
    effects: Effects | None = None

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())


def stream_parts(
    values: Sequence[float | None],
    groups: Sequence[Hashable],
    *,
    baseline: Baseline,
    scale: Scale,
    ema: MutableMapping[str, float] | None = None,
    decay: float = 0.95,
    contexts: Sequence[Hashable] | None = None,
    keep_equal: bool = False,
) -> tuple[list[float | None], dict[Hashable, GroupParts]]:
    """Return the result of ``stream_advantages``, and the intermediate results of each group.

    There are no intermediate results if baseline and scale are both "none". With ``contexts``, one per value,
    "group" and "rloo" subtract a fit of group and context (``learner.advantages.context_effects``). With
    ``keep_equal``, a group of equal values is then also kept if its fitted baselines differ, except with
    scale "group".
    """
    members = group_members(values, groups)
    if baseline == "none" and scale == "none":
        return [None if value is None else float(value) for value in values], {}
    batch_std = _std([value for value in values if value is not None]) if scale == "batch" else 0.0
    means = {} if ema is None else ema
    effects = None if contexts is None else context_effects(values, groups, contexts)
    result: list[float | None] = [None] * len(values)
    parts: dict[Hashable, GroupParts] = {}
    for key, indices in members.items():
        group = np.array([values[index] for index in indices], np.float64)
        own = None if effects is None else effects.of(indices)
        centre = _centre(group, baseline, key=str(key), ema=means, decay=decay, effects=own)
        std, divisor = _divisor(group, scale, batch_std)
        advantages, centred = None, group if centre is None else group - centre
        told_apart = baseline in ("rae", "none") or (keep_equal and float(np.ptp(centred)) > SAME)
        if has_contrast(group) or (told_apart and scale != "group"):
            advantages = centred if divisor is None else centred / divisor
            for index, advantage in zip(indices, advantages.tolist(), strict=True):
                result[index] = advantage
        parts[key] = GroupParts(indices, group, centre, std, divisor, advantages, own)
    return result, parts


def group_members(values: Sequence[float | None], groups: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Return the indices of each group's values, without None. ValueError for a value that is not finite.

    >>> group_members([1.0, None, 2.0], ["a", "a", "b"])
    {'a': [0], 'b': [2]}
    """
    members: dict[Hashable, list[int]] = {}
    for index, (value, key) in enumerate(zip(values, groups, strict=True)):
        if value is None:
            continue
        if not isfinite(value):
            raise ValueError(f"reward {index} of group {key!r} is {value}; rewards must be finite or None")
        members.setdefault(key, []).append(index)
    return members


def has_contrast(group: Sequence[float] | Values) -> bool:
    """Return whether a group has contrast: two or more values that are not all equal.

    >>> has_contrast([1.0, 1.0]), has_contrast([0.0, 1.0])
    (False, True)
    """
    return len(group) >= 2 and min(group) != max(group)


def _centre(
    group: Values,
    baseline: Baseline,
    *,
    key: str,
    ema: MutableMapping[str, float],
    decay: float,
    effects: Effects | None,
) -> Values | None:
    if effects is not None and baseline in ("group", "rloo"):
        return _fitted(group, effects, without_own=baseline == "rloo")
    if baseline == "group":
        return np.full_like(group, group.mean())
    if baseline == "rloo":
        return (group.sum() - group) / max(len(group) - 1, 1)
    if baseline == "rae":
        return _running_mean(group, key, ema, decay)
    if baseline == "none":
        return None
    raise ValueError(f"baseline must be group, rloo, rae or none, got {baseline!r}")


def _fitted(group: Values, effects: Effects, *, without_own: bool) -> Values:
    """Return the group's mean plus each context's effect. ``without_own``: fit each value without itself."""
    fit = group.mean() + effects.offset
    if not without_own or len(group) < 2:
        return fit
    weight = 1 / len(group) + effects.leverage
    return (fit - weight * group) / (1 - weight)


def _running_mean(group: Values, key: str, ema: MutableMapping[str, float], decay: float) -> Values:
    """Return the mean before the step, and update ``ema[key]`` with the step's values."""
    before, mean = ema.get(key, 0.0), float(group.mean())
    ema[key] = decay * before + (1 - decay) * mean if key in ema else mean
    return np.full_like(group, before)


def _divisor(group: Values, scale: Scale, batch_std: float) -> tuple[float | None, float | None]:
    """Return the standard deviation for a scale, and the divisor derived from it."""
    if scale == "group":
        return (std := _std(group)), std + GROUP_STD_EPS
    if scale == "batch":
        return batch_std, max(batch_std, BATCH_STD_FLOOR)
    if scale == "none":
        return None, None
    raise ValueError(f"scale must be group, batch or none, got {scale!r}")


def _std(values: Sequence[float] | Values) -> float:
    return float(np.std(values)) if len(values) else 0.0


def returns(
    transitions: Sequence[Transition], values: Sequence[float | None], discount: float
) -> list[float | None]:
    """Return the discounted return of each turn, in order.

        G_t = r_t + gamma r_{t+1} + gamma^2 r_{t+2} + ...   over one agent's rounds [Sutton, Barto 2018, 3.3]

    A solution that its author builds on is then rewarded for later results. With truth only in the last
    round, gamma = 0.7 gives the earlier rounds 0.7, 0.49, ... of that reward. ``values``: the reward of each
    turn. A turn without a value gets the discounted return of the agent's next turn, or None without a later
    value. Ballots get None.
    """
    if not discount:
        return list(values)
    result: list[float | None] = [None] * len(values)
    after: dict[tuple[int, int], float] = {}
    for index in sorted(range(len(values)), key=lambda index: -transitions[index].turn.id.round):
        own, author = values[index], (transitions[index].debate, transitions[index].turn.id.agent)
        if transitions[index].turn.ballot or (own is None and author not in after):
            continue
        result[index] = after[author] = (own or 0.0) + discount * after.get(author, 0.0)
    return result
