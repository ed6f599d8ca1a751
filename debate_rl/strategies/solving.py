"""The table of strategies, and a function that solves many problems by one strategy."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil, log2
from types import MappingProxyType
from typing import Literal, TypeVar, cast

from debate import DebateConfig, Policy, Problem
from debate.concurrency import run_async, stops_released, together
from debate.hold import debate_name
from debate.hold_many import taken_seat
from debate.prompting.fitting import PromptTooLongError
from debate.prompting.shown import rounds_held
from debate.seeds import derive_seed
from debate.settings import did_you_mean
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import judge_of, policy_of, weights_named
from debate_rl.strategies.debate import (
    check_debate,
    check_revisions,
    debate_majority,
    debate_winner,
    self_correction,
)
from debate_rl.strategies.posing import pose_texts
from debate_rl.strategies.selection import (
    LONGEST,
    best_of_n,
    check_ballots,
    check_list,
    genselect,
    swiss,
)
from debate_rl.strategies.voting import check_solutions, greedy, logprob_vote, majority
from debate_rl.strategies.work import Answered, Judge, SolvePlan, Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to find an answer. ``run`` is called inside a seat of the policy.

    ``speakers``: the authors of solutions: one agent once, one agent for each of the ``samples``, or the
    ``agents`` of the protocol in all rounds. ``check`` raises ValueError, before sampling, for a protocol,
    judge or budget that does not suit the strategy. ``comparisons``: the maximum number of ballots or
    selections for k solutions, None without a judge. ``tools``: whether solutions run programs.
    """

    run: Callable[[Work], Awaitable[Answered]]
    speakers: Literal["one", "samples", "agents"]
    check: Callable[[Work], None] = check_solutions
    comparisons: Callable[[int], int] | None = None
    tools: bool = False

    @property
    def compares(self) -> bool:
        """True if a judge compares solutions."""
        return self.comparisons is not None

    def replies(self, samples: int, protocol: DebateConfig) -> int:
        """Return the maximum number of replies that the strategy requests for a problem."""
        agents = protocol.num_agents * rounds_held(protocol)
        solutions = {"one": 1, "samples": samples, "agents": agents}[self.speakers]
        return solutions + (self.comparisons(samples) if self.comparisons else 0)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "greedy": Strategy(greedy, "one"),
        "majority": Strategy(majority, "samples"),
        "logprob_vote": Strategy(logprob_vote, "samples"),
        "best_of_n": Strategy(best_of_n, "samples", check_ballots, lambda k: k),
        "genselect": Strategy(genselect, "samples", check_list, lambda k: ceil(k / (LONGEST - 1))),
        "swiss": Strategy(swiss, "samples", check_ballots, lambda k: k // 2 * ceil(log2(max(k, 2)))),
        "self_correction": Strategy(self_correction, "agents", check_revisions),
        "debate_winner": Strategy(debate_winner, "agents", check_debate),
        "debate_majority": Strategy(debate_majority, "agents", check_debate),
        "tir": Strategy(greedy, "one", tools=True),
        "tir_majority": Strategy(majority, "samples", tools=True),
    }
)
"""The strategies; docs/solve.md describes them. Tool-integrated reasoning (tir): ToRA [arXiv 2309.17452]."""


def entry_named(name: str, table: Mapping[str, T], option: str) -> T:
    """Return the table entry of this name. ValueError for an unknown name suggests the nearest name."""
    if name not in table:
        hint = did_you_mean(name, table, f"valid: {', '.join(table)}")
        raise ValueError(f"{option} {name}: is unknown; {hint}")
    return table[name]


def strategy_named(name: str) -> Strategy:
    """Return the strategy of this name. ValueError for an unknown name suggests the nearest name."""
    return entry_named(name, STRATEGIES, "--strategy")


def with_tools(config: Config, tools: Literal["python", "none"]) -> Config:
    """Return the configuration with ``debate.tools`` set to ``tools``."""
    return config.model_copy(update={"debate": config.debate.model_copy(update={"tools": tools})})


def lanes(plan: SolvePlan, problems: int) -> int:
    """Return how many problems are open at a time.

    With a time limit, few problems are open: all their solutions together fill the engine, and time that they
    do not use goes to later problems. Without a limit, one reply per open problem fills the engine, because
    later waves of a problem are small.

    >>> from dataclasses import replace
    >>> from envs import load_environment
    >>> plan = SolvePlan("majority", DebateConfig(), load_environment("words"), samples=16, requests=144)
    >>> lanes(plan, 500), lanes(replace(plan, seconds=60.0), 500), lanes(plan, 3)
    (144, 9, 3)
    """
    samples = plan.samples if plan.seconds is not None else 1
    speak = {"one": 1, "samples": samples, "agents": plan.protocol.num_agents}
    each = speak[strategy_named(plan.strategy).speakers]
    return max(1, min(problems, plan.at_once or plan.requests // each))


def check_plan(plan: SolvePlan, problems: Sequence[Problem], judge: DebateConfig | None = None) -> None:
    """Raise ValueError, before sampling, if the strategy cannot work with the protocol, judge or budget.

    Each level of problems may have its own protocol. ``judge``: the protocol of a separate judge model.
    """
    if plan.samples < 1:
        raise ValueError(f"--samples {plan.samples}: must be at least 1")
    nobody = cast(Policy, None)
    judged = None if judge is None else Judge(nobody, judge)
    for problem in {problem.level: problem for problem in problems}.values():
        strategy_named(plan.strategy).check(Work(plan, problem, nobody, judge=judged))


@dataclass(frozen=True, slots=True)
class Refused:
    """A problem whose prompt does not fit the context, and the error message."""

    reason: str


@dataclass(slots=True)
class Clock:
    """Shares the remaining seconds among the remaining problems. At most ``lanes`` are open."""

    seconds: float | None
    lanes: int
    left: int
    begun: float

    def take(self, now: float) -> float | None:
        """Return the time limit of the next problem in seconds, or None for no limit.

        >>> clock = Clock(100.0, lanes=2, left=5, begun=0.0)  # three problems for one of the lanes
        >>> clock.take(0.0), clock.take(0.0), clock.take(10.0), clock.left
        (33.333333333333336, 50.0, 45.0, 2)
        """
        turns = ceil(self.left / self.lanes)
        self.left -= 1
        return None if self.seconds is None else max(0.0, self.seconds - (now - self.begun)) / turns


def solve_all(
    problems: Sequence[Problem],
    plan: SolvePlan,
    policy: Policy,
    *,
    judge: Judge | None = None,
    on_answer: Callable[[int, Answered | Refused], None] = lambda *_: None,
) -> list[Answered | Refused]:
    """Return the strategy's answer to each problem, in the order of the problems.

    Without a time limit, the answers depend only on seeds. A problem whose prompt does not fit the context is
    refused, and the others are answered. ``judge``: a separate policy that compares solutions. ``on_answer``
    receives the index and the result of each problem when the problem ends.
    """
    check_plan(plan, problems, judge and judge.protocol)
    return ask_all(
        problems, plan, policy, strategy_named(plan.strategy).run, judge=judge, on_answer=on_answer
    )


def ask_all(
    problems: Sequence[Problem],
    plan: SolvePlan,
    policy: Policy,
    run: Callable[[Work], Awaitable[T]],
    *,
    judge: Judge | None = None,
    on_answer: Callable[[int, T | Refused], None] = lambda *_: None,
) -> list[T | Refused]:
    """Return the result of ``run`` on each problem. Several problems are open at a time, as in ``solve_all``.

    The seed of a problem depends only on its id.
    """
    if not problems:
        return []
    found: dict[int, T | Refused] = {}
    count = lanes(plan, len(problems))
    clock = Clock(plan.seconds, count, len(problems), time.perf_counter())
    waiting = iter(enumerate(problems))

    async def lane(seat: ExitStack) -> None:
        with seat:
            for number, problem in waiting:
                seconds = clock.take(time.perf_counter())
                seed, name = derive_seed(plan.seed, "solve", problem.id), debate_name(number, problem.id)
                try:
                    found[number] = await run(Work(plan, problem, policy, seed, judge, seconds, name))
                except PromptTooLongError as error:
                    found[number] = Refused(str(error))
                on_answer(number, found[number])

    async def all_lanes() -> None:
        with stops_released(), ExitStack() as seats:  # all seats are open before the first request
            taken = [seats.enter_context(taken_seat(policy)) for _ in range(count)]
            await together([lane(seat) for seat in taken])

    run_async(all_lanes())
    return [found[number] for number in range(len(problems))]


def solve(
    what: str,
    problems: str | Sequence[str],
    *,
    strategy: str = "majority",
    samples: int = 16,
    tokens: int | None = None,
    seconds: float | None = None,
    judge: str | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
) -> list[Answered]:
    """Return the answer of a run's or recipe's model to each problem, as ``debate solve`` does.

    ``overrides``: "key=value" texts. ValueError for invalid input or a prompt that does not fit the context.
    """
    run, config = open_run_or_recipe(what, overrides)
    config = with_tools(config, "python") if strategy_named(strategy).tools else config
    posed = pose_texts([problems] if isinstance(problems, str) else list(problems), config)
    budget = {"samples": samples, "tokens": tokens, "seconds": seconds, "seed": seed}
    plan = SolvePlan.of(config, strategy, posed.environment, **budget)
    its = None if judge is None else judge_of(judge)
    check_plan(plan, posed.problems, its and its[0].debate)
    with ExitStack() as stack:
        policy = stack.enter_context(policy_of(config, weights_named(run, "newest", what))).open()
        compares = its and Judge(stack.enter_context(policy_of(*its)).open(), its[0].debate)
        found = solve_all(posed.problems, plan, policy, judge=compares)
    return [answered_of(one, ValueError) for one in found]


def answered_of(found: T | Refused, error: type[ValueError]) -> T:
    """Return the answer, or raise ``error`` for a problem that was refused."""
    if isinstance(found, Refused):
        raise error(found.reason)
    return found
