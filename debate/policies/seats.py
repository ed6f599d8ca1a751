"""A policy with another model beside it, which speaks at the seats that are "remote"."""

from __future__ import annotations

from typing import Any

from debate.types import Completion, Policy, SampleRequest


class SeatedPolicy:
    """The policy ``inner``, and ``remote``, who answers the requests of remote seats and never learns.

    Weights and all else are the inner policy's.
    """

    version: int
    """The inner policy's, like all that is not here."""

    def __init__(self, inner: Policy, remote: Policy) -> None:
        self.inner, self.remote = inner, remote

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def update(self, weights: object, version: int) -> None:
        """Give the inner policy its weights."""
        await self.inner.update(weights, version)

    async def sample(self, request: SampleRequest) -> Completion:
        """Have a request answered by whom its seat names."""
        return await (self.remote if request.seat == "remote" else self.inner).sample(request)
