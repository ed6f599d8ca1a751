"""From turns with advantages to training rows, and which stream each token of a turn trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from debate.parsing.tags import ESCAPED, PLAIN, find_tags
from debate.types import ParsedTurn, Turn
from learner.advantages import AdvantageConfig, Author, TurnAdvantage
from learner.types import Row, Transition

GENERATOR = 1
JUDGE = 2
BOTH = GENERATOR | JUDGE
CRITIC = 4
AUTHORS: Mapping[Author, int] = MappingProxyType({"generator": GENERATOR, "judge": JUDGE, "both": BOTH})


def token_streams(turn: Turn, *, evaluation: Author) -> NDArray[np.int8]:
    """Return the stream of each completion token, (T,) int8.

    A token belongs to the section in which its first character lies, tags included: the comparison
    block to the judge, all else (thinking, text before ``<solution>``) to the generator. What follows
    the last section, the end token included, belongs to that section. A ballot is the judge's alone; in
    criticism the evaluation, up to the comparison, is the critic's.
    An evaluation that prepares a comparison, see ``_evaluation_characters``, belongs to whom
    ``evaluation`` names. Tokens that were forced, not sampled, have stream 0.
    A completion without offsets is taken as one token for each character (and an end token) where the
    counts agree; ValueError otherwise.

    >>> from debate.types import *
    >>> text = "<solution>4</solution><comparison>A > B</comparison>"
    >>> completion = Completion((0,), (1, 2, 3), (0.0,) * 3, text, "stop", 0, offsets=(0, 22, len(text)))
    >>> parsed = ParsedTurn(solution=Span(10, 11), comparison=Span(34, 39), comparison_block=Span(22, 52))
    >>> token_streams(Turn(TurnId(0, 1), "C", (), completion, parsed), evaluation="judge")
    array([1, 2, 2], dtype=int8)
    """
    streams = _authors(turn, AUTHORS[evaluation])
    streams[list(turn.completion.forced)] = 0
    return streams


def _authors(turn: Turn, evaluation: int) -> NDArray[np.int8]:
    """Return whose section each token belongs to, (T,)."""
    critique = turn.parsed.criticisms is not UNSET
    if turn.ballot and not critique:
        return np.full(len(turn.completion.tokens), JUDGE, np.int8)
    first = first_characters(turn)
    authors = np.full(len(first), JUDGE if critique else GENERATOR, np.int8)
    parts = ((evaluation, _evaluation_characters(turn)), (JUDGE, _judge_characters(turn.parsed)))
    if critique:
        parts = ((CRITIC, _characters_of_evaluation(turn)),)
    for author, (start, end) in parts:
        authors[(first >= start) & (first < end)] = author
    return authors


def first_characters(turn: Turn) -> NDArray[np.int64]:
    """Return the first character that each token touches, (T,); ValueError where the policy does not say."""
    completion = turn.completion
    count, length = len(completion.tokens), len(completion.text)
    if len(completion.offsets) == count:
        return np.asarray(completion.offsets, np.int64)
    if not completion.offsets and count in (length, length + 1):
        return np.arange(count)
    raise ValueError(
        f"agent {turn.id.agent}, round {turn.id.round}: {count} tokens but {len(completion.offsets)} "
        "offsets; training needs a policy that fills Completion.offsets"
    )


def _evaluation_characters(turn: Turn) -> tuple[int, float]:
    """Return [start, end) of an evaluation that prepares a comparison: up to the latter, or to infinity.

    A comparison was due, and the evaluation stands behind the solution, which it cannot change, and before
    the comparison, if that was written.
    """
    parsed, span = turn.parsed, turn.parsed.evaluation
    if span is None or len(turn.compared) < 2 or (parsed.solution and span.start < parsed.solution.start):
        return 0, 0
    return _characters_of_evaluation(turn)


def _characters_of_evaluation(turn: Turn) -> tuple[int, float]:
    """Return [start, end) of an evaluation: up to the comparison behind it, or to infinity."""
    parsed, span = turn.parsed, turn.parsed.evaluation
    if span is None:
        return 0, 0
    end = math.inf if parsed.comparison_block is None else parsed.comparison_block.start
    tags = (tag for form in (PLAIN, ESCAPED) for tag in find_tags(form, turn.completion.text))
    start = next((tag.start for tag in tags if tag.end == span.start), span.start)
    return (start, end) if start < end else (0, 0)


def _judge_characters(parsed: ParsedTurn) -> tuple[int, float]:
    """Return [start, end) of the judge's characters: to infinity where the comparison comes last."""
    block = parsed.comparison_block
    if block is None:
        return 0, 0
    others = (span.start for span in (parsed.solution, parsed.evaluation) if span is not None)
    is_last = all(start < block.start for start in others)
    return block.start, float("inf") if is_last else block.end


def make_rows(
    transitions: Sequence[Transition], advantages: Sequence[TurnAdvantage | None], config: AdvantageConfig
) -> list[Row]:
    """Return one row for each turn that has a signal, in order; ``advantages``: of each turn.

    Generator tokens get only the generator's advantage and judge tokens only the judge's; those of both get
    the sum, and are the judge's in all else; a critic's tokens get its advantage, and are the judge's in all
    else. The advantage of the format is added to the judge's tokens; where there are none, to the token that
    ended the reply, and where that was cut off, to none: a turn without another signal then has no row.
    Forced tokens are not actions. ValueError where a policy gave no tokens to train on.
    """
    pairs = zip(transitions, advantages, strict=True)
    rows = (_row(transition, advantage, config) for transition, advantage in pairs if advantage is not None)
    return [row for row in rows if row is not None]


def _row(transition: Transition, advantage: TurnAdvantage, config: AdvantageConfig) -> Row | None:
    turn = transition.turn
    completion = turn.completion
    where = f"problem {transition.problem_id!r}, agent {turn.id.agent}, round {turn.id.round}"
    if not completion.tokens or not completion.prompt_tokens:
        raise ValueError(f"{where}: the policy gave no token ids; training needs an engine that does")
    if len(completion.logprobs) != len(completion.tokens):
        counts = f"{len(completion.tokens)} tokens but {len(completion.logprobs)} log-probabilities"
        raise ValueError(f"{where}: {counts}")
    stream = token_streams(turn, evaluation=config.evaluation)
    given = token_advantages(stream, advantage, ended=completion.stop_reason == "stop")
    others = (advantage.generator, advantage.judge, advantage.critic)
    if advantage.format and others == (None, None, None) and not given.any():
        return None
    prompt = len(completion.prompt_tokens)
    return Row(
        input_ids=np.array(completion.prompt_tokens + completion.tokens, np.int64),
        action_mask=_after(prompt, stream > 0),
        sampling_logprobs=_after(prompt, np.array(completion.logprobs, np.float32)),
        advantages=_after(prompt, given),
        stream=_after(prompt, np.minimum(stream, JUDGE)),
        group_id=transition.problem_id,
        policy_version=completion.policy_version,
        turn=turn.id,
        # Greedy sampling reports the log-probabilities of temperature 1.
        temperature=transition.persona.temperature or 1.0,
        debate=transition.debate,
    )


def token_advantages(
    stream: NDArray[np.int8], part: TurnAdvantage, *, ended: bool = True
) -> NDArray[np.float32]:
    """Return the advantage of each token, (T,) float32, from its stream (T,); ``ended``: by its last token.

    >>> token_advantages(np.array([1, 2, 3], np.int8), TurnAdvantage(1.0, 2.0, -0.5)).tolist()
    [1.0, 1.5, 2.5]
    >>> token_advantages(np.array([1, 1, 1], np.int8), TurnAdvantage(1.0, None, -0.5)).tolist()
    [1.0, 1.0, 0.5]
    """
    generator, judge = part.generator or 0.0, part.judge or 0.0
    by_stream = np.array([0.0, generator, judge, generator + judge, part.critic or 0.0], np.float32)
    of_form = (stream & JUDGE) > 0
    if ended and not of_form.any():
        of_form[np.flatnonzero(stream)[-1:]] = True
    return by_stream[stream] + np.where(of_form, np.float32(part.format or 0.0), np.float32(0.0))


def _after(prompt: int, values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros(prompt, values.dtype), values])
