"""What a policy may have in addition to the protocol, the defaults without it, and policies of your own.

A policy may have:

``seat()``, a context manager: a policy that batches counts the live debates by it;
``opens_thinking(messages)``: whether the prompt ends with ``<think>``;
``context_tokens`` (int | None): the most tokens of prompt and completion together;
``count_tokens(messages)``: the length of a prompt;
``hold()``, a context manager: a policy that batches samples nothing meanwhile (a program of a reply runs);
``written(text)``, ``read(tokens)`` and ``is_end(token)``: the ids of a text within a reply, the text and the
offsets of ids, and whether an id ends a reply. A policy that has them, and gives tokens, continues from the
tokens of ``SampleRequest.begun``; any other from its text;
``runs_programs`` (True): programs of a reply run as it is written (``debate_rl.inference.tools``);
``count_continuation(messages)``: how many tokens messages add after a reply. A policy that has it begins a
prompt with the ``prefix`` of a request, and can hold conversations (``debate.conversation``).
``remote`` (Policy): who answers the requests of seats that are "remote", and counts their tokens;
``freeze()``: have requests of seats that are "frozen" answered by the weights of this moment from now on,
whatever ``update`` brings. Before, and without it, these are answered as all others are;
Where it knows how many tokens there were and not which, ``Completion`` has fields for the counts.

One of your own is named in a configuration as "package.module:factory".
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
    """Return the policy's seat for one debate, or nothing to enter."""
    seat: Callable[[], AbstractContextManager[object]] = getattr(policy, "seat", nullcontext)
    return seat()


def hold_at(policy: Policy) -> AbstractContextManager[object]:
    """Return what keeps a policy that batches from sampling, or nothing to enter."""
    hold: Callable[[], AbstractContextManager[object]] = getattr(policy, "hold", nullcontext)
    return hold()


def runs_programs(policy: Policy) -> bool:
    """Return whether programs in the replies of a policy run."""
    return bool(getattr(policy, "runs_programs", False))


def speaker_at(policy: Policy, seat: Seat) -> Policy:
    """Return who speaks at a seat, as far as prompts are counted and read; ValueError if nobody does."""
    if seat != "remote":
        return policy
    remote: Policy | None = getattr(policy, "remote", None)
    if remote is None:
        raise ValueError(
            'debate.seats: "remote", but this policy has no other model; name one in the table '
            "remote.endpoint, or wrap the policy in debate_rl.inference.wrapped.SeatedPolicy"
        )
    return remote


def freeze(policy: Policy) -> None:
    """Have frozen seats answered by today's weights from now on; ValueError if a policy cannot."""
    keep: Callable[[], None] | None = getattr(policy, "freeze", None)
    if keep is None:
        raise ValueError(
            'debate.seats: "frozen", but this policy has no method freeze() that keeps the weights training '
            'began with; leave out model.policy, or name such a model as remote.endpoint and a seat "remote"'
        )
    keep()


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


def continuation_counter(policy: Policy) -> Callable[[tuple[Message, ...]], int]:
    """Return how the policy counts what messages add after a reply; ValueError if it cannot go on so."""
    count: Callable[[tuple[Message, ...]], int] | None = getattr(policy, "count_continuation", None)
    if count is None:
        raise ValueError(
            "debate.conversation = true: this policy does not go on from the tokens of a reply, as the local "
            "one and vLLM do; choose one of these as model.policy, or set debate.conversation = false"
        )
    return count


def token_counts(completion: Completion) -> tuple[int, int]:
    """Return how many tokens prompt and reply had: as many as there are ids, or what the engine reported.

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
    """Return the factory of that path; what it makes is checked against ``Policy``. ``key`` named it.

    ValueError if there is no such factory, where it does not take what it is called with, and where what
    it makes is not a policy.
    """
    factory = load_factory(path, key=key, methods=("sample", "update"))

    def make(*args: object, **settings: object) -> Policy:
        require_call(factory, f"{key}: {path!r}", *args, **settings)
        return _checked(path, key, factory(*args, **settings))

    return make


def _checked(path: str, key: str, policy: object) -> Policy:
    """Return the object as a policy, or say which part of the protocol it lacks."""
    if type(getattr(policy, "version", None)) is not int:
        raise ValueError(f"{key}: what {path!r} makes has no number 'version'; see debate.Policy")
    for name, arguments in (("sample", (None,)), ("update", (None, 0))):
        method: object = getattr(policy, name, None)
        if not inspect.iscoroutinefunction(method):
            raise ValueError(f"{key}: what {path!r} makes has no async method {name!r}; see debate.Policy")
        require_call(method, f"{key}: {f'{path}, {name}'!r}", *arguments)
    return cast(Policy, policy)
