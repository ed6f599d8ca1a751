"""Shaping rewards of solutions, in addition to votes and truth: for novelty, copying and length.

Two texts are compared by their shingles, the sets of their sequences of four consecutive words and signs
[Broder 1997]. The containment of one text in another is the fraction of its shingles that the other also has,
in [0, 1].

    shaping = novelty_bonus [new] + copy_penalty [copied] + length_penalty * tokens / limit
            + the penalty near the limit (rewards.overlong)
            + self_correction [a revision that the others score higher: rewards.criticism]

Shaping rewards are a separate stream with a separate baseline, so they change neither the votes' winner nor
the truth rewards. A new answer may be wrong, so the novelty bonus also pays for unusual wrong answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from debate.policy import token_counts
from debate.ramps import number
from debate.types import Debate, Problem, Turn, TurnId
from rewards.config import RewardConfig
from rewards.criticism import corrected_turns
from rewards.overlong import overlong_penalties
from rewards.votes import ballot_box, valid_votes

Shingles: TypeAlias = frozenset[tuple[str, ...]]
AnswerKey: TypeAlias = Callable[[Problem, str], str]
"""Maps a problem and an answer to a text that is equal for equal answers."""

WORDS = 4
"""Number of words and signs in a shingle."""
COPY_FROM = 0.8
"""A text is a copy if at least this fraction of its shingles occurs in the other text."""
_WORD = re.compile(r"\w+|[^\w\s]")


class Shaping(NamedTuple):
    """The parts of a solution's shaping reward: novelty, copying, length, and a better revision."""

    novelty: float = 0.0
    copy: float = 0.0
    length: float = 0.0
    correction: float = 0.0


def same_spelling(problem: Problem, answer: str) -> str:
    """Return the answer without whitespace and dollar signs, in lower case.

    >>> same_spelling(Problem("p", "?"), "$X = 4$") == same_spelling(Problem("p", "?"), "x=4")
    True
    """
    return "".join(answer.replace("$", "").split()).casefold()


def shaping_of(debate: Debate, config: RewardConfig, key: AnswerKey = same_spelling) -> dict[TurnId, Shaping]:
    """Return the parts of the shaping reward of every solution turn, in order; {} if the scheme has none.

    ``key`` decides which answers are the same. A turn without a solution is neither new nor copied, but its
    length counts.
    """
    if not config.shapes:
        return {}
    turns = [turn for turn in debate.turns if not turn.ballot]
    limit = debate.protocol.max_tokens + debate.protocol.thinking_tokens
    bonus, penalty, length = map(number, (config.novelty_bonus, config.copy_penalty, config.length_penalty))
    new = _new_turns(debate, turns, key) if bonus else set[TurnId]()
    copied = _copied_turns(turns) if penalty else set[TurnId]()
    overlong = overlong_penalties(debate, config)
    correction = number(config.self_correction)
    corrected = set[TurnId]()
    if correction:
        votes = valid_votes(ballot_box(debate, judge_own=config.judge_own))
        corrected = corrected_turns(debate, votes)
    return {
        turn.id: Shaping(
            bonus if turn.id in new else 0.0,
            penalty if turn.id in copied else 0.0,
            length * min(token_counts(turn.completion)[1] / limit, 1.0) + overlong.get(turn.id, 0.0),
            correction if turn.id in corrected else 0.0,
        )
        for turn in turns
    }


def _new_turns(debate: Debate, turns: list[Turn], key: AnswerKey) -> set[TurnId]:
    """Return the solutions whose answer no other agent gave in the same round or before."""
    answers = {
        turn.id: key(debate.problem, turn.parsed.answer) for turn in turns if turn.parsed.answer is not None
    }
    return {
        turn
        for turn, own in answers.items()
        if not any(
            own == answer and other.agent != turn.agent and other.round <= turn.round
            for other, answer in answers.items()
        )
    }


def _copied_turns(turns: list[Turn]) -> set[TurnId]:
    """Return the solutions that copy another agent's solution that their author was shown (``COPY_FROM``)."""
    spans = ((turn, turn.parsed.solution) for turn in turns)
    texts = {turn.id: shingles(span.of(turn.completion.stated)) for turn, span in spans if span is not None}
    texts = {turn: own for turn, own in texts.items() if own}
    peers = {
        turn.id: [texts[other] for other in turn.shown if other in texts and other.agent != turn.id.agent]
        for turn in turns
        if turn.id in texts
    }
    return {turn for turn, shown in peers.items() if containment(texts[turn], shown) >= COPY_FROM}


def shingles(text: str) -> Shingles:
    """Return the sequences of four words and signs in a text, in lower case. A shorter text is one sequence.

    >>> sorted(shingles("So x = 4 then"))
    [('so', 'x', '=', '4'), ('x', '=', '4', 'then')]
    """
    words = _WORD.findall(text.casefold())
    last = max(len(words) - WORDS, 0)
    return frozenset(tuple(words[start : start + WORDS]) for start in range(last + 1) if words)


def containment(own: Shingles, others: Iterable[Shingles]) -> float:
    """Return the largest fraction of ``own`` contained in one of the others, in [0, 1]; 0 without others.

    >>> containment(shingles("a b c d e"), [shingles("x a b c d"), shingles("y")])
    0.5
    """
    return max((len(own & other) / len(own) for other in others), default=0.0)
