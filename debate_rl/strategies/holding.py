"""A debate as a strategy holds it: within the seat of its problem, its tokens counted, ended by the clock."""

from __future__ import annotations

import asyncio
from typing import Any

from debate import Completion, Debate, Policy, SampleRequest, parse_turn
from debate.hold import debate_in_seat
from debate.prompting.shown import holds_solutions, rounds_held
from debate.types import Turn, TurnId
from debate_rl.evaluation.agreement import agreement
from debate_rl.strategies.types import Asked
from debate_rl.strategies.work import Work, need


class Counted:
    """A policy that counts what it says for a problem's work, and keeps the solutions that came."""

    def __init__(self, policy: Policy, work: Work) -> None:
        self.version = policy.version
        self.turns: dict[TurnId, Turn] = {}
        self._policy, self._work = policy, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request, and count it."""
        reply = (await self._policy.sample(request)).whole()
        self._work.count(reply)
        if request.turn.agent >= 0:
            parsed = parse_turn(reply.text, handles=(), own=None, due=False)
            self.turns[request.turn] = Turn(request.turn, "", (), reply, parsed)
        return reply

    async def update(self, weights: object, version: int) -> None:
        """Hand new weights on."""
        await self._policy.update(weights, version)
        self.version = version


def need_debate(asked: Asked) -> None:
    """ValueError where the budget of tokens is too small for the debate's turns at their longest."""
    config = asked.protocol.of_level(asked.problem.level)
    need(asked, config.num_agents * rounds_held(config), "one debate")


async def held(work: Work) -> Debate | None:
    """Return the debate on a problem; None where the clock ended it, and then the work has its solutions."""
    asked = work.asked
    policy = Counted(asked.policy, work)
    agreed = agreement(asked.environment, asked.mode)
    clock = asyncio.timeout(asked.seconds)
    try:
        async with clock:
            debate = await debate_in_seat(
                asked.problem, policy, asked.protocol, asked.seed, asked.name, policy, agreed
            )
    except TimeoutError:
        if not clock.expired():
            raise
        work.spent = "seconds"
        config = asked.protocol.of_level(asked.problem.level)
        newest: dict[int, Turn] = {}
        for id, turn in sorted(policy.turns.items(), key=lambda item: item[0].round):
            if holds_solutions(config, id.round):
                newest[id.agent] = turn
        for turn in newest.values():
            work.take(turn)
        return None
    return debate
