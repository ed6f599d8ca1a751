"""Tables that grow by rows and stay small: one typed array for each column, no object for a row."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


class Columns:
    """A table; ``types`` are type codes of ``array``: "b" 1 byte, "h" 2, "i" 4, "f" a float of 4.

    >>> table = Columns({"debate": "i", "right": "b"})
    >>> table.add(0, 1)
    >>> table.add(0, -1)
    >>> table["right"], len(table)
    (array([ 1, -1], dtype=int8), 2)
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._columns: dict[str, array[Any]] = {name: array(code) for name, code in types.items()}
        self._arrays = tuple(self._columns.values())

    def add(self, *values: float) -> None:
        """Add a row, in the order of the columns."""
        for column, value in zip(self._arrays, values, strict=True):
            column.append(value)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column as (rows,), a copy."""
        column = self._columns[name]
        return np.array(column, dtype=np.dtype(column.typecode))

    def __len__(self) -> int:
        return len(self._arrays[0])


class Labels:
    """Small numbers for texts, in the order in which they were first met."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the number of a text, a new one for a new text."""
        return self._codes.setdefault(text, len(self._codes))

    @property
    def texts(self) -> list[str]:
        """The texts; place i has number i."""
        return list(self._codes)
