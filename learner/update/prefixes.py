"""Rows that begin alike, packed so that what they share is computed once.

The agents of a round read the same problem and the same peers, and their prompts differ in the last tokens
alone; prompts are most of what a learner reads. The rows become a tree of segments, written one behind the
other, each before those that go on from it. A token sees its own segment up to itself, and those before its
segment on the way from the root: exactly the row that it stands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LEVELS = 16
"""Segments that a row shares at most, one after the other: rules, problem, and the rounds of a debate where
all are shown. Each is a kernel call."""
LEAST = 32
"""Tokens that are worth a segment of their own."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens ``start`` to ``end`` of a packed sequence; those up to ``stop`` go on from it and see it whole.

    ``level`` counts the segments before it on the way from the root.
    """

    start: int
    end: int
    stop: int
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """U tokens that hold all rows. ``tokens`` and ``positions`` (U,): the latter where they stand in a row.

    ``paths``: for each row (L,) where its tokens are in the packed sequence.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: tuple[Segment, ...]
    paths: tuple[NDArray[np.int64], ...]


def pack(rows: Sequence[NDArray[np.int64]], *, levels: int = LEVELS, least: int = LEAST) -> Packed:
    """Return the tree of some rows of token ids, at least one of them.

    >>> packed = pack([np.array([5, 6, 7]), np.array([5, 6, 8, 9])], least=2)
    >>> packed.tokens.tolist(), packed.positions.tolist()
    ([5, 6, 7, 8, 9], [0, 1, 2, 2, 3])
    >>> [path.tolist() for path in packed.paths]
    [[0, 1, 2], [0, 1, 3, 4]]
    """
    order, goes_on = _without_beginnings(rows) if levels else (lexicographic(rows), {})
    shared = [common_prefix(rows[a], rows[b]) for a, b in pairwise(order)]
    segments: list[Segment] = []
    pieces: list[NDArray[np.int64]] = []
    positions: list[NDArray[np.int64]] = []
    paths: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(rows)

    def place(first: int, last: int, depth: int, path: NDArray[np.int64], level: int) -> None:
        """Place what follows the first ``depth`` tokens, which are at ``path``, of the rows first to last."""
        for begin, end in _runs(shared, first, last, depth + least, together=level < levels):
            row = rows[order[begin]]
            common = len(row) if end - begin == 1 else min(shared[begin : end - 1])
            start = sum(map(len, pieces))
            here = np.arange(start, start + common - depth)
            pieces.append(row[depth:common])
            positions.append(np.arange(depth, common))
            index = len(segments)
            segments.append(Segment(start, start + len(here), start + len(here), level))
            whole = np.concatenate([path, here])
            if end - begin == 1:
                paths[order[begin]] = whole
                continue
            place(begin, end, common, whole, level + 1)
            segments[index] = Segment(start, start + len(here), sum(map(len, pieces)), level)

    place(0, len(order), 0, np.empty(0, np.int64), 0)
    for index, longer in goes_on.items():
        paths[index] = paths[longer][: len(rows[index])]
    kept = tuple(segment for segment in segments if segment.end > segment.start)
    return Packed(np.concatenate(pieces), np.concatenate(positions), kept, tuple(paths))


def _without_beginnings(rows: Sequence[NDArray[np.int64]]) -> tuple[list[int], dict[int, int]]:
    """Return the rows in the order of their tokens, without those that another one continues, and of each
    of these the row that does.

    The turns of a conversation are such rows: however many there are, they need no segment but the longest's.

    >>> _without_beginnings([np.array([5]), np.array([5, 6, 7]), np.array([5, 6]), np.array([4])])
    ([3, 1], {2: 1, 0: 1})
    """
    kept: list[int] = []
    goes_on: dict[int, int] = {}
    for index in reversed(lexicographic(rows)):
        longer, row = kept[-1] if kept else index, rows[index]
        if len(row) < len(rows[longer]) and common_prefix(row, rows[longer]) == len(row):
            goes_on[index] = longer
        else:
            kept.append(index)
    return kept[::-1], goes_on


def _runs(
    shared: Sequence[int], first: int, last: int, least: int, *, together: bool
) -> list[tuple[int, int]]:
    """Return the rows first to last as runs whose neighbours share ``least`` tokens; one by one otherwise."""
    cuts = [at + 1 for at in range(first, last - 1) if not together or shared[at] < least]
    return list(pairwise([first, *cuts, last]))


def lexicographic(rows: Sequence[NDArray[np.int64]]) -> list[int]:
    """Return the indices of the rows in the order of their tokens, so that those that begin alike meet."""
    return sorted(range(len(rows)), key=lambda index: rows[index].astype(">u4").tobytes())


def common_prefix(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Return how many tokens two rows share from the start.

    >>> common_prefix(np.array([1, 2, 3]), np.array([1, 2, 4, 5]))
    2
    """
    size = min(len(a), len(b))
    unlike = np.flatnonzero(a[:size] != b[:size])
    return int(unlike[0]) if len(unlike) else size
