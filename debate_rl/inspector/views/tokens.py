"""One turn token by token: its stream, its advantage in the loss, and its log-probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Literal, TypeAlias

import numpy as np
from msgspec import UNSET

from debate.types import Completion, Turn, TurnId
from debate_rl.inspector.views.debate import PieceKind, pieces_of
from learner.advantages import Author, TurnAdvantage
from learner.rows import first_characters, token_advantages, token_streams
from transcripts import Record
from transcripts.record import named

Stream: TypeAlias = Literal["forced", "generator", "judge", "both", "critic"]
STREAMS: tuple[Stream, ...] = ("forced", "generator", "judge", "both", "critic")
"""Names of the streams 0 to 4: a forced token belongs to no agent."""
NONE_STORED = "no token arrays are stored of this turn (logging.transcript_tokens = false, or not read)"


@dataclass(frozen=True, slots=True)
class TokenPiece:
    """One token, at its ``index`` from 0, with the ``text`` from where it begins to where the next begins.

    ``section`` is that of its first character. ``advantage``: what the loss weighted it with, that of the
    format included, None where its turn had no signal; ``logprob`` in nats at the persona's
    temperature. A forced token has neither.
    """

    index: int
    token: int
    start: int
    end: int
    text: str
    section: PieceKind
    stream: Stream
    advantage: float | None
    logprob: float | None


@dataclass(frozen=True, slots=True)
class TokenTotal:
    """The tokens of one section and stream: how many, the sum of their advantages, their mean
    log-probability; None where none has one.
    """

    section: PieceKind
    stream: Stream
    tokens: int
    advantage: float | None
    logprob: float | None


@dataclass(frozen=True, slots=True)
class TokenView:
    """The tokens of a turn; ``why`` there are none to show, else ""."""

    turn: TurnId
    tokens: tuple[TokenPiece, ...]
    totals: tuple[TokenTotal, ...]
    why: str = ""


def token_view(record: Record, turn_id: TurnId, *, evaluation: Author) -> TokenView:
    """Return the tokens of a turn of a record that was read with ``tokens=True``.

    ``evaluation`` is the run's ``advantages.evaluation``. ValueError where the debate has no such turn.
    """
    try:
        turn = record.debate.turn(turn_id)
    except KeyError as error:
        raise ValueError(f"the debate has no turn {named(turn_id)}") from error
    why = _why_not(turn.completion)
    if why:
        return TokenView(turn_id, (), (), why)
    tokens = tuple(_tokens(record, turn, evaluation))
    return TokenView(turn_id, tokens, tuple(_totals(tokens)))


def _why_not(completion: Completion) -> str:
    """Return why the tokens cannot be shown: none are stored, or the arrays do not fit each other."""
    count, length = len(completion.tokens), len(completion.text)
    if not count:
        return NONE_STORED
    if len(completion.logprobs) != count:
        return f"{count} tokens but {len(completion.logprobs)} log-probabilities are stored"
    if len(completion.offsets) != count and (completion.offsets or count not in (length, length + 1)):
        return f"{count} tokens but {len(completion.offsets)} offsets are stored"
    if wrong := [index for index in completion.forced if not 0 <= index < count]:
        return f"forced: {wrong[0]} is not an index of {count} tokens"
    bad = any(not 0 <= a <= b for a, b in pairwise((*completion.offsets, length)))
    return "the offsets do not go up within the text" if bad else ""


def _tokens(record: Record, turn: Turn, evaluation: Author) -> Iterator[TokenPiece]:
    completion = turn.completion
    text, weights = completion.text, None
    streams = token_streams(turn, evaluation=evaluation)
    part = next((part for part in record.advantages if part.turn == turn.id), None)
    if part is not None:
        critic = None if part.critic is UNSET else part.critic
        advantage = TurnAdvantage(part.generator, part.judge, part.format, critic=critic)
        weights = token_advantages(streams, advantage, ended=completion.stop_reason == "stop")
    starts = [min(int(at), len(text)) for at in first_characters(turn)]
    pieces = pieces_of(turn.parsed, len(text))
    bounds = np.array([piece.end for piece in pieces], np.int64)
    inside = np.searchsorted(bounds, np.array(starts, np.int64), side="right").tolist()
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True)):
        sampled = streams[index] > 0
        yield TokenPiece(
            index,
            completion.tokens[index],
            start,
            end,
            text[start:end],
            pieces[inside[index]].kind if inside[index] < len(pieces) else "other",
            STREAMS[int(streams[index])],
            float(weights[index]) if weights is not None and sampled else None,
            completion.logprobs[index] if sampled else None,
        )


def _totals(tokens: Sequence[TokenPiece]) -> Iterator[TokenTotal]:
    groups: dict[tuple[PieceKind, Stream], list[TokenPiece]] = {}
    for token in tokens:
        groups.setdefault((token.section, token.stream), []).append(token)
    for key, members in groups.items():
        weights = [token.advantage for token in members if token.advantage is not None]
        logprobs = [token.logprob for token in members if token.logprob is not None]
        mean = fsum(logprobs) / len(logprobs) if logprobs else None
        yield TokenTotal(*key, len(members), fsum(weights) if weights else None, mean)
