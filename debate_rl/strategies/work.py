"""A plan for solving problems, the requests of a strategy for one problem within a budget, and the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

from debate import Completion, DebateConfig, Policy, Problem, SampleRequest, Turn
from debate.concurrency import together
from debate.config import CompressionConfig, SummaryConfig
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking, token_counts
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.seating import Seating, seat_debate
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.asking import requests_at_once
from debate_rl.evaluation.grading import IN_A_BOX, answer_of
from debate_rl.inference.wrapped import engine_of
from debate_rl.strategies.voting import Share, Tally
from envs import Environment
from envs.types import Mode

FOR_SOLUTIONS = 0.75
"""Maximum fraction of the time for sampling solutions if comparisons follow."""
End: TypeAlias = Literal["done", "settled", "tokens", "seconds"]
"""Why a strategy ended: all requests were made ("done"), further replies could not change the answer
("settled"), or the budget of tokens or seconds was spent."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The policy that compares solutions, and the protocol whose ballots it uses."""

    policy: Policy
    protocol: DebateConfig


AT_ONCE = 128
"""Default number of replies requested at once from an engine."""


@dataclass(frozen=True, slots=True)
class SolvePlan:
    """How problems are solved.

    ``protocol``: how solutions are requested and debates are held.
    ``samples``: maximum number of solutions of a problem.
    ``tokens``: maximum number of generated tokens for a problem, including the judge's. None means no limit.
    ``seconds``: maximum wall time for all problems together. None means no limit.
    ``environment``, ``mode``: how answers are extracted and compared.
    ``requests``: number of replies sampled together. It determines the number of open problems unless
    ``at_once`` is given.
    ``summarizer``: returns the policy that writes the summaries of debates. None: the policy itself.
    """

    strategy: str
    protocol: DebateConfig
    environment: Environment
    samples: int = 16
    tokens: int | None = None
    seconds: float | None = None
    seed: int = 0
    mode: Mode = IN_A_BOX
    requests: int = AT_ONCE
    at_once: int | None = None
    summarizer: Callable[[], Policy | None] | None = None

    @classmethod
    def of(cls, config: Config, strategy: str, environment: Environment, **budget: Any) -> SolvePlan:
        """Return the plan of a configuration. ``budget``: further fields. The summarizer opens once."""
        own = {"mode": config.grader.final, "requests": requests_at_once(config) or AT_ONCE}
        own |= {"summarizer": cache(partial(open_summarizer, config))}
        return cls(strategy, config.debate, environment, **own | budget)


class Solution(NamedTuple):
    """One solution: its turn, its text, and its answer, or None without an answer."""

    turn: Turn
    text: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a strategy: the answer, the solution with this answer, and the cost.

    ``answer``: None if no solution has an answer. ``shares``: largest first. ``samples``: the number of
    solutions received. ``comparisons``: the number of ballots and selections received;
    ``unread`` of these could not be parsed. ``tokens_read`` counts prompts and ``tokens_generated`` replies,
    without the ``cut_off`` replies cut by the time limit. ``turn``: the turn of the solution. ``turns``: all
    solutions received, of all rounds.
    """

    answer: str | None
    shares: tuple[Share, ...]
    solution: str
    samples: int
    tokens_read: int
    tokens_generated: int
    seconds: float
    ended: End
    comparisons: int = 0
    unread: int = 0
    cut_off: int = 0
    turn: Turn | None = None
    turns: tuple[Turn, ...] = ()


@dataclass(slots=True)
class Work:
    """The state of a strategy on one problem: the plan, the policies, the replies, and the cost so far.

    ``seconds``: the limit of wall time, None for no limit. ``judge``: None means that the policy itself
    is the judge. ``name``: the problem's name in requests, unique among the problems open at a time.
    """

    plan: SolvePlan
    problem: Problem
    policy: Policy
    seed: int = 0
    judge: Judge | None = None
    seconds: float | None = None
    name: str = "000000:"
    begun: float = field(default_factory=time.perf_counter, init=False)
    read: int = field(default=0, init=False)
    generated: int = field(default=0, init=False)
    solutions: list[Solution] = field(default_factory=list[Solution], init=False)
    comparisons: int = field(default=0, init=False)
    unread: int = field(default=0, init=False)
    cut_off: int = field(default=0, init=False)
    spent: End | None = field(default=None, init=False)
    stage: int = field(default=0, init=False)
    """The round of the newest requests: 0 for solutions, and a new number for each stage of comparisons."""
    _opening: tuple[Seating, Prompt, SampleRequest, bool] | None = field(default=None, init=False)

    @property
    def protocol(self) -> DebateConfig:
        """The debate protocol for the problem's level."""
        return self.plan.protocol.of_level(self.problem.level)

    @property
    def judged_by(self) -> Judge:
        """The judge. No programs run in its replies."""
        return self.judge or Judge(engine_of(self.policy), self.plan.protocol)

    @property
    def comparison_tokens(self) -> int:
        """Maximum number of tokens in one reply of the judge, including thinking."""
        return longest_reply(self.judged_by.protocol)

    def need(self, replies: int, what: str, *, more: int = 0) -> None:
        """Raise ValueError if the tokens are fewer than ``replies`` full-length replies plus ``more``."""
        protocol = self.plan.protocol
        least = replies * longest_reply(protocol) + more
        if self.plan.tokens is not None and self.plan.tokens < least:
            of = "debate.max_tokens" + (" and thinking_tokens" if protocol.thinking_tokens else "")
            raise ValueError(
                f"--tokens {self.plan.tokens}: is too small for {what}, which may need {least:,} tokens "
                f"({of}); raise --tokens, or lower these keys"
            )

    def elapsed(self) -> float:
        """Return the seconds since the strategy started."""
        return time.perf_counter() - self.begun

    def room(self, each: int, keep: int = 0) -> float:
        """Return how many replies of at most ``each`` tokens fit the budget minus ``keep`` tokens."""
        most = self.plan.tokens
        return inf if most is None else max(0, (most - self.generated - keep) // each)

    async def replies(
        self, policy: Policy, requests: Sequence[SampleRequest], *, keep: int = 0, share: float = 1.0
    ) -> list[Completion | None]:
        """Send requests of equal maximum length together. Return their replies; None if the budget is spent.

        ``keep`` tokens are reserved, and only this ``share`` of the seconds may be used. If the budget is too
        small for all requests at full length, only the first ones are sent.
        """
        got: list[Completion | None] = [None] * len(requests)
        if not requests:
            return got
        each = requests[0].max_tokens + requests[0].thinking_tokens
        fitting = int(min(len(requests), self.room(each, keep)))
        if not fitting:
            self.spent = "tokens"

        async def one(index: int) -> None:
            got[index] = await policy.sample(requests[index])

        left = None if self.seconds is None else share * self.seconds - self.elapsed()
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
        """Request up to ``count`` more solutions by one agent alone, as the budget allows.

        The seed of a solution depends only on its index.
        """
        if self._opening is None:
            alone = self.plan.protocol.one_round(alone=True)
            seating = seat_debate(self.problem, alone, self.seed)
            prompt = agent_prompt(seating, (), 0, 0, context_budget(self.policy, alone))
            plain = turn_request(seating, prompt, TurnId(0, 0), self.seed, self.name)
            self._opening = seating, prompt, plain, opens_thinking(self.policy, plain.messages)
        seating, prompt, plain, in_thinking = self._opening
        if greedy:
            plain = replace(plain, temperature=0.0)
        first = len(self.solutions)
        requests = [
            replace(plain, seed=derive_seed(self.seed, "solution", number), turn=TurnId(number, 0))
            for number in range(first, first + count)
        ]
        for reply in await self.replies(self.policy, requests, keep=keep, share=share):
            if reply is not None:
                self.take(read_turn(seating, plain, prompt, reply, in_thinking=in_thinking))

    async def solve_all(self) -> Tally:
        """Request all solutions, reserving budget for comparisons, and return their tally."""
        while self.spent is None and (left := self.plan.samples - len(self.solutions)):
            await self.solve(left, keep=self.comparison_tokens, share=FOR_SOLUTIONS)
        if len(self.solutions) == self.plan.samples:
            self.spent = None
        return self.counted()

    def take(self, turn: Turn) -> None:
        """Add the solution of a turn."""
        span = turn.parsed.solution
        text = "" if span is None else span.of(turn.completion.text).strip()
        answer = answer_of(self.plan.environment, self.problem, turn, self.plan.mode)
        given = (answer or "").strip() or None  # an empty box is no answer
        self.solutions.append(Solution(turn, text, given))

    def tally(self) -> Tally:
        """Return an empty tally."""
        return Tally(self.problem, self.plan.environment, self.seed)

    def counted(self) -> Tally:
        """Return the tally of all solutions with equal weights."""
        tally = self.tally()
        for index, solution in enumerate(self.solutions):
            tally.add(index, solution)
        return tally

    def answered(
        self, tally: Tally, chosen: int | None, ended: End, *, turns: Sequence[Turn] | None = None
    ) -> Answered:
        """Return the result with the answer of solution ``chosen``, an index or None.

        ``turns``: all solutions received; None: those in ``solutions``.
        """
        one = None if chosen is None else self.solutions[chosen]
        return Answered(
            answer=None if one is None else one.answer,
            shares=tally.shares(),
            solution="" if one is None else one.text,
            samples=len(self.solutions),
            tokens_read=self.read,
            tokens_generated=self.generated,
            seconds=self.elapsed(),
            ended=self.spent or ended,
            turn=None if one is None else one.turn,
            turns=tuple(solution.turn for solution in self.solutions) if turns is None else tuple(turns),
            **{name: getattr(self, name) for name in ("comparisons", "unread", "cut_off")},
        )


def spent_on(reply: Completion) -> tuple[int, int]:
    """Return the tokens read and generated for a reply. Its forced tokens count as read."""
    prompt, tokens = token_counts(reply)
    return prompt + len(reply.forced), tokens - len(reply.forced)


def of_one_round(protocol: DebateConfig, /, **changes: object) -> DebateConfig:
    """Return a protocol reduced to a single round of plain solutions, with further ``changes``."""
    plain: dict[str, object] = {
        "num_rounds": 1,
        "min_rounds": None,
        "by_level": (),
        "seats": (),
        "conversation": False,
        "tools": "none",
        "history_rounds": 1,
        "summary": SummaryConfig(),
        "compress": CompressionConfig(),
    }
    return protocol.model_copy(update=plain | changes)


def longest_reply(protocol: DebateConfig) -> int:
    """Return the maximum number of tokens in one reply, including thinking."""
    return protocol.max_tokens + protocol.thinking_tokens
