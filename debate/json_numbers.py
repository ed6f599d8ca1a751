"""Numbers as JSON has them."""

from __future__ import annotations

from math import isfinite


def json_number(value: object) -> object:
    """Return None for a float that is NaN or infinite, and every other value as it is.

    >>> json_number(float("nan")), json_number(0.5), json_number("inf")
    (None, 0.5, 'inf')
    """
    return None if isinstance(value, float) and not isfinite(value) else value
