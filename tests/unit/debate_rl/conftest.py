"""Curves by hand."""

import numpy as np
import pytest

from debate_rl.alarms import Curves


def curves_of(group=None, broken=None, **columns):
    """Curves over steps 0, 1, ...; None is no value, and __ in a name stands for a slash."""
    length = max((len(values) for values in columns.values()), default=0)
    values = {
        name.replace("__", "/"): np.array([*column, *[None] * (length - len(column))], dtype=float)
        for name, column in columns.items()
    }
    return Curves(np.arange(length), values, broken or {}, group)


@pytest.fixture(scope="session")
def make_curves():
    return curves_of
