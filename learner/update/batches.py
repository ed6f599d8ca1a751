"""Rows as padded tensors, cut into micro-batches of similar lengths."""

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
from learner.update.prefixes import LEAST, common_prefix, lexicographic, pack
from learner.update.tree_attention import Calls, calls_of


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """What B rows are when what they share is held once: U tokens (1, U), their positions in a row (1, U).

    ``sources`` (n,): for each of the n masked tokens of the rows, which of the U predicts it.
    """

    input_ids: Tensor
    positions: Tensor
    calls: Calls
    sources: Tensor


@dataclass(slots=True)
class MicroBatch:
    """B rows, padded on the right to T tokens; ``mask`` alone says what counts, never a token's value.

    All fields are (B, T) but ``temperature`` (B, 1) and ``predictors`` (n,): for each of the n masked tokens
    the index, in the flat (B, T - 1), of the position that predicts it. Where there is a ``tree``, the model
    reads it in place of ``input_ids``. ``old`` and ``ref`` are filled by the learner: the log-probabilities
    before the step's first update, and those of the reference. ``turns``: of each row its debate and turn.
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
        """Positions that the model reads."""
        return (self.input_ids if self.tree is None else self.tree.input_ids).numel()


@dataclass(frozen=True, slots=True)
class Minibatch:
    """What one update is made of: this rank's micro-batches, and the size of all that the ranks have of it.

    ``positions``: those that the model reads of the rank's rows.
    """

    batches: list[MicroBatch]
    totals: Totals
    positions: int


def fresh_rows(
    rows: Sequence[Row], version: int, max_staleness: int | None
) -> tuple[list[Row], dict[str, float]]:
    """Return the rows whose weights are at most ``max_staleness`` updates old (None: all), and the counts.

    The age of a row is ``version``, the present number of updates of the policy, minus the row's own. Rows
    grow old where debates are held while the learner learns; in a loop that waits for them the age is 0.
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
    """Return the rows in micro-batches in which the model reads at most ``max_tokens``, the largest first.

    Padding counts; with ``share`` there is none, and what rows share counts once. A row longer than
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
    """Return the rows by debate and round: those that share their prompt up to its last tokens.

    Where history grows from round to round, all rows of a debate share it, and stay together.
    """
    joined = _growing(rows)
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        round_ = -1 if (row.group_id, row.debate) in joined else row.turn.round
        found.setdefault((row.group_id, row.debate, round_), []).append(row)
    return list(found.values())


def _growing(rows: Sequence[Row]) -> set[tuple[str, int]]:
    """Return the debates in which an agent's rows share more and more of their beginning.

    Where all rounds are shown, a row shares ``LEAST`` tokens more with the one behind it than with the one
    before. In a conversation the row behind begins with all of it.
    """
    of_agents: dict[tuple[str, int, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.turn.round):
        of_agents.setdefault((row.group_id, row.debate, row.turn.agent), []).append(row)
    return {(group, debate) for (group, debate, _), turns in of_agents.items() if _grow(turns)}


def _grow(turns: Sequence[Row]) -> bool:
    """Return whether an agent's rows, in order, share more and more of their beginning."""
    shared = [common_prefix(a.input_ids, b.input_ids) for a, b in pairwise(turns)]
    whole = any(len(turn.input_ids) == same for turn, same in zip(turns, shared, strict=False))
    return whole or any(b - a >= LEAST for a, b in pairwise(shared))


def unit_tokens(rows: Sequence[Row], share: bool) -> int:
    """Return how many tokens the model reads of some rows, padding apart; with ``share`` different ones."""
    if not share:
        return sum(len(row.input_ids) for row in rows)
    order = lexicographic([row.input_ids for row in rows])
    return _tokens((), [rows[index] for index in order])


def no_row() -> Row:
    """Return a row of nothing to learn from, for a pass in which a rank has no row of its own."""
    two = np.zeros(2, np.float32)
    ids, mask, stream = two.astype(np.int64), two.astype(np.bool_), two.astype(np.int8)
    return Row(ids, mask, two, two, stream, group_id="", policy_version=0, turn=TurnId(0, 0))


def _sharing(rows: Sequence[Row], max_tokens: int) -> list[list[Row]]:
    """Return the rows in parts of at most ``max_tokens`` different tokens; a star is cut where it must be."""
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
    return parts


def _tokens(before: Sequence[Row], rows: Sequence[Row]) -> int:
    """Return how many tokens rows add behind those before them, in lexicographic order."""
    texts = [row.input_ids for row in (*before, *rows)]
    new = sum(len(b) - common_prefix(a, b) for a, b in pairwise(texts))
    return new if before else new + len(texts[0])


def _tree(rows: Sequence[Row], batch: MicroBatch) -> Tree:
    """Return the tree of the rows of a micro-batch; their last tokens predict nothing, and are left out."""
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
    """Return one micro-batch; ValueError for a row whose first token is an action: nothing precedes it."""
    for row in rows:
        if row.action_mask[0]:
            raise ValueError(f"group {row.group_id!r}, {row.turn}: the first token of a row has no context")
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
    """Return (B, T) in the arrays' type.

    >>> _pad([np.array([1, 2]), np.array([3])], 7, "cpu").tolist()
    [[1, 2], [3, 7]]
    """
    padded = np.full((len(arrays), max(map(len, arrays))), fill, arrays[0].dtype)
    for line, array in zip(padded, arrays, strict=True):
        line[: len(array)] = array
    return torch.from_numpy(padded).to(device)
