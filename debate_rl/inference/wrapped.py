"""Policies that wrap another policy."""

from __future__ import annotations

from typing import Any, ClassVar

from debate.types import Completion, Policy, SampleRequest


class WrappedPolicy:
    """The policy ``inner``, with the methods that a subclass overrides. Everything else is passed through."""

    version: int
    """The version of the inner policy."""
    unwrapped: ClassVar[bool] = False
    """Whether ``engine_of`` unwraps this policy."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def update(self, weights: object, version: int) -> None:
        """Update the inner policy."""
        await self.inner.update(weights, version)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request by the inner policy."""
        return await self.inner.sample(request)


class SeatedPolicy(WrappedPolicy):
    """The policy ``inner``, except that the policy ``remote``, which never learns, answers remote seats."""

    unwrapped = True

    def __init__(self, inner: Policy, remote: Policy) -> None:
        super().__init__(inner)
        self.remote = remote

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request by the policy of its seat."""
        return await (self.remote if request.seat == "remote" else self.inner).sample(request)


def engine_of(policy: Policy) -> Policy:
    """Return the innermost policy, which generates the replies."""
    while isinstance(policy, WrappedPolicy) and policy.unwrapped:
        policy = policy.inner
    return policy
