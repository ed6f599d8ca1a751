"""Texts that say nothing: one piece again and again, or what no language is written in."""

from __future__ import annotations

import unicodedata
import zlib

import numpy as np

LONGEST_PIECE = 16
LEAST = 24
"""Characters below which nothing counts as repeated."""
LOOKED_AT = 1 << 16
LOOPS, LEAST_LOOPED = 10.0, 400
"""How many times smaller zlib makes a text that goes in circles, and characters below which none does. Right
solutions that list cases get up to 5 times smaller."""
UNWRITTEN, MOST_UNWRITTEN = frozenset(("Cc", "Cn", "Co", "Cs")), 0.2
"""Kinds of characters that nobody writes (control, not assigned, private, halves), and their most."""


def is_incoherent(text: str) -> bool:
    r"""Is a text mostly one piece said again and again, does it go in circles, or is it of no script?

    >>> is_incoherent("So it is 4, as 2 + 2 is 4. " * 40), is_incoherent("\ufffd\ufffd 4 \ufffd\ufffd")
    (True, True)
    >>> is_incoherent("So it is 4, as 2 + 2 is 4. " * 3), is_incoherent("")
    (False, False)
    """
    return is_repeated(text) or _goes_in_circles(text) or _is_unwritten(text)


def _goes_in_circles(text: str) -> bool:
    data = text[:LOOKED_AT].encode("utf-8", "surrogatepass")
    return len(data) >= LEAST_LOOPED and len(data) > LOOPS * len(zlib.compress(data, 6))


def _is_unwritten(text: str) -> bool:
    marks = [mark for mark in text[:LOOKED_AT] if not mark.isspace()]
    strange = sum(mark == "\ufffd" or unicodedata.category(mark) in UNWRITTEN for mark in marks)
    return strange > MOST_UNWRITTEN * len(marks)


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
