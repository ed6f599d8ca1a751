"""The seconds that a rung takes of the engine, whenever its replies were sampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from debate import Completion, Policy, SampleRequest
from debate_rl.evaluation.kept_replies import KeptReplies, key_of
from debate_rl.inference.wrapped import WrappedPolicy
from debate_rl.strategies.solving import SolvePlan


@dataclass(slots=True)
class Meter:
    """Adds up what the replies of several policies took of the engine; each keeps its replies."""

    seconds: float = 0.0

    def on_summaries(self, plan: SolvePlan) -> SolvePlan:
        """Return the plan with its summariser on the meter, if it has one."""
        opens = plan.summarizer
        if opens is None:
            return plan

        def opened() -> Policy | None:
            policy = opens()
            return None if policy is None else Metered(cast(KeptReplies, policy), self)

        return replace(plan, summarizer=opened)


class Metered(WrappedPolicy):
    """A policy whose replies are on a meter."""

    def __init__(self, policy: KeptReplies, meter: Meter) -> None:
        super().__init__(policy)
        self._replies, self._meter = policy, meter

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request, and count its seconds."""
        reply = await self.inner.sample(request)
        self._meter.seconds += self._replies.seconds[key_of(request)]
        return reply


def unmetered(policy: Policy) -> Policy:
    """Return the policy off its meter: for what others wrote anyway, and costs a rung nothing."""
    return policy.inner if isinstance(policy, Metered) else policy
