"""Is a reply degenerate? Looked at as characters only, in time linear in its length."""

from __future__ import annotations

import numpy as np

LONGEST_PIECE = 16
LEAST = 24
"""Characters below which nothing counts as repeated."""
LOOKED_AT = 1 << 16
NOTHING = frozenset(("", "n/a", "na", "none", "nothing", "null", "-", "...", "…", "tbd"))


def is_repeated(text: str) -> bool:
    r"""Is over half of the text one piece of up to 16 characters, said again and again?

    Of the first 65,536 characters. Blanks alone do not count as a piece.

    >>> is_repeated("4" * 50), is_repeated("Cumhur\n" * 9), is_repeated("4 + 4 = 8, so the answer is 8.")
    (True, True, False)
    """
    codes = np.frombuffer(text[:LOOKED_AT].encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(codes) < LEAST:
        return False
    for piece in range(1, LONGEST_PIECE + 1):
        same = codes[piece:] == codes[:-piece]
        if np.count_nonzero(same) + piece <= len(codes) / 2:
            continue
        begin, run = _longest(same)
        if run + piece > max(LEAST, len(codes) / 2) and text[begin : begin + run].strip():
            return True
    return False


def _longest(same: np.ndarray) -> tuple[int, int]:
    """Return where the longest run of True begins, and its length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    at = int(np.argmax(lengths))
    return int(edges[2 * at]), int(lengths[at])


def is_empty(section: str) -> bool:
    """Does a section say nothing, or only that there is nothing?

    >>> is_empty(" N/A. "), is_empty("No error: 4 is right.")
    (True, False)
    """
    if len(section) > 200:
        return not section.strip()
    return section.strip().strip(".").lower() in NOTHING or not section.strip()
