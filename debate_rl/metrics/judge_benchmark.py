"""How well a policy judges, on fixed pairs of which exactly one solution is right.

After training, a policy's own debates hold few such pairs and ever harder ones, so the figure on them cannot
be compared over time. These pairs are made from a synthetic family, balanced in the position of the right
solution, and the judge sees its own earlier solution too, as in a debate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from debate import Completion, DebateConfig, Policy, Problem, SampleRequest
from debate.concurrency import run_async, stops_released, together
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import render_entry
from debate.prompting.seating import Seating, seat_debate
from debate.prompting.shown import PublicTurn, asks_pairs
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.statistics import Estimate, clustered_mean
from envs.families import FAMILIES

Preferred: TypeAlias = Literal["right", "wrong", "tie", "none"]
"""Which side a judge preferred; "none": no valid vote."""
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
    requests = [replace(pair.request, temperature=0.0) if greedy else pair.request for pair in pairs]
    replies = run_async(sampled(policy, requests))
    read = [preferred_of(policy, pair, reply) for pair, reply in zip(pairs, replies, strict=True)]
    return clustered_mean([float(one == "right") for one in read], [problem.id for problem in problems])


def check_judged(config: DebateConfig) -> None:
    """ValueError for a protocol in which no judge is shown the work of two others."""
    if config.num_agents < 3:
        raise ValueError(
            f"debate.num_agents={config.num_agents}: a judge needs two others to compare; use 3 or more"
        )
    if config.history_rounds == 0:
        raise ValueError("debate.history_rounds=0: a judge is shown no work to compare; use 1 or more, or -1")


class SeatedPair(NamedTuple):
    """A pair to judge: the prompt that shows it, its request, and the handle of the right solution."""

    seating: Seating
    prompt: Prompt
    request: SampleRequest
    right: str


def _pair(family: str, problem: Problem, number: int, config: DebateConfig, seed: int) -> SeatedPair:
    rng = Random(derive_seed(seed, "pair", number))
    seating = seat_debate(problem, config, rng.getrandbits(62))
    judge = number % config.num_agents
    peers = peers_of(seating, judge)
    right = peers[(number // config.num_agents) % len(peers)]
    texts = [
        family_solution(family, problem, rng, right=agent == right) for agent in range(config.num_agents)
    ]
    texts[judge] = family_solution(family, problem, rng, right=rng.random() < 0.5)
    pair = seated_pair(seating, texts, judge, right, ContextBudget(None, len), name=f"{number:06d}")
    request = replace(pair.request, seed=derive_seed(seed, "judge", number))
    return pair._replace(request=request)


def peers_of(seating: Seating, judge: int) -> list[int]:
    """Return the other agents in the order in which the judge is shown them."""
    return [agent for agent in seating.orders[judge] if agent != judge]


def seated_pair(
    seating: Seating, texts: Sequence[str], judge: int, right: int, budget: ContextBudget, *, name: str
) -> SeatedPair:
    """Return the judge's turn in round 1 behind one solution of each agent (N,), of which ``right`` has the
    right one.
    """
    turns = [PublicTurn(TurnId(agent, 0), seating.handles[agent], text) for agent, text in enumerate(texts)]
    past = [[render_entry(seating.texts, turn) for turn in turns]]
    other = next(agent for agent in peers_of(seating, judge) if agent != right)
    pair = (right, other) if asks_pairs(seating.config, 1) else None
    prompt = agent_prompt(seating, past, judge, 1, budget, pair=pair)
    request = replace(turn_request(seating, prompt, TurnId(judge, 1), 0, name), seat="learning")
    return SeatedPair(seating, prompt, request, seating.handles[right])


def family_solution(family: str, problem: Problem, rng: Random, *, right: bool) -> str:
    """Return a solution of a synthetic family that is right or wrong as wanted."""
    writer = FAMILIES[family]
    while True:
        attempt = writer.attempt(problem, rng, right=float(right), lure=0.0 if right else 0.5)
        text = writer.write_solution(problem, attempt)
        if (" right" in writer.write_check(problem, text)) == right:
            break
    lies = not right and rng.random() < LIES
    return writer.write_lie(problem, attempt) if lies else text


async def sampled(policy: Policy, requests: Sequence[SampleRequest]) -> list[Completion]:
    """Return the replies to requests, all under way at a time."""
    with stops_released():
        return await together([policy.sample(request) for request in requests])


def preferred_of(policy: Policy, pair: SeatedPair, reply: Completion) -> Preferred:
    """Return which side the judge's ballots on the right solution and another's prefer.

    "none": there is none, or they contradict each other, which makes all of them void. The judge's own
    solution may be right too: with ``judge_own`` a vote on it says nothing of the pair.
    """
    in_thinking = opens_thinking(policy, pair.request.messages)
    turn = read_turn(pair.seating, pair.request, pair.prompt, reply, in_thinking=in_thinking)
    of_others = [b for b in turn.parsed.ballots if turn.handle not in (b.left, b.right)]
    ballots = [b for b in of_others if pair.right in (b.left, b.right)]
    chosen = {None if b.outcome == "tie" else b.left if b.outcome == "left" else b.right for b in ballots}
    if len(chosen) != 1:
        return "none"
    return "right" if chosen == {pair.right} else "tie" if chosen == {None} else "wrong"
