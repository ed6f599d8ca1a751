"""The work on one problem: what is asked, what it costs, and when the budget ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from debate import Completion, Policy, SampleRequest, Turn
from debate.concurrency import together
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking, token_counts
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.seating import Seating, seat_debate
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.evaluation.grading import answer_of
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked, End, Solution

FOR_SOLUTIONS = 0.75
"""Share of the seconds that solutions may take where comparisons follow."""


def tokens_of_a_reply(asked: Asked) -> int:
    """Return the most tokens that one reply to a problem may have, thinking among them."""
    return asked.protocol.max_tokens + asked.protocol.thinking_tokens


def spent_on(reply: Completion) -> tuple[int, int]:
    """Return the tokens read and generated for a reply; what was written into it by force was read.

    That is what programs print, and what ends thinking.
    """
    prompt, tokens = token_counts(reply)
    return prompt + len(reply.forced), tokens - len(reply.forced)


class Opening(NamedTuple):
    """What every solution to a problem is asked with, and how its replies are read."""

    seating: Seating
    prompt: Prompt
    request: SampleRequest
    in_thinking: bool


def _opening(asked: Asked) -> Opening:
    alone = asked.protocol.one_round(alone=True)
    seating = seat_debate(asked.problem, alone, asked.seed)
    prompt = agent_prompt(seating, (), 0, 0, context_budget(asked.policy, alone))
    request = turn_request(seating, prompt, TurnId(0, 0), asked.seed, asked.name)
    return Opening(seating, prompt, request, opens_thinking(asked.policy, request.messages))


@dataclass(slots=True)
class Work:
    """What was asked about one problem so far, and what it cost."""

    asked: Asked
    begun: float = field(default_factory=time.perf_counter)
    read: int = 0
    generated: int = 0
    solutions: list[Solution] = field(default_factory=list[Solution])
    comparisons: int = 0
    unread: int = 0
    cut_off: int = 0
    spent: End | None = None
    stage: int = 0
    opening: Opening | None = None

    def seconds(self) -> float:
        """Return the seconds since the work began."""
        return time.perf_counter() - self.begun

    def late(self) -> bool:
        """Return whether all seconds are over."""
        return self.asked.seconds is not None and self.seconds() >= self.asked.seconds

    def room(self, each: int, keep: int = 0) -> float:
        """Return how many replies of at most ``each`` tokens the budget has left beside ``keep`` tokens."""
        most = self.asked.tokens
        return inf if most is None else max(0, (most - self.generated - keep) // each)

    async def replies(
        self, policy: Policy, requests: Sequence[SampleRequest], *, keep: int = 0, share: float = 1.0
    ) -> list[Completion | None]:
        """Return the replies to requests of one length, asked at once; None for what the budget ended.

        Of the budget ``keep`` tokens stay free, and all of its seconds but this ``share``. Where not all fit
        at their longest, the first ones are asked alone, and may leave room for more.
        """
        got: list[Completion | None] = [None] * len(requests)
        if not requests:
            return got
        fitting = int(min(len(requests), self.room(_length(requests[0]), keep)))
        if not fitting:
            self.spent = "tokens"

        async def one(index: int) -> None:
            got[index] = await policy.sample(requests[index])

        limit = self.asked.seconds
        left = None if limit is None else share * limit - self.seconds()
        if left is not None and left <= 0:
            self.spent = "seconds"
            return got
        clock = asyncio.timeout(left)
        try:
            async with clock:
                await together([one(index) for index in range(fitting)])
        except TimeoutError:
            if not clock.expired():
                raise
            self.spent = "seconds"
            self.cut_off += got[:fitting].count(None)
        for reply in got:
            if reply is not None:
                self.count(reply)
        return [reply and reply.whole() for reply in got]

    def count(self, reply: Completion) -> None:
        """Count the tokens of a reply and of its prompt."""
        read, generated = spent_on(reply)
        self.read += read
        self.generated += generated

    async def solve(self, count: int, *, greedy: bool = False, keep: int = 0, share: float = 1.0) -> None:
        """Ask for ``count`` more solutions, by one agent alone, as the budget allows.

        Each has a seed of its own, whatever was asked before.
        """
        asked = self.asked
        if self.opening is None:
            self.opening = _opening(asked)
        seating, prompt, plain, in_thinking = self.opening
        if greedy:
            plain = replace(plain, temperature=0.0)
        first = len(self.solutions)
        requests = [
            replace(plain, seed=derive_seed(asked.seed, "solution", number), turn=TurnId(number, 0))
            for number in range(first, first + count)
        ]
        for reply in await self.replies(asked.policy, requests, keep=keep, share=share):
            if reply is not None:
                self.take(read_turn(seating, plain, prompt, reply, in_thinking=in_thinking))

    async def solve_all(self, *, keep: int) -> None:
        """Ask for all solutions, where comparisons follow: in parts, as the budget allows."""
        while self.spent is None and (left := self.asked.samples - len(self.solutions)):
            await self.solve(left, keep=keep, share=FOR_SOLUTIONS)
        if len(self.solutions) == self.asked.samples:
            self.spent = None

    def take(self, turn: Turn) -> None:
        """Keep the solution of a turn."""
        asked, span = self.asked, turn.parsed.solution
        text = "" if span is None else span.of(turn.completion.text).strip()
        answer = answer_of(asked.environment, asked.problem, turn, asked.mode)
        given = (answer or "").strip() or None  # an empty box states nothing
        self.solutions.append(Solution(turn, text, given))

    def next_stage(self) -> int:
        """Return the round of the next requests: 0 is of solutions, and each stage behind has its own."""
        self.stage += 1
        return self.stage

    def answered(
        self, tally: Tally, chosen: int | None, ended: End, *, turns: Sequence[Turn] | None = None
    ) -> Answered:
        """Return the answer of a solution, by index, as the strategy's.

        ``turns``: all solutions that came, where the work did not take each of them.
        """
        one = None if chosen is None else self.solutions[chosen]
        return Answered(
            answer=None if one is None else one.answer,
            shares=tally.shares(),
            solution="" if one is None else one.text,
            samples=len(self.solutions),
            tokens_read=self.read,
            tokens_generated=self.generated,
            seconds=self.seconds(),
            ended=self.spent or ended,
            comparisons=self.comparisons,
            unread=self.unread,
            cut_off=self.cut_off,
            turn=None if one is None else one.turn,
            turns=tuple(solution.turn for solution in self.solutions) if turns is None else tuple(turns),
        )


def _length(request: SampleRequest) -> int:
    return request.max_tokens + request.thinking_tokens


def tokens_of_a_comparison(asked: Asked) -> int:
    """Return the most tokens that one reply of the judge may have, thinking among them."""
    protocol = asked.judged_by.protocol
    return protocol.max_tokens + protocol.thinking_tokens


def need(asked: Asked, replies: int, what: str, *, comparisons: int = 0, more: int = 0) -> None:
    """ValueError where the tokens are too few for so many replies at their longest and ``more``."""
    least = replies * tokens_of_a_reply(asked) + comparisons * tokens_of_a_comparison(asked) + more
    if asked.tokens is not None and asked.tokens < least:
        of = "debate.max_tokens" + (" and thinking_tokens" if asked.protocol.thinking_tokens else "")
        raise ValueError(
            f"--tokens {asked.tokens}: is too small for {what}, which may have {least:,} ({of}); raise it, "
            "or lower those"
        )
