"""GSPO: one ratio for the tokens of one stream of a sequence, clipped as a whole [arXiv 2507.18071].

    s = exp(mean over the stream's tokens in the row of logprob - old_logprob)
    -min(s A, clip(s, 1 - eps, 1 + eps_hi) A),   mean per sequence, then over sequences

A row holds two streams, and a ratio of the whole row would let the judge's tokens clip the generator's: so
each stream of a row has its own. This is the paper's GSPO-token, s_t = sg(s) * p_t / sg(p_t), whose value and
gradient are GSPO's where a stream's tokens share one advantage, as they do here, and which is right for
tokens that do not. s varies far less than a token's ratio: the paper's eps is 3e-4, and eps_hi 4e-4.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, where

from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import (
    LossConfig,
    LossInputs,
    LossOutputs,
    difference,
    sequence_mean,
)
from learner.tokens import GENERATOR, JUDGE


def gspo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics; a token's ratio is that of its stream in its row."""
    mask = inputs.mask.bool()
    logprobs = where(mask, inputs.logprobs, 0.0)
    shared = logprobs - logprobs.detach() + stream_mean(difference(inputs, inputs.old_logprobs), inputs)
    of_streams = replace(inputs, logprobs=shared, old_logprobs=torch.zeros_like(shared))
    surrogate, metrics = clipped_surrogate(of_streams, config)
    penalty, kl_metrics = kl_penalty(inputs, config)
    return LossOutputs(sequence_mean(surrogate + penalty, inputs, config), metrics | kl_metrics)


def stream_mean(values: Tensor, inputs: LossInputs) -> Tensor:
    """Return for each token (B, T) the detached mean of the values over its stream in its row."""
    mean = torch.zeros_like(values)
    for stream in (GENERATOR, JUDGE):
        own = inputs.mask.bool() & (inputs.stream == stream)
        sums = where(own, values.detach(), 0.0).sum(dim=1, keepdim=True)
        mean = where(own, sums / own.sum(dim=1, keepdim=True).clamp(min=1), mean)
    return mean
