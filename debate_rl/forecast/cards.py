"""The least time that a run takes on a GPU that is not here, by the card's data sheet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from debate_rl.config import Config
from debate_rl.forecast.estimate import Load
from debate_rl.forecast.speed import Speed, evaluation_seconds, evaluations_of, seconds_of, weights_of_layers

PER_NUMBER = 2
"""Bytes of a weight as it is sampled with: 16 bits."""
NEAR = 0.1
"""How much less than its name says a card may have."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU. ``gib``: its memory by name, ``found``: what of it a program finds, at least, in GiB.

    ``operations``: dense bfloat16, a second; ``bytes``: read a second.
    """

    name: str
    gib: int
    operations: float
    bytes: float
    found: float

    def speed(self, model: Any, load: Load) -> Speed:
        """Return a speed that no run exceeds: 2 operations a weight and token, all weights read a token."""
        every = list(model.parameters())
        tokens = self.operations / 2 / weights_of_layers(model)
        read = PER_NUMBER * sum(parameter.numel() for parameter in every) / self.bytes
        return Speed(tokens, tokens, max(read, load.sampled / tokens))


CARDS = (
    Card("A10G", 24, 70e12, 0.6e12, 22.5),
    Card("L4", 24, 121e12, 0.3e12, 22.5),
    Card("L40S", 48, 362e12, 0.864e12, 45.0),
    Card("H100 SXM", 80, 989e12, 3.35e12, 79.0),
    Card("H200 SXM", 141, 989e12, 4.8e12, 139.0),
)
"""By NVIDIA's data sheets, without sparsity."""


def card_of(there: int) -> Card | None:
    """Return the card that so many bytes of memory are of, None where it is not one of ``CARDS``.

    Of two with as much it is the first.

    >>> [card and card.name for card in map(card_of, (79 * 2**30, 80 * 2**30, 64 * 2**30))]
    ['H100 SXM', 'H100 SXM', None]
    """
    gib = there / 2**30
    return next((card for card in CARDS if card.gib * (1 - NEAR) <= gib <= card.gib), None)


def least_seconds(config: Config, model: Any, load: Load, held_out: int, card: Card) -> tuple[float, float]:
    """Return the seconds of a step and of an evaluation on a card that does its data sheet's peak.

    Every reply is at its limit, all replies of a step are sampled at once, and no prompt is cached.
    """
    once = replace(load, sampled=load.replies)
    batch = config.train.model_copy(update={"sample_batch_size": 1 << 30})
    config, speed = config.model_copy(update={"train": batch}), card.speed(model, once)
    step = seconds_of(once, speed, config, adapter=config.model.lora_rank > 0)
    count = evaluations_of(config, held_out)
    return step.sampling + step.learning, evaluation_seconds(once, speed, config, held_out) if count else 0.0
