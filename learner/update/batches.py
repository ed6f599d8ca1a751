"""Rows as padded tensors, cut into micro-batches of similar lengths, or as trees that share common prefixes.

The agents of a round read the same problem and the same peers, so their prompts differ only in the last
tokens, and most tokens that a learner reads are in prompts. The rows of a tree become segments of one packed
sequence, each before the segments that continue it. A token sees its own segment up to itself, and all
earlier segments on the path from the root. Together these are exactly its row up to the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debate.types import TurnId
from learner.losses.types import Totals
from learner.types import Row
from learner.update.tree_attention import Calls, Segment, calls_of

LEVELS = 16
"""The maximum number of successive segments that a row shares with others.

Such segments are the rules, the problem, and the rounds of a debate if all are shown. Each level of
segments costs a kernel call.
"""
MOST_CHECKED = 8
"""The maximum number of rows of a group with which a learner checks whether prefixes can be shared."""
LEAST = 32
"""The minimum number of shared tokens that is worth a separate segment."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A packed sequence of U tokens that contains all rows.

    ``tokens`` (U,), and ``positions`` (U,), the positions of tokens in their rows.

    ``paths``: for each row, (L,), the indices of its tokens in the packed sequence.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    segments: tuple[Segment, ...]
    paths: tuple[NDArray[np.int64], ...]


def pack(rows: Sequence[NDArray[np.int64]], *, levels: int = LEVELS, least: int = LEAST) -> Packed:
    """Return the tree of one or more rows of token ids.

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
        """Place the tokens after the first ``depth`` tokens of the rows from ``first`` to ``last``.

        ``path``: the packed positions of those first tokens.
        """
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
    """Return the rows that are no prefix of another row, and for each prefix a row that continues it.

    The first part is in lexicographic order. The turns of a conversation are prefixes of its last turn:
    however many there are, they need only the segments of the longest.

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
    """Return the rows from ``first`` to ``last`` as runs whose neighbours share ``least`` tokens or more.

    Unless ``together``, each row is a run of its own.
    """
    cuts = [at + 1 for at in range(first, last - 1) if not together or shared[at] < least]
    return list(pairwise([first, *cuts, last]))


def lexicographic(rows: Sequence[NDArray[np.int64]]) -> list[int]:
    """Return the rows' indices in lexicographic order, so that rows with a common prefix are adjacent."""
    return sorted(range(len(rows)), key=lambda index: rows[index].astype(">u4").tobytes())


def common_prefix(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Return the length of the common prefix of two rows.

    >>> common_prefix(np.array([1, 2, 3]), np.array([1, 2, 4, 5]))
    2
    """
    size = min(len(a), len(b))
    unlike = np.flatnonzero(a[:size] != b[:size])
    return int(unlike[0]) if len(unlike) else size


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """B rows with shared prefixes stored once: U tokens (1, U), and their positions in their rows (1, U).

    ``sources`` (n,): for each of the n masked tokens of the rows, the index in U of the token that predicts
    it.
    """

    input_ids: Tensor
    positions: Tensor
    calls: Calls
    sources: Tensor


@dataclass(slots=True)
class MicroBatch:
    """B rows, padded on the right to T tokens. Only ``mask`` decides what counts, never a token's value.

    All fields are (B, T) except ``temperature`` (B, 1) and ``predictors`` (n,): for each of the n masked
    tokens, the index in the flat (B, T - 1) of the position that predicts it. If there is a ``tree``, the
    model reads it instead of ``input_ids``. The learner fills in ``old`` and ``ref``: the log-probabilities
    before the step's first update, and those of the reference. ``turns``: the debate and turn of each row.
    """

    input_ids: Tensor
    mask: Tensor
    predictors: Tensor
    sampling_logprobs: Tensor
    advantages: Tensor
    stream: Tensor
    temperature: Tensor
    length: int
    turns: tuple[tuple[int, TurnId], ...]
    tree: Tree | None = None
    old: Tensor | None = None
    ref: Tensor | None = None

    @property
    def positions(self) -> int:
        """The number of positions that the model reads."""
        return (self.input_ids if self.tree is None else self.tree.input_ids).numel()


@dataclass(frozen=True, slots=True)
class Minibatch:
    """The rows of one update: this rank's micro-batches, and the size of the minibatch over all ranks.

    ``positions``: the number of positions that the model reads for this rank's rows.
    """

    batches: list[MicroBatch]
    totals: Totals
    positions: int


def fresh_rows(
    rows: Sequence[Row], version: int, max_staleness: int | None
) -> tuple[list[Row], dict[str, float]]:
    """Return the rows whose weights are at most ``max_staleness`` updates old (None: all), and the counts.

    The age of a row is ``version``, the current number of updates of the policy, minus the row's version.
    Rows age if debates are held while the learner trains; in a loop that waits for the debates, the age is 0.
    """
    ages = [version - row.policy_version for row in rows]
    most = max(ages, default=0) if max_staleness is None else max_staleness
    kept = [row for row, age in zip(rows, ages, strict=True) if age <= most]
    metrics = {"stale_rows": float(len(rows) - len(kept))}
    if ages:
        metrics |= {"staleness_mean": sum(ages) / len(ages), "staleness_max": float(max(ages))}
    return kept, metrics


def micro_batches(
    rows: Sequence[Row],
    max_tokens: int,
    *,
    device: torch.device | str = "cpu",
    pad_id: int = 0,
    share: bool = False,
) -> list[MicroBatch]:
    """Return the rows in micro-batches of at most ``max_tokens`` tokens read by the model, the largest first.

    Padding counts. With ``share`` there is no padding, and shared prefixes count once. A row longer than
    ``max_tokens`` gets a micro-batch of its own. ``pad_id`` may be any id of the vocabulary.
    """
    if share and rows:
        parts = _sharing(rows, max_tokens)
        batches = [collate(part, device=device, pad_id=pad_id) for part in parts]
        for part, batch in zip(parts, batches, strict=True):
            batch.tree = _tree(part, batch)
        return sorted(batches, key=lambda batch: -batch.positions)
    by_length = sorted(rows, key=lambda row: -len(row.input_ids))
    padded: list[list[Row]] = []
    for row in by_length:
        if padded and (len(padded[-1]) + 1) * len(padded[-1][0].input_ids) <= max_tokens:
            padded[-1].append(row)
        else:
            padded.append([row])
    return [collate(batch, device=device, pad_id=pad_id) for batch in padded]


def stars(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows as stars: the rows of one debate and round.

    The rows of a star share their prompt except for its last tokens.

    If the history grows from round to round, all rows of a debate share it and stay together.
    """
    joined = _growing(rows)
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        round_ = -1 if (row.group_id, row.debate) in joined else row.turn.round
        found.setdefault((row.group_id, row.debate, round_), []).append(row)
    return list(found.values())


def sharing_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the largest star or, if each star has one row, some rows of the largest group.

    The latter share their prompt if one agent alone solves a problem several times.
    """
    star, groups = max(stars(rows), key=len, default=[]), dict[str, list[Row]]()
    for row in rows if len(star) < 2 else ():
        groups.setdefault(row.group_id, []).append(row)
    return max(groups.values(), key=len, default=star)[:MOST_CHECKED] if groups else star


def _growing(rows: Sequence[Row]) -> set[tuple[str, int]]:
    """Return the debates in which an agent's successive rows share longer and longer prefixes.

    If all rounds are shown, a row shares at least ``LEAST`` tokens more with the next row than with the
    previous one. In a conversation the next row begins with the whole row.
    """
    of_agents: dict[tuple[str, int, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.turn.round):
        of_agents.setdefault((row.group_id, row.debate, row.turn.agent), []).append(row)
    return {(group, debate) for (group, debate, _), turns in of_agents.items() if _grow(turns)}


def _grow(turns: Sequence[Row]) -> bool:
    """Return whether an agent's rows, in order, share longer and longer prefixes."""
    shared = [common_prefix(a.input_ids, b.input_ids) for a, b in pairwise(turns)]
    whole = any(len(turn.input_ids) == same for turn, same in zip(turns, shared, strict=False))
    return whole or any(b - a >= LEAST for a, b in pairwise(shared))


def unit_tokens(rows: Sequence[Row], share: bool) -> int:
    """Return how many tokens the model reads for some rows, without padding.

    With ``share``, prefixes count once.
    """
    if not share:
        return sum(len(row.input_ids) for row in rows)
    order = lexicographic([row.input_ids for row in rows])
    return _tokens((), [rows[index] for index in order])


def no_row() -> Row:
    """Return a row with nothing to learn, for a pass in which a rank has no row of its own."""
    two = np.zeros(2, np.float32)
    ids, mask, stream = two.astype(np.int64), two.astype(np.bool_), two.astype(np.int8)
    return Row(ids, mask, two, two, stream, group_id="", policy_version=0, turn=TurnId(0, 0))


def _sharing(rows: Sequence[Row], max_tokens: int) -> list[list[Row]]:
    """Return the rows in parts of at most ``max_tokens`` distinct tokens. Stars are cut only if necessary.

    Parts are planned by the tokens that neighbours share. Shared beginnings of less than ``LEAST`` tokens
    are read again, so a part of many short rows may be larger than planned; it is then halved.
    """
    parts: list[list[Row]] = [[]]
    used = 0
    order = lexicographic([row.input_ids for row in rows])
    for star in stars([rows[index] for index in order]):
        added = _tokens(parts[-1][-1:], star)
        if parts[-1] and used + added > max_tokens:
            parts.append([])
            used = 0
        for row in star:
            more = _tokens(parts[-1][-1:], [row])
            if parts[-1] and used + more > max_tokens:
                parts.append([])
                used, more = 0, len(row.input_ids)
            parts[-1].append(row)
            used += more
    return [fitting for part in parts for fitting in _halved(part, max_tokens)]


def _halved(rows: list[Row], max_tokens: int) -> list[list[Row]]:
    """Return the rows in as few halves as have at most ``max_tokens`` tokens packed."""
    if len(rows) < 2 or len(pack([row.input_ids[:-1] for row in rows]).tokens) <= max_tokens:
        return [rows]
    middle = len(rows) // 2
    return [*_halved(rows[:middle], max_tokens), *_halved(rows[middle:], max_tokens)]


def _tokens(before: Sequence[Row], rows: Sequence[Row]) -> int:
    """Return how many new tokens the rows add to those before them, in lexicographic order."""
    texts = [row.input_ids for row in (*before, *rows)]
    new = sum(len(b) - common_prefix(a, b) for a, b in pairwise(texts))
    return new if before else new + len(texts[0])


def _tree(rows: Sequence[Row], batch: MicroBatch) -> Tree:
    """Return the tree of a micro-batch's rows, without their last tokens, which predict nothing."""
    device = batch.input_ids.device
    packed = pack([row.input_ids[:-1] for row in rows])
    where = np.zeros((len(rows), batch.input_ids.shape[1] - 1), np.int64)
    for line, path in zip(where, packed.paths, strict=True):
        line[: len(path)] = path
    return Tree(
        input_ids=torch.from_numpy(packed.tokens)[None].to(device),
        positions=torch.from_numpy(packed.positions)[None].to(device),
        calls=calls_of(packed.segments, device),
        sources=torch.from_numpy(where).flatten().to(device)[batch.predictors],
    )


def collate(rows: Sequence[Row], *, device: torch.device | str = "cpu", pad_id: int = 0) -> MicroBatch:
    """Return one micro-batch.

    ValueError for a row whose first token is an action, because it has no context.
    """
    for row in rows:
        if row.action_mask[0]:
            raise ValueError(f"group {row.group_id!r}, {row.turn}: the first token cannot be an action")
    mask = _pad([row.action_mask for row in rows], False, "cpu")
    return MicroBatch(
        input_ids=_pad([row.input_ids for row in rows], pad_id, device),
        mask=mask.to(device),
        predictors=mask[:, 1:].flatten().nonzero().squeeze(1).to(device),
        sampling_logprobs=_pad([row.sampling_logprobs for row in rows], 0.0, device),
        advantages=_pad([row.advantages for row in rows], 0.0, device),
        stream=_pad([row.stream for row in rows], 0, device),
        temperature=torch.tensor([[row.temperature] for row in rows], dtype=torch.float32, device=device),
        length=sum(len(row.input_ids) for row in rows),
        turns=tuple((row.debate, row.turn) for row in rows),
    )


def _pad(arrays: Sequence[NDArray[Any]], fill: float, device: torch.device | str) -> Tensor:
    """Return the arrays padded to (B, T), with their data type.

    >>> _pad([np.array([1, 2]), np.array([3])], 7, "cpu").tolist()
    [[1, 2], [3, 7]]
    """
    padded = np.full((len(arrays), max(map(len, arrays))), fill, arrays[0].dtype)
    for line, array in zip(padded, arrays, strict=True):
        line[: len(array)] = array
    return torch.from_numpy(padded).to(device)
