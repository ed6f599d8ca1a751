"""GSPO: one ratio for all tokens of a stream in a sequence, clipped as a whole [arXiv 2507.18071].

    s = exp(mean over the stream's tokens in the row of logprob - old_logprob)
    -min(s A, clip(s, 1 - eps, 1 + eps_hi) A),   mean per sequence, then over sequences

A row has two streams, and with one ratio for the whole row the judge's tokens could clip the generator's. So
each stream of a row has its own ratio. This is the paper's GSPO-token, s_t = sg(s) * p_t / sg(p_t). Its value
and gradient equal GSPO's if all tokens of a stream share one advantage, as they do here, and it is also
correct if they do not. s varies far less than a token's ratio: the paper's eps is 3e-4, and eps_hi 4e-4.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import where

from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, difference, sequence_mean, stream_sum


def gspo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. A token's ratio is the ratio of its stream in its row."""
    mask = inputs.mask.bool()
    logprobs = where(mask, inputs.logprobs, 0.0)
    gap = difference(inputs, inputs.old_logprobs).detach()
    mean = stream_sum(gap, inputs) / stream_sum(torch.ones_like(gap), inputs).clamp(min=1)
    shared = logprobs - logprobs.detach() + mean
    of_streams = replace(inputs, logprobs=shared, old_logprobs=torch.zeros_like(shared))
    surrogate, metrics = clipped_surrogate(of_streams, config)
    penalty, kl_metrics = kl_penalty(inputs, config)
    return LossOutputs(sequence_mean(surrogate + penalty, inputs, config), metrics | kl_metrics)
