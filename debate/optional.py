"""What a policy may have beside the protocol, and what is assumed of one that has not.

``seat()``, a context manager: a policy that batches counts the live debates by it;
``opens_thinking(messages)``: whether the prompt ends with ``<think>``;
``context_tokens`` (int | None): the most tokens of prompt and completion together;
``count_tokens(messages)``: the length of a prompt.
Where it knows how many tokens there were and not which, ``Completion`` has places for the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from debate.types import Completion, Message, Policy


def seat_at(policy: Policy) -> AbstractContextManager[object]:
    """Return the policy's seat for one debate, or nothing to enter."""
    seat: Callable[[], AbstractContextManager[object]] = getattr(policy, "seat", nullcontext)
    return seat()


def opens_thinking(policy: Policy, messages: Sequence[Message]) -> bool:
    """Return whether a reply to these messages begins within a think block.

    If it is cut off before ``</think>`` it is then all thinking, and stays private.
    """
    opens: Callable[[Sequence[Message]], bool] | None = getattr(policy, "opens_thinking", None)
    return opens is not None and opens(messages)


def context_limit(policy: Policy) -> int | None:
    """Return the most tokens that prompt and completion may have together, None for no limit."""
    limit: int | None = getattr(policy, "context_tokens", None)
    return limit


def token_counter(policy: Policy) -> Callable[[tuple[Message, ...]], int]:
    """Return how the policy counts a prompt's tokens, or a guess: three characters each, rounded up."""
    count: Callable[[tuple[Message, ...]], int] = getattr(policy, "count_tokens", _a_third_of_the_characters)
    return count


def token_counts(completion: Completion) -> tuple[int, int]:
    """Return how many tokens prompt and reply had: as many as there are ids, or what the engine told.

    >>> token_counts(Completion((5, 6), (7,), (0.0,), "4", "stop", 0))
    (2, 1)
    >>> token_counts(Completion((), (), (), "4", "stop", 0, prompt_count=30, token_count=2))
    (30, 2)
    """
    told = completion.prompt_count or 0, completion.token_count or 0
    return len(completion.prompt_tokens) or told[0], len(completion.tokens) or told[1]


def _a_third_of_the_characters(messages: tuple[Message, ...]) -> int:
    return -(-sum(len(message.content) for message in messages) // 3)
