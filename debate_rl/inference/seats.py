"""A policy with another model beside it, which speaks at the seats that are "remote"."""

from __future__ import annotations

from debate.types import Completion, Policy, SampleRequest
from debate_rl.inference.wrapped import WrappedPolicy


class SeatedPolicy(WrappedPolicy):
    """The policy ``inner``, and ``remote``, who answers the requests of remote seats and never learns.

    Weights and all else are the inner policy's.
    """

    def __init__(self, inner: Policy, remote: Policy) -> None:
        super().__init__(inner)
        self.remote = remote

    async def sample(self, request: SampleRequest) -> Completion:
        """Have a request answered by whom its seat names."""
        return await (self.remote if request.seat == "remote" else self.inner).sample(request)
