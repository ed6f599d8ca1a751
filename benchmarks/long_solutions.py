"""What an average does to judges where solutions are long: shares of the weight, and losses to train with.

A solution of a real model has 300 to 2,000 tokens and a ballot 20 to 60; in the quick-start they have 11 and
21. Run as a program, this prints for each average which share of the weight (the sum of |d loss / d logprob|
where every advantage is 1) the judge's tokens have, and how a token of a ballot weighs against one of a
solution.

    .venv/bin/python benchmarks/long_solutions.py

Trained with, ``rows`` and ``tokens`` are grpo and dapo of solutions that are FACTOR times as long: as if each
of the generator's tokens came with FACTOR - 1 that are certain, and so have no gradient, but are counted.

    PYTHONPATH=benchmarks .venv/bin/debate train quickstart learner.loss=long_solutions:rows
"""

from __future__ import annotations

import torch
from report import Figure, parser, report
from torch import Tensor, tensor, where

from learner.losses import LOSSES, LossConfig, LossInputs, LossOutputs
from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import Totals, normalised
from learner.token_streams import GENERATOR, JUDGE

FACTOR = 50
ROWS = 12
"""Solutions, debate turns (a solution and a comparison) and ballots, of each so many."""


def rows(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss of grpo, with the mean over rows as long solutions have it."""

    def mean(mask: Tensor, totals: Totals) -> Tensor:
        counted = where(mask, lengths, 0.0).sum(dim=1).clamp(min=1)
        return (where(mask, surrogate, 0.0).sum(dim=1) / counted).sum() / max(totals.sequences, 1)

    lengths, surrogate, metrics = _parts(inputs, config)
    return LossOutputs(normalised(mean, inputs, config), metrics)


def tokens(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss of dapo, with the mean over tokens as long solutions have it."""
    _, surrogate, metrics = _parts(inputs, config)
    mask, totals = inputs.mask.bool(), config.totals or Totals.of(inputs.mask, inputs.stream)
    counts = [part.tokens * length for part, length in zip(totals.streams, (FACTOR, 1), strict=True)]
    sums = [where(mask & (inputs.stream == one), surrogate, 0.0).sum() for one in (GENERATOR, JUDGE)]
    if config.normalise == "joint":
        return LossOutputs((sums[0] + sums[1]) / max(sum(counts), 1), metrics)
    return LossOutputs(sums[0] / max(counts[0], 1) + sums[1] / max(counts[1], 1), metrics)


def _parts(inputs: LossInputs, config: LossConfig) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return how many tokens each token stands for, and grpo's loss of each, with the KL in it."""
    surrogate, metrics = clipped_surrogate(inputs, config)
    penalty, kl_metrics = kl_penalty(inputs, config)
    lengths = where(inputs.stream == GENERATOR, float(FACTOR), 1.0)
    return lengths, surrogate + penalty, metrics | kl_metrics


def shares(loss: str, normalise: str, solution: int, ballot: int) -> tuple[float, float]:
    """Return the judge's share of the weight, and the weight of a ballot's token in units of a solution's."""
    width = solution + ballot
    kinds = [[GENERATOR] * solution, [GENERATOR] * solution + [JUDGE] * ballot, [JUDGE] * ballot]
    stream = tensor([kind + [0] * (width - len(kind)) for kind in kinds for _ in range(ROWS)])
    logprobs = torch.full(stream.shape, -1.0, requires_grad=True)
    old, ones = logprobs.detach(), torch.ones_like(logprobs).detach()
    inputs = LossInputs(logprobs, old, old, None, ones, stream > 0, stream)
    LOSSES[loss](inputs, LossConfig(normalise=normalise)).loss.backward()  # pyright: ignore[reportArgumentType]
    weight = logprobs.grad.abs() if logprobs.grad is not None else ones
    return float(weight[stream == JUDGE].sum() / weight.sum()), float(weight[-1, 0] / weight[0, 0])


def main() -> None:
    args = parser("The judge's share of the weight by average and lengths.").parse_args()
    figures: list[Figure] = []
    for solution, ballot in ((11, 21), (300, 60), (300, 20), (2000, 60), (2000, 20)):
        for loss, normalise in ((loss, n) for loss in ("grpo", "dapo") for n in ("joint", "stream")):
            share, ratio = shares(loss, normalise, solution, ballot)
            name = f"{loss} {normalise}, solutions of {solution}, ballots of {ballot}"
            figures.append(Figure(f"{name}: judge's share", share, "share", 3 * ROWS))
            figures.append(Figure(f"{name}: ballot's token / solution's", ratio, "ratio", 3 * ROWS))
    report("weight of the judge's tokens", figures, args.json)


if __name__ == "__main__":
    main()
