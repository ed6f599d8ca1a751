"""Prompts of reasoning without its question, and the log-probabilities of the gold answers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from debate import Problem
from debate.types import Message, TurnId
from debate_rl.config.likelihood import LikelihoodConfig
from debate_rl.inference.encoding import PromptEncoder
from debate_rl.likelihood.reasoning import gold_of
from learner.types import Row
from learner.update.batches import micro_batches
from learner.update.forward import action_logprobs
from learner.update.sharing import reading


@dataclass
class AnswerRows:
    """Makes rows of reasoning and gold answers for a model, by the prompt of ``config``."""

    model: Any
    tokenizer: Any
    config: LikelihoodConfig

    def row(self, problem: Problem, text: str) -> Row | None:
        """Return the prompt with the gold answer as the tokens to score; None where that cannot be read."""
        gold = gold_of(problem)
        if gold is None:
            return None
        before, answer = self.config.parts(text, gold)
        ids, prompt = self.encode(before + answer), self.encode(before)
        start = max(_shared(ids, prompt), 1)  # a token may hold the end of one and the beginning of the other
        if start >= len(ids) or len(ids) > self.context:
            return None
        return _row(ids, start)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a raw text, in which control tokens are plain text."""
        return self._encoder.encode((Message("user", text),))

    @cached_property
    def context(self) -> int:
        """The tokens that the model reads at most."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or 1 << 30

    @cached_property
    def _encoder(self) -> PromptEncoder:
        return PromptEncoder(self.tokenizer, chat=False, raw_prompt=as_it_is)


def as_it_is(messages: Sequence[Message]) -> str:
    """Return the raw prompt of one message: its content."""
    return messages[0].content


def _shared(ids: Sequence[int], prompt: Sequence[int]) -> int:
    """Return how many tokens two texts begin with alike."""
    pairs = zip(ids, prompt, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(ids), len(prompt)))


def _row(ids: Sequence[int], start: int) -> Row:
    """Return tokens as a row whose actions begin at ``start``, at temperature 1."""
    zeros = np.zeros(len(ids), np.float32)
    mask = np.arange(len(ids)) >= start
    return Row(
        np.array(ids, np.int64),
        mask,
        zeros,
        zeros,
        mask.astype(np.int8),
        group_id="",
        policy_version=0,
        turn=TurnId(0, 0),
    )


@torch.no_grad()
def mean_logprobs(
    model: Any, rows: Sequence[Row], *, max_tokens: int, compute: torch.dtype | None
) -> list[float]:
    """Return the mean log-probability of the actions of each row under a model, in nats.

    ``max_tokens``: read at a time, padding included; ``compute``: the type of products.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index].input_ids))
    values: list[float] = []
    model.eval()
    with reading(model, share=False, compute=compute):
        for batch in micro_batches(rows, max_tokens, device=device):
            logprobs, _ = action_logprobs(model, batch, compute=compute)
            values += (logprobs.sum(1) / batch.mask.sum(1)).tolist()
    return [value for _, value in sorted(zip(order, values, strict=True))]
