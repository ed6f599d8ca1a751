"""Settings that change with the step: a number, or points with linear interpolation between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, isfinite
from typing import Annotated, Any, TypeAlias, TypeGuard, TypeVar, cast

from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from debate.settings import Settings

S = TypeVar("S", bound=Settings)


class Points(tuple[tuple[int, float], ...]):
    """(step, value) pairs with ascending steps. Before them the first value applies, after them the last."""

    __slots__ = ()


def read_ramp(given: object, *, low: float = -inf, high: float = inf) -> float | Points:
    """Return a number, or points ``[[step, value], ...]``, from a configuration value. ValueError for others.

    >>> read_ramp([[0, 1], [100, 0.5]])
    ((0, 1.0), (100, 0.5))
    >>> read_ramp([[5, 1], [5, 0]])
    Traceback (most recent call last):
        ...
    ValueError: the steps of points must ascend, got 5 after 5
    """
    if _is_number(given):
        return _checked(cast(float, given), low, high)
    if not _is_list(given) or not given:
        raise ValueError(f"needs a number, or points such as [[0, 1.0], [100, 0.5]], got {given!r}")
    points = Points((_step_of(point), _checked(point[1], low, high)) for point in given)
    for (before, _), (after, _) in pairwise(points):
        if after <= before:
            raise ValueError(f"the steps of points must ascend, got {after} after {before}")
    return points


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _step_of(point: Any) -> int:
    """Return the step of a point. ValueError unless it is a pair of a step and a value."""
    if not _is_list(point) or len(point) != 2 or not _is_number(point[1]):
        raise ValueError(f"a point must have a step and a value, as in [100, 0.5], got {point!r}")
    step = point[0]
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ValueError(f"the step of a point must be a whole number of 0 or more, got {step!r}")
    return step


def _checked(value: float, low: float, high: float) -> float:
    """Return the value as a float. ValueError if it is not finite or is outside its bounds."""
    if not isfinite(value):
        raise ValueError(f"should be a finite number, got {value}")
    if value < low:
        raise ValueError(f"should be greater than or equal to {low:g}, got {value:g}")
    if value > high:
        raise ValueError(f"should be less than or equal to {high:g}, got {value:g}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Within:
    """The bounds of a ramp's values, for the annotation of a setting."""

    ge: float = -inf
    le: float = inf

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        """Return the schema by which pydantic parses a ramp with these bounds."""
        return no_info_plain_validator_function(partial(read_ramp, low=self.ge, high=self.le))


Ramp: TypeAlias = Annotated[float | Points, Within()]
"""A number, or points ``[[step, value], ...]``: linear between the points and constant outside them."""
Share: TypeAlias = Annotated[float | Points, Within(0, 1)]
"""A ramp with values in [0, 1]."""
Weight: TypeAlias = Annotated[float | Points, Within(0)]
"""A ramp with values of 0 or more."""
Penalty: TypeAlias = Annotated[float | Points, Within(le=0)]
"""A ramp with values of 0 or less."""


def check_steps(steps: Sequence[int]) -> None:
    """Raise ValueError unless the steps at which a setting changes start with 0 and ascend."""
    for before, after in pairwise(steps):
        if after <= before:
            raise ValueError(f"the steps must ascend, got {after} after {before}")
    if not steps or steps[0] != 0:
        raise ValueError(f"must begin with step 0, got {steps[0] if steps else 'none'}")


def value_at(ramp: Ramp, step: int) -> float:
    """Return the value of a ramp at a step.

    >>> [value_at(Points(((10, 1.0), (20, 0.5))), step) for step in (0, 10, 15, 20, 99)]
    [1.0, 1.0, 0.75, 0.5, 0.5]
    """
    if not isinstance(ramp, Points):
        return ramp
    after = bisect_right(ramp, step, key=lambda point: point[0])
    if after in (0, len(ramp)):
        return ramp[max(after - 1, 0)][1]
    (start, first), (end, last) = ramp[after - 1 : after + 1]
    return first + (last - first) * (step - start) / (end - start)


def number(ramp: Ramp) -> float:
    """Return the value of a ramp that is a number. ValueError for points, whose value depends on the step.

    >>> number(0.5)
    0.5
    """
    if isinstance(ramp, Points):
        raise ValueError(
            f"the ramp {list(ramp)} changes with the step; use settings_at for its value at a step"
        )
    return ramp


def values_of(ramp: Ramp) -> tuple[float, ...]:
    """Return the values of the points, or the one number. No value at any step is above their maximum.

    >>> values_of(Points(((0, 1.0), (100, 0.0)))), values_of(0.5)
    ((1.0, 0.0), (0.5,))
    """
    return tuple(value for _, value in ramp) if isinstance(ramp, Points) else (ramp,)


def settings_at(settings: S, step: int) -> S:
    """Return the settings at a step, with a number instead of every ramp."""
    values = {name: value_at(points, step) for name, points in ramps_of(settings).items()}
    return settings.model_copy(update=values) if values else settings


def ramps_of(settings: Settings) -> dict[str, Points]:
    """Return the settings that change with the step, by name."""
    given = ((name, getattr(settings, name)) for name in type(settings).model_fields)
    return {name: value for name, value in given if isinstance(value, Points)}
