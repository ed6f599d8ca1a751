"""How well a policy judges, on fixed pairs of which exactly one solution is right.

After training, a policy's own debates hold few such pairs and ever harder ones, so the figure on them cannot
be compared over time. These pairs are made from a synthetic family, balanced in the position of the right
solution, and the judge sees its own earlier solution too, as in a debate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from random import Random
from typing import Any

from debate import Completion, DebateConfig, Policy, Problem, SampleRequest
from debate.concurrency import run_async, stops_released, together
from debate.hold import read_turn
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import render_entry
from debate.prompting.seating import Seating, seat_debate
from debate.prompting.shown import PublicTurn
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.statistics import Estimate, clustered_mean

LIES = 0.2
"""Share of wrong solutions that state the target as their result."""


def judge_accuracy(
    policy: Policy, family: str, problems: Sequence[Problem], *, config: DebateConfig, greedy: bool, seed: int
) -> Estimate:
    """Return the share of pairs, one for each problem, on which the right solution was preferred.

    A reply without a valid vote counts as wrong. ``greedy`` asks at temperature 0. ValueError for a debate
    in which nobody is shown two solutions of others.
    """
    check_judged(config)
    pairs = [_pair(family, problem, number, config, seed) for number, problem in enumerate(problems)]
    replies = run_async(_ask(policy, [request for _, request, _, _ in pairs], greedy=greedy))
    right = [_prefers(policy, pair, reply) for pair, reply in zip(pairs, replies, strict=True)]
    return clustered_mean(right, [problem.id for problem in problems])


def check_judged(config: DebateConfig) -> None:
    """ValueError for a protocol in which no judge is shown the work of two others."""
    if config.num_agents < 3:
        raise ValueError(
            f"debate.num_agents={config.num_agents}: a judge needs two others to compare; use 3 or more"
        )
    if config.history_rounds == 0:
        raise ValueError("debate.history_rounds=0: a judge is shown no work to compare; use 1 or more, or -1")


def _pair(
    family: str, problem: Problem, number: int, config: DebateConfig, seed: int
) -> tuple[Seating, SampleRequest, Prompt, str]:
    """Return what one judge is asked, and the label of the right solution."""
    rng = Random(derive_seed(seed, "pair", number))
    seating = seat_debate(problem, config, rng.getrandbits(62))
    judge = number % config.num_agents
    peers = [seat for seat in seating.orders[judge] if seat != judge]
    good = peers[(number // config.num_agents) % len(peers)]
    texts = [_solution(family, problem, rng, right=seat == good) for seat in range(config.num_agents)]
    texts[judge] = _solution(family, problem, rng, right=rng.random() < 0.5)
    shown = (PublicTurn(TurnId(seat, 0), seating.handles[seat], text) for seat, text in enumerate(texts))
    seen = agent_prompt(
        seating, [[render_entry(seating.texts, one) for one in shown]], judge, 1, ContextBudget(None, len)
    )
    request = SampleRequest(
        messages=seen.messages,
        temperature=seating.personas[judge].temperature,
        max_tokens=config.max_tokens,
        stop=(*config.stop, *seen.stop),
        seed=derive_seed(seed, "judge", number),
        debate=f"{number:06d}",
        turn=TurnId(judge, 1),
        thinking_tokens=config.thinking_tokens,
    )
    return seating, request, seen, seating.handles[good]


def _solution(family: str, problem: Problem, rng: Random, *, right: bool) -> str:
    """Return a solution that is right or wrong as asked for."""
    module: Any = import_module(f"envs.families.{family}")
    while True:
        tried = module.attempt(problem, rng, right=float(right), lure=0.0 if right else 0.5)
        text: str = module.write_solution(problem, tried)
        if (" right" in module.write_check(problem, text)) == right:
            break
    lies = not right and rng.random() < LIES
    return module.write_lie(problem, tried) if lies else text


async def _ask(policy: Policy, requests: Sequence[SampleRequest], *, greedy: bool) -> list[Completion]:
    asked = [replace(request, temperature=0.0) if greedy else request for request in requests]
    with stops_released():
        return await together([policy.sample(request) for request in asked])


def _prefers(policy: Policy, pair: tuple[Seating, SampleRequest, Prompt, str], reply: Completion) -> float:
    """Return 1.0 when every ballot on the right solution and another's prefers it, and there is one.

    The judge's own solution may be right too: with ``judge_own`` a vote on it says nothing of the pair.
    """
    seating, request, seen, good = pair
    in_thinking = opens_thinking(policy, request.messages)
    turn = read_turn(seating, request, seen, reply, in_thinking=in_thinking)
    of_others = [b for b in turn.parsed.ballots if turn.handle not in (b.left, b.right)]
    ballots = [b for b in of_others if good in (b.left, b.right)]
    return float(
        bool(ballots)
        and all((b.left if b.outcome == "left" else b.right) == good and b.outcome != "tie" for b in ballots)
    )
