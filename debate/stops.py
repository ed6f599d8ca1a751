"""Find the stop strings of a reply."""

from __future__ import annotations

from collections.abc import Sequence


def end_of_stop(text: str, stop: Sequence[str], begin: int) -> int | None:
    """Return the index after the first stop string at or after ``begin``, or None.

    >>> end_of_stop("a</s>b</s>", ("</s>",), 2), end_of_stop("a", ("</s>",), 0)
    (10, None)
    """
    ends = [text.find(string, begin) + len(string) for string in stop if string and string in text[begin:]]
    return min(ends, default=None)
