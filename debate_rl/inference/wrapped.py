"""A policy around another one."""

from __future__ import annotations

from typing import Any, ClassVar

from debate.types import Completion, Policy, SampleRequest


class WrappedPolicy:
    """The policy ``inner``, of which a subclass changes some; all that is not there is the inner one's."""

    version: int
    """The inner policy's."""
    unwrapped: ClassVar[bool] = False
    """Whether ``engine_of`` looks inside."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def update(self, weights: object, version: int) -> None:
        """Give the inner policy its weights."""
        await self.inner.update(weights, version)

    async def sample(self, request: SampleRequest) -> Completion:
        """Have the inner policy answer a request."""
        return await self.inner.sample(request)


class SeatedPolicy(WrappedPolicy):
    """The policy ``inner``, and ``remote``, who answers the requests of remote seats and never learns.

    Weights and all else are the inner policy's.
    """

    unwrapped = True

    def __init__(self, inner: Policy, remote: Policy) -> None:
        super().__init__(inner)
        self.remote = remote

    async def sample(self, request: SampleRequest) -> Completion:
        """Have a request answered by whom its seat names."""
        return await (self.remote if request.seat == "remote" else self.inner).sample(request)


def engine_of(policy: Policy) -> Policy:
    """Return what generates the replies of a policy: the innermost one."""
    while isinstance(policy, WrappedPolicy) and policy.unwrapped:
        policy = policy.inner
    return policy
