"""Optional methods of a policy, what replaces those it lacks, and policies of your own.

A policy may have:

``seat()``, a context manager: a batching policy uses it to count the live debates.

``opens_thinking(messages)``: whether the prompt ends with ``<think>``.

``context_tokens`` (int | None): the maximum tokens of prompt and completion together.

``count_tokens(messages)``: the number of tokens of a prompt.

``hold()``, a context manager: within it a batching policy samples nothing, because a program of a reply is
running.

``written(text)``, ``read(tokens)`` and ``is_end(token)``: the token ids of a text within a reply, the text
and the offsets of token ids, and whether a token id ends a reply. A policy that has these methods, and
returns tokens, continues from the tokens of ``SampleRequest.begun``; any other policy continues from its
text.

``runs_programs`` (True): programs of a reply run while it is generated (``debate_rl.inference.tools``).

``count_continuation(messages)``: the number of tokens that messages add after a reply. A policy with this
method starts a prompt with the ``prefix`` of a request, and can hold conversations (``debate.conversation``).

``remote`` (Policy): answers the requests of "remote" seats, and counts their tokens.

``freeze()``: from this call on, the weights of that moment answer the requests of "frozen" seats, whatever
``update`` loads later. Before that call, or without this method, these requests are answered like all others.

If a policy knows only the numbers of tokens and not the ids, ``Completion`` has fields for the counts.

To use your own policy, name it in a configuration as "package.module:factory".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

from debate.config import Seat
from debate.settings import load_factory, require_call
from debate.types import Completion, Message, Policy

KEY = "model.policy"


def seat_at(policy: Policy) -> AbstractContextManager[object]:
    """Return the policy's seat for one debate, or an empty context manager."""
    seat: Callable[[], AbstractContextManager[object]] = getattr(policy, "seat", nullcontext)
    return seat()


def hold_at(policy: Policy) -> AbstractContextManager[object]:
    """Return the context manager that stops a batching policy from sampling, or an empty one."""
    hold: Callable[[], AbstractContextManager[object]] = getattr(policy, "hold", nullcontext)
    return hold()


def runs_programs(policy: Policy) -> bool:
    """Return whether the policy runs the programs in its replies."""
    return bool(getattr(policy, "runs_programs", False))


def speaker_at(policy: Policy, seat: Seat) -> Policy:
    """Return the policy that generates replies at a seat. ValueError if a "remote" seat has no policy.

    Use it to count and read prompts; requests go to ``policy`` itself.
    """
    if seat != "remote":
        return policy
    remote: Policy | None = getattr(policy, "remote", None)
    if remote is None:
        raise ValueError(
            'debate.seats: "remote", but this policy has no second model; name one as remote.endpoint, '
            "or wrap the policy in debate_rl.inference.wrapped.SeatedPolicy"
        )
    return remote


def freeze(policy: Policy) -> None:
    """From now on, answer frozen seats with the current weights. ValueError if the policy cannot."""
    keep: Callable[[], None] | None = getattr(policy, "freeze", None)
    if keep is None:
        raise ValueError(
            'debate.seats: "frozen", but this policy has no method freeze() to keep the initial weights; '
            "leave out model.policy, or name a model with these weights as remote.endpoint and use a seat "
            '"remote"'
        )
    keep()


def opens_thinking(policy: Policy, messages: Sequence[Message]) -> bool:
    """Return whether a reply to these messages begins within a think block.

    If such a reply is cut off before ``</think>``, all of it is thinking and stays private.
    """
    opens: Callable[[Sequence[Message]], bool] | None = getattr(policy, "opens_thinking", None)
    return opens is not None and opens(messages)


def context_limit(policy: Policy) -> int | None:
    """Return the maximum tokens of prompt and completion together, or None for no limit."""
    limit: int | None = getattr(policy, "context_tokens", None)
    return limit


def token_counter(policy: Policy) -> Callable[[tuple[Message, ...]], int]:
    """Return the policy's function that counts a prompt's tokens.

    The default estimates one token per three characters, rounded up.
    """
    count: Callable[[tuple[Message, ...]], int] = getattr(policy, "count_tokens", _a_third_of_the_characters)
    return count


def continuation_counter(policy: Policy) -> Callable[[tuple[Message, ...]], int]:
    """Return the policy's function that counts the tokens that messages add after a reply.

    ValueError if the policy has none.
    """
    count: Callable[[tuple[Message, ...]], int] | None = getattr(policy, "count_continuation", None)
    if count is None:
        raise ValueError(
            "debate.conversation = true: this policy cannot continue from the tokens of a reply, as the "
            "local one and vLLM can; choose one of these as model.policy, or set debate.conversation = false"
        )
    return count


def token_counts(completion: Completion) -> tuple[int, int]:
    """Return the token counts of the prompt and of the reply, from the ids or as the engine reported.

    >>> token_counts(Completion((5, 6), (7,), (0.0,), "4", "stop", 0))
    (2, 1)
    >>> token_counts(Completion((), (), (), "4", "stop", 0, prompt_count=30, token_count=2))
    (30, 2)
    """
    prompt = len(completion.prompt_tokens) or completion.prompt_count or 0
    return prompt, len(completion.tokens) or completion.token_count or 0


def _a_third_of_the_characters(messages: tuple[Message, ...]) -> int:
    return -(-sum(len(message.content) for message in messages) // 3)


def own_policy(path: str, key: str = KEY) -> Callable[..., Policy]:
    """Return the policy factory at a path. Its result is checked against ``Policy``.

    ``key`` is the configuration key that contains the path. ValueError if there is no such factory, if it
    does not accept its arguments, or if its result is not a policy.
    """
    factory = load_factory(path, key=key, methods=("sample", "update"))

    def make(*args: object, **settings: object) -> Policy:
        require_call(factory, f"{key}: {path!r}", *args, **settings)
        return _checked(path, key, factory(*args, **settings))

    return make


def _checked(path: str, key: str, policy: object) -> Policy:
    """Return the object as a policy. ValueError names the part of ``debate.Policy`` that it lacks."""
    if type(getattr(policy, "version", None)) is not int:
        raise ValueError(f"{key}: the policy of {path!r} has no integer 'version'; see debate.Policy")
    for name, arguments in (("sample", (None,)), ("update", (None, 0))):
        method: object = getattr(policy, name, None)
        if not inspect.iscoroutinefunction(method):
            raise ValueError(f"{key}: the policy of {path!r} has no async method {name!r}; see debate.Policy")
        require_call(method, f"{key}: {f'{path}, {name}'!r}", *arguments)
    return cast(Policy, policy)
