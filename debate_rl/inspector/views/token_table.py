"""One turn, token by token: its stream and advantage, and how likely sampler and trainer hold it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

import torch

from debate.types import Turn, TurnId
from debate_rl.config import Config
from debate_rl.inspector.views.tokens import token_view
from learner.advantages import TurnAdvantage
from learner.rows import make_rows
from learner.types import Transition
from learner.update.batches import collate
from learner.update.forward import action_logprobs, compute_type
from transcripts import Record

LARGEST = 700.0
"""The logarithm of the largest ratio shown: more is beyond a float."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token of a completion, at its ``index``.

    ``advantage`` is None where the turn had no signal at all; ``sampler`` and ``trainer`` are
    log-probabilities in nats at the persona's temperature; ``ratio`` is exp(trainer - sampler). A forced
    token has none of them.
    """

    index: int
    token: int
    text: str
    stream: str
    advantage: float | None
    sampler: float | None
    trainer: float | None
    ratio: float | None


def token_table(
    record: Record, turn_id: TurnId, model: Any, tokenizer: Any, config: Config
) -> list[TokenRow]:
    """Return a row for each token of the turn, with the log-probabilities that the run's learner computes.

    ValueError where the debate has no such turn, or its transcript kept no tokens.
    """
    turn = _turn(record, turn_id)
    _refuse_foreign(turn, model.get_input_embeddings().weight.shape[0])
    view = token_view(record, turn_id, evaluation=config.advantages.evaluation)
    if view.why:
        raise ValueError(view.why)
    trainer = _trainer_logprobs(record, turn, model, config)
    rows: list[TokenRow] = []
    for piece, logprob in zip(view.tokens, trainer, strict=True):
        text, sampler = tokenizer.decode([piece.token]), piece.logprob
        known = (None, None) if sampler is None else (logprob, exp(min(logprob - sampler, LARGEST)))
        rows.append(TokenRow(piece.index, piece.token, text, piece.stream, piece.advantage, sampler, *known))
    return rows


def _turn(record: Record, turn_id: TurnId) -> Turn:
    try:
        turn = record.debate.turn(turn_id)
        record.debate.personas[turn_id.agent]
    except LookupError as error:
        last = max((turn.id.round for turn in record.debate.turns), default=-1)
        raise ValueError(
            f"the debate has no turn {turn_id.agent}.{turn_id.round}: agents are 0 to "
            f"{len(record.debate.personas) - 1}, rounds 0 to {last}"
        ) from error
    if not turn.completion.tokens:
        raise ValueError("the transcript kept no tokens of this turn (logging.transcript_tokens = false)")
    return turn


def _refuse_foreign(turn: Turn, vocabulary: int) -> None:
    """Raise ValueError for token ids or indices that no completion of this model has."""
    completion = turn.completion
    bounds = {
        "prompt_tokens": vocabulary,
        "tokens": vocabulary,
        "forced": len(completion.tokens),
        "offsets": len(completion.text) + 1,
    }
    for name, bound in bounds.items():
        wrong = next((value for value in getattr(completion, name) if not 0 <= value < bound), None)
        if wrong is not None:
            raise ValueError(
                f"turn {turn.id.agent}.{turn.id.round}, {name}: {wrong} is not in 0..{bound - 1}; "
                "the transcript is damaged, or of another model"
            )


def _trainer_logprobs(record: Record, turn: Turn, model: Any, config: Config) -> list[float]:
    """Return the log-probability of each token (T,) under the model, computed as the learner does."""
    transition = Transition(turn, record.debate.personas[turn.id.agent], record.group)
    [row] = make_rows([transition], [TurnAdvantage(None, None, None)], config.advantages)
    compute = compute_type(model, config.learner.compute)
    with torch.no_grad():
        logprobs = action_logprobs(model, collate([row], device=model.device), compute=compute)[0][0]
    return logprobs[len(turn.completion.prompt_tokens) :].tolist()
