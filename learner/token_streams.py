"""Assign each token of a turn to a stream: the generator, the judge, both, or the critic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from debate.parsing.tags import ESCAPED, PLAIN, find_tags
from debate.types import ParsedTurn, Turn
from learner.advantages import Author

GENERATOR = 1
JUDGE = 2
BOTH = GENERATOR | JUDGE
CRITIC = 4
AUTHORS: Mapping[Author, int] = MappingProxyType({"generator": GENERATOR, "judge": JUDGE, "both": BOTH})


def token_streams(turn: Turn, *, evaluation: Author) -> NDArray[np.int8]:
    """Return the stream of each completion token, (T,) int8.

    A token belongs to the section that contains its first character, including tags. The comparison block
    belongs to the judge, everything else (thinking, text before ``<solution>``) to the generator. Text after
    the last section, including the end token, belongs to that section. All tokens of a ballot are the
    judge's. In criticism, the evaluation up to the comparison is the critic's.

    An evaluation that prepares a comparison (see ``_evaluation_characters``) belongs to the author
    ``evaluation``. Tokens that were forced instead of sampled have stream 0. A completion without offsets is
    taken as one token per character (and an end token) if the counts agree; otherwise ValueError.

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
    """Return the stream of each token, (T,), by the author of its section."""
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
    """Return the index of the first character that each token touches, (T,).

    ValueError if the policy returns no offsets.
    """
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
    """Return [start, end) of an evaluation that prepares a comparison, or (0, 0).

    The range ends at the comparison block, or at infinity without one. It is (0, 0) unless a comparison was
    due and the evaluation comes before the comparison and after the solution, which it can then no longer
    change.
    """
    parsed, span = turn.parsed, turn.parsed.evaluation
    if span is None or len(turn.compared) < 2 or (parsed.solution and span.start < parsed.solution.start):
        return 0, 0
    return _characters_of_evaluation(turn)


def _characters_of_evaluation(turn: Turn) -> tuple[int, float]:
    """Return [start, end) of an evaluation: up to the comparison after it, or to infinity; (0, 0) if none."""
    parsed, span = turn.parsed, turn.parsed.evaluation
    if span is None:
        return 0, 0
    end = math.inf if parsed.comparison_block is None else parsed.comparison_block.start
    tags = (tag for form in (PLAIN, ESCAPED) for tag in find_tags(form, turn.completion.text))
    start = next((tag.start for tag in tags if tag.end == span.start), span.start)
    return (start, end) if start < end else (0, 0)


def _judge_characters(parsed: ParsedTurn) -> tuple[int, float]:
    """Return [start, end) of the judge's characters: to infinity if the comparison is last.

    (0, 0) without a comparison block.
    """
    block = parsed.comparison_block
    if block is None:
        return 0, 0
    others = (span.start for span in (parsed.solution, parsed.evaluation) if span is not None)
    is_last = all(start < block.start for start in others)
    return block.start, float("inf") if is_last else block.end
