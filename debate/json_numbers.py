"""Numbers as JSON has them."""

from __future__ import annotations

from math import isfinite


def json_number(value: object) -> object:
    """Return a number as it is, None where it is infinite or none; whatever is no float stays.

    >>> json_number(float("nan")), json_number(0.5), json_number("inf")
    (None, 0.5, 'inf')
    """
    return None if isinstance(value, float) and not isfinite(value) else value
