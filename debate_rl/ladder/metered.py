"""The seconds that a rung takes of the engine, whenever its replies were sampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from debate import Completion, Policy, SampleRequest
from debate_rl.evaluation.kept_replies import KeptReplies, key_of
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


class Metered:
    """A policy whose replies are on a meter."""

    def __init__(self, policy: KeptReplies, meter: Meter) -> None:
        self.version = policy.version
        self.policy, self._meter = policy, meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request, and count its seconds."""
        reply = await self.policy.sample(request)
        self._meter.seconds += self.policy.seconds[key_of(request)]
        return reply

    async def update(self, weights: object, version: int) -> None:
        """Hand new weights on."""
        await self.policy.update(weights, version)
        self.version = version


def unmetered(policy: Policy) -> Policy:
    """Return the policy off its meter: for what others wrote anyway, and costs a rung nothing."""
    return policy.policy if isinstance(policy, Metered) else policy
