"""A debate as a strategy holds it: within the seat of its problem, its tokens counted, ended by the clock."""

from __future__ import annotations

import asyncio

from debate import Completion, Debate, DebateConfig, Message, Policy, SampleRequest
from debate.compression import TRIES
from debate.hold import debate_in_seat
from debate.prompting.shown import holds_solutions, rounds_held
from debate.types import Summary, Turn
from debate_rl.evaluation.agreement import agreement
from debate_rl.evaluation.play import summarizer_of
from debate_rl.inference.wrapped import WrappedPolicy
from debate_rl.strategies.types import Asked
from debate_rl.strategies.work import Work, need


class Counted(WrappedPolicy):
    """A policy that counts what it says for a problem's work."""

    def __init__(self, policy: Policy, work: Work) -> None:
        super().__init__(policy)
        self._work = work

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request, and count it."""
        reply = (await self.inner.sample(request)).whole()
        self._work.count(reply)
        return reply


def need_debate(asked: Asked) -> None:
    """ValueError where the budget of tokens is too small for the debate's turns at their longest."""
    config = asked.protocol.of_level(asked.problem.level)
    need(asked, config.num_agents * rounds_held(config), "one debate", more=_beside_turns(config))


def _beside_turns(config: DebateConfig) -> int:
    """Return the most tokens of the summaries of a debate and of its shortened solutions."""
    behind = rounds_held(config) - 1
    summaries = config.summary.max_tokens + config.summary_thinking if config.summary.enabled else 0
    if config.compress.over is None:
        return behind * summaries
    shortened = TRIES * (config.compress.max_tokens + config.compress_thinking)
    return behind * (summaries + config.num_agents * shortened)


async def held(work: Work) -> Debate | None:
    """Return the debate on a problem; None where the clock ended it, and then the work has its solutions."""
    asked = work.asked
    policy, turns = Counted(asked.policy, work), list[Turn]()

    def heard(said: Turn | Summary, _: tuple[Message, ...]) -> None:
        if isinstance(said, Turn):
            turns.append(said)

    summarizer = summarizer_of(asked.protocol, asked.summarizer)
    beside = policy if summarizer is None else Counted(summarizer, work)
    agreed = agreement(asked.environment, asked.mode)
    clock = asyncio.timeout(asked.seconds)
    try:
        async with clock:
            debate = await debate_in_seat(
                asked.problem, policy, asked.protocol, asked.seed, asked.name, beside, agreed, heard
            )
    except TimeoutError:
        if not clock.expired():
            raise
        work.spent = "seconds"
        config = asked.protocol.of_level(asked.problem.level)
        solved = [turn for turn in turns if holds_solutions(config, turn.id.round)]
        newest = {turn.id.agent: turn for turn in sorted(solved, key=lambda turn: turn.id.round)}
        for turn in newest.values():
            work.take(turn)
        return None
    return debate


def solution_turns(debate: Debate) -> list[Turn]:
    """Return the turns of a debate that hold a solution, of all its rounds."""
    return [turn for turn in debate.turns if holds_solutions(debate.protocol, turn.id.round)]
