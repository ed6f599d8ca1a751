"""Rows as padded tensors, cut into micro-batches of similar lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from learner.types import Row


@dataclass(slots=True)
class MicroBatch:
    """B rows, padded on the right to T tokens; ``mask`` alone says what counts, never a token's value.

    All fields are (B, T) but ``temperature`` (B, 1) and ``predictors`` (n,): for each of the n masked tokens
    the index, in the flat (B, T - 1), of the position that predicts it. ``old`` and ``ref`` are filled by the
    learner: the log-probabilities before the step's first update, and those of the reference.
    """

    input_ids: Tensor
    mask: Tensor
    predictors: Tensor
    sampling_logprobs: Tensor
    advantages: Tensor
    stream: Tensor
    temperature: Tensor
    length: int
    old: Tensor | None = None
    ref: Tensor | None = None

    @property
    def padding(self) -> int:
        """Positions that hold no token."""
        return self.input_ids.numel() - self.length


def fresh_rows(
    rows: Sequence[Row], version: int, max_staleness: int | None
) -> tuple[list[Row], dict[str, float]]:
    """Return the rows whose weights are at most ``max_staleness`` updates old (None: all), and the counts.

    The age of a row is ``version``, the present number of updates of the policy, less the row's own. Rows
    grow old where debates are held while the learner learns; in a loop that waits for them the age is 0.
    """
    ages = [version - row.policy_version for row in rows]
    most = max(ages, default=0) if max_staleness is None else max_staleness
    kept = [row for row, age in zip(rows, ages, strict=True) if age <= most]
    metrics = {"stale_rows": float(len(rows) - len(kept))}
    return kept, metrics | ({"staleness_max": float(max(ages))} if ages else {})


def micro_batches(
    rows: Sequence[Row], max_tokens: int, *, device: torch.device | str = "cpu", pad_id: int = 0
) -> list[MicroBatch]:
    """Return the rows in micro-batches of at most ``max_tokens`` padded tokens, longest rows first.

    A row longer than that gets a micro-batch of its own. ``pad_id`` may be any id of the vocabulary.
    """
    by_length = sorted(rows, key=lambda row: -len(row.input_ids))
    batches: list[list[Row]] = []
    for row in by_length:
        if batches and (len(batches[-1]) + 1) * len(batches[-1][0].input_ids) <= max_tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return [collate(batch, device=device, pad_id=pad_id) for batch in batches]


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
