"""One turn token by token: its stream, its advantage in the loss, and its log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, fsum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from msgspec import UNSET

from debate.types import Completion, Turn, TurnId
from debate_rl.formatting import fixed
from debate_rl.inspector.blocks import Block, Line, Section, Span, Table, Text, Words
from debate_rl.inspector.views.debate import PieceKind, pieces_of
from learner.advantages import Author, TurnAdvantage
from learner.rows import token_advantages
from learner.token_streams import first_characters, token_streams
from learner.types import Transition
from transcripts import Record
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.config import Config

Stream: TypeAlias = Literal["forced", "generator", "judge", "both", "critic"]
STREAMS: tuple[Stream, ...] = ("forced", "generator", "judge", "both", "critic")
"""Names of the streams 0 to 4. Forced tokens belong to no agent."""


@dataclass(frozen=True, slots=True)
class TokenPiece:
    """One token, at its ``index`` from 0. ``text`` runs to the beginning of the next token.

    ``section``: of its first character. ``advantage``: its weight in the loss, including the format
    advantage, or None without a signal. ``logprob``: in nats at the persona's temperature. Forced tokens have
    neither.
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
    """The number of tokens of a section and stream, their summed advantages and mean log-probability.

    A value is None if no token has a value.
    """

    section: PieceKind
    stream: Stream
    tokens: int
    advantage: float | None
    logprob: float | None


@dataclass(frozen=True, slots=True)
class TokenView:
    """The tokens of a turn. ``why``: the reason if no tokens can be shown, else ""."""

    turn: TurnId
    tokens: tuple[TokenPiece, ...]
    totals: tuple[TokenTotal, ...]
    why: str = ""


def token_view(record: Record, turn_id: TurnId, *, evaluation: Author) -> TokenView:
    """Return the tokens of a turn of a record that was read with ``tokens=True``.

    ``evaluation``: the run's ``advantages.evaluation``. ValueError if the debate has no such turn.
    """
    turn = next((one for one in record.debate.turns if one.id == turn_id), None)
    agents = len(record.debate.personas)
    if turn is None or turn_id.agent >= agents:
        last = max((one.id.round for one in record.debate.turns), default=-1)
        where = f"agents are 0 to {agents - 1}, rounds 0 to {last}"
        raise ValueError(f"the debate has no turn {named(turn_id)}: {where}")
    why = _why_not(turn.completion)
    if why:
        return TokenView(turn_id, (), (), why)
    tokens = tuple(_tokens(record, turn, evaluation))
    return TokenView(turn_id, tokens, tuple(_totals(tokens)))


def _why_not(completion: Completion) -> str:
    """Return why the tokens cannot be shown, or ""."""
    count, length = len(completion.tokens), len(completion.text)
    if not count:
        return "no token arrays are stored for this turn (logging.transcript_tokens = false, or not read)"
    if len(completion.logprobs) != count:
        return f"{count} tokens but {len(completion.logprobs)} log-probabilities are stored"
    if len(completion.offsets) != count and (completion.offsets or count not in (length, length + 1)):
        return f"{count} tokens but {len(completion.offsets)} offsets are stored"
    if wrong := [index for index in completion.forced if not 0 <= index < count]:
        return f"forced: {wrong[0]} is not an index of {count} tokens"
    bad = any(not 0 <= a <= b for a, b in pairwise((*completion.offsets, length)))
    return "the offsets do not increase within the text" if bad else ""


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


TONES = 4
"""Number of shades of positive and of negative advantages."""


def token_blocks(view: TokenView, start: int, most: int) -> list[Block]:
    """Return totals by section and stream, then ``most`` tokens, shaded by advantage."""
    if view.why:
        return [Line(view.why, "notice", name="no-tokens")]
    totals = [
        (one.section, one.stream, f"{one.tokens:,}", fixed(one.advantage, "+.3f"), fixed(one.logprob))
        for one in view.totals
    ]
    shown = view.tokens[start : start + most]
    largest = max((abs(token.advantage) for token in view.tokens if token.advantage), default=0.0)
    stream = [Span(token.text, f"{tone(token.advantage, largest)} {token.stream}") for token in shown]
    rows: list[Sequence[Words]] = []
    for token in shown:
        text = Span("'" + token.text[:60].replace("\n", "\\n") + "'", "code")
        numbers = fixed(token.advantage, "+.3f"), fixed(token.logprob)
        rows.append((str(token.index), text, token.section, token.stream, *numbers))
    sums = ("section", "stream", ">tokens", ">sum of advantages", ">mean log-probability")
    heads = (">index", "token", "section", "stream", ">advantage", ">log-probability")
    title = f"tokens {start:,} to {start + len(shown) - 1:,} of {len(view.tokens):,}"
    return [
        Table(sums, totals, name="totals", kind="plain"),
        Text(stream, kind="stream", name="stream"),
        Section(title, [Table(heads, rows, name="token-table", kind="plain mono")], folded=True),
    ]


def tone(advantage: float | None, largest: float) -> str:
    """Return the name of a token's shade: up or down, and a level from 1 to 4 relative to ``largest``.

    >>> tone(1.0, 1.0), tone(-0.2, 1.0), tone(0.0, 1.0), tone(None, 1.0)
    ('up4', 'down1', 'even', 'unheld')
    """
    if advantage is None:
        return "unheld"
    if advantage == 0 or not largest:
        return "even"
    step = min(TONES, 1 + int(TONES * abs(advantage) / largest))
    return f"{'up' if advantage > 0 else 'down'}{step}"


LARGEST = 700.0
"""The logarithm of the largest ratio shown. Larger ratios would overflow."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token of a completion, at its ``index``. ``advantage``: None if the turn had no signal.

    ``sampler`` and ``trainer``: log-probabilities in nats at the persona's temperature. ``ratio``:
    exp(trainer - sampler). Forced tokens have none of these.
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
    """Return a row for each token of the turn, with log-probabilities computed by the run's learner.

    ValueError if the debate has no such turn, or its tokens are missing or from another model.
    """
    import torch

    from learner.rows import make_rows
    from learner.update.batches import collate
    from learner.update.forward import action_logprobs, compute_type

    view = token_view(record, turn_id, evaluation=config.advantages.evaluation)
    if view.why:
        raise ValueError(view.why)
    turn = record.debate.turn(turn_id)
    completion, vocabulary = turn.completion, model.get_input_embeddings().weight.shape[0]
    for name in ("prompt_tokens", "tokens"):
        for value in getattr(completion, name):
            if not 0 <= value < vocabulary:
                where = f"turn {named(turn_id)}, {name}: {value} is not in 0..{vocabulary - 1}"
                raise ValueError(f"{where}; the transcript is damaged or from another model")
    transition = Transition(turn, record.debate.personas[turn_id.agent], record.group)
    [row] = make_rows([transition], [TurnAdvantage(None, None, None)], config.advantages)
    compute = compute_type(model, config.learner.compute)
    with torch.no_grad():
        logprobs = action_logprobs(model, collate([row], device=model.device), compute=compute)[0][0]
    trainer = logprobs[len(completion.prompt_tokens) :].tolist()
    rows: list[TokenRow] = []
    for piece, logprob in zip(view.tokens, trainer, strict=True):
        text, sampler = tokenizer.decode([piece.token]), piece.logprob
        known = (None, None) if sampler is None else (logprob, exp(min(logprob - sampler, LARGEST)))
        rows.append(TokenRow(piece.index, piece.token, text, piece.stream, piece.advantage, sampler, *known))
    return rows
