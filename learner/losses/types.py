"""Inputs and outputs of a loss, and functions that the losses share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal, TypeAlias

from torch import Tensor, where, zeros

from learner.token_streams import GENERATOR, JUDGE

KlEstimator: TypeAlias = Literal["k1", "k2", "k3"]
STREAMS = (GENERATOR, JUDGE)


@dataclass(frozen=True, slots=True)
class LossInputs:
    """One batch, with fields of shape (B, T). Position t is about token t; only positions in ``mask`` count.

    Log-probabilities are in nats at the sampling temperature: under the trained weights, under the same
    weights before the step's first update, under the sampler, and under the reference. ``ref_logprobs`` may
    be None if there is no reference. ``stream`` is 1 for the generator and 2 for the judge. Values outside
    the mask are arbitrary.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    sampling_logprobs: Tensor
    ref_logprobs: Tensor | None
    advantages: Tensor
    mask: Tensor
    stream: Tensor


@dataclass(frozen=True, slots=True)
class Totals:
    """The size of a whole batch: rows, rows with any masked-in token (``sequences``), and masked-in tokens.

    ``streams``: the sizes of the generator's and of the judge's tokens alone. Their ``rows`` count only rows
    with any such token.
    """

    rows: int
    sequences: int
    tokens: int
    streams: tuple[Totals, ...] = ()

    @classmethod
    def of(cls, mask: Tensor, stream: Tensor | None = None) -> Totals:
        """Return the totals of a mask (B, T), and of its streams (B, T) if given."""
        mask = mask.bool()
        rows, sequences, tokens = mask.shape[0], int(mask.any(dim=1).sum()), int(mask.sum())
        if stream is None:
            return cls(rows, sequences, tokens)
        parts = [cls.of(mask & (stream == one)) for one in STREAMS]
        return cls(rows, sequences, tokens, tuple(replace(part, rows=part.sequences) for part in parts))

    @classmethod
    def sum(cls, parts: Iterable[Totals]) -> Totals:
        """Return the total size of the parts of a batch."""
        parts = list(parts)
        return cls(
            rows=sum(part.rows for part in parts),
            sequences=sum(part.sequences for part in parts),
            tokens=sum(part.tokens for part in parts),
            streams=tuple(map(cls.sum, zip(*(part.streams for part in parts), strict=True))),
        )


@dataclass(frozen=True, slots=True)
class LossConfig:
    """Settings of the losses.

    ``eps_hi`` None means ``eps``, or 0.28 for dapo. ``beta_judge`` None means ``beta``. ``kl`` is the
    estimator that beta weights, ``max_tokens`` dr_grpo's divisor, and ``dual_clip`` ppo's bound.
    ``normalise``: whether tokens of both streams are averaged together, or each stream separately and the
    means added. ``totals`` is the size of the whole batch if the inputs are a micro-batch of it; the losses
    of the micro-batches then add up to the loss of the whole batch. None: the inputs are the whole batch.
    """

    eps: float = 0.2
    eps_hi: float | None = None
    beta: float = 0.0
    max_tokens: int | None = None
    beta_judge: float | None = None
    kl: KlEstimator = "k3"
    dual_clip: float = 3.0
    normalise: Literal["joint", "stream"] = "joint"
    totals: Totals | None = None

    @property
    def clip_range(self) -> tuple[float, float]:
        """The range in which a ratio is not clipped."""
        return 1 - self.eps, 1 + (self.eps if self.eps_hi is None else self.eps_hi)


@dataclass(frozen=True, slots=True)
class LossOutputs:
    """``loss`` is a scalar to call backward on. ``metrics`` are detached scalars over the masked tokens.

    A metric whose name ends in ``_max`` is a maximum; the others are means over tokens. If no token is in the
    mask, the metrics are not finite.
    """

    loss: Tensor
    metrics: dict[str, Tensor] = field(default_factory=dict)


def difference(inputs: LossInputs, other: Tensor) -> Tensor:
    """Return logprobs - other (B, T), and 0 outside the mask whatever the values there."""
    mask = inputs.mask.bool()
    return where(mask, inputs.logprobs, 0.0) - where(mask, other, 0.0)


def sequence_mean(tokens: Tensor, inputs: LossInputs, config: LossConfig) -> Tensor:
    """Return the mean over a sequence's masked tokens, then over the sequences that have any."""

    def mean(mask: Tensor, totals: Totals) -> Tensor:
        per_sequence = where(mask, tokens, 0.0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return per_sequence.sum() / max(totals.sequences, 1)

    return normalised(mean, inputs, config)


def token_mean(tokens: Tensor, inputs: LossInputs, config: LossConfig) -> Tensor:
    """Return the mean over all masked tokens of the batch.

    A long sequence has more weight than a short one.
    """

    def mean(mask: Tensor, totals: Totals) -> Tensor:
        return where(mask, tokens, 0.0).sum() / max(totals.tokens, 1)

    return normalised(mean, inputs, config)


def normalised(mean: Callable[[Tensor, Totals], Tensor], inputs: LossInputs, config: LossConfig) -> Tensor:
    """Return ``mean(mask, totals)`` over all tokens, or the sum of the means over each stream."""
    mask = inputs.mask.bool()
    totals = config.totals or Totals.of(mask, inputs.stream)
    if config.normalise == "joint":
        return mean(mask, totals)
    parts = zip(STREAMS, totals.streams, strict=True)
    return sum(
        (mean(mask & (inputs.stream == stream), own) for stream, own in parts),
        start=zeros((), device=mask.device),
    )


def stream_sum(values: Tensor, inputs: LossInputs) -> Tensor:
    """Return for each token (B, T) the sum of the values over its stream in its row; 0 outside the mask."""
    sums = values.new_zeros(values.shape)
    for stream in STREAMS:
        own = inputs.mask.bool() & (inputs.stream == stream)
        sums = where(own, where(own, values, 0.0).sum(dim=1, keepdim=True), sums)
    return sums


def token_share(name: str, chosen: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Return the fraction of masked tokens that are chosen, as ``name``; nan without masked tokens."""
    mask = mask.bool()
    return {name: (chosen & mask).sum() / mask.sum()}


def token_statistics(name: str, values: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Return ``name_mean`` and ``name_max`` over the masked tokens; nan and -inf without masked tokens.

    No tensor's shape depends on the mask, so there is no wait for a GPU.
    """
    values, mask = values.detach(), mask.bool()
    mean = where(mask, values, 0.0).sum() / mask.sum()
    return {f"{name}_mean": mean, f"{name}_max": where(mask, values, -inf).max()}
