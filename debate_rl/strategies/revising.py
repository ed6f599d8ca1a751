"""Self-correction: agents that each revise their own solution, as often as in a debate, and read nobody's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from debate import DebateConfig, Turn
from debate.early_stop import stops
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import Entry
from debate.prompting.seating import Seating, public_entries, seat_debate
from debate.prompting.shown import holds_solutions
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.evaluation.grading import agreement
from debate_rl.strategies.work import Answered, Work, of_one_round


def check_revisions(work: Work) -> None:
    """ValueError where nothing is revised, or the budget of tokens is too small for all solutions."""
    config = work.protocol
    rounds = len(solution_rounds(config))
    if rounds < 2:
        raise ValueError(f"debate.num_rounds = {config.num_rounds} has nobody revise anything; use majority")
    work.need(config.num_agents * rounds, f"{config.num_agents} agents with {rounds} solutions each")


async def self_correction(work: Work) -> Answered:
    """Return the most frequent last answer of agents that each revised their own solution.

    As many agents, with the same personas, write as many solutions as in a debate, fewer too where they agree
    (``debate.min_rounds``); what a debate adds to it is the work of others [the isolated arm of arXiv
    2605.00914].
    """
    config = work.protocol
    revisers: list[Reviser] = []
    for agent in range(config.num_agents):
        alone = of_one_round(
            config,
            protocol="debate",
            num_agents=1,
            num_rounds=len(solution_rounds(config)),
            ask_swapped=False,
            final_ballot=False,
            history_rounds=config.history_rounds or 1,
            tools=config.tools,
            personas=config.agent_personas[agent : agent + 1],
        )
        seed = derive_seed(work.seed, "alone", agent)
        revisers.append(Reviser(seat_debate(work.problem, alone, seed), 0, seed))
    return await revised(work, revisers, config, lambda _, __, own: [own])


def solution_rounds(config: DebateConfig) -> list[int]:
    """Return the rounds of a debate in which agents write solutions.

    >>> [solution_rounds(DebateConfig(protocol=name, num_rounds=3)) for name in ("debate", "critique")]
    [[0, 1, 2], [0, 2]]
    """
    return [round_ for round_ in range(config.num_rounds) if holds_solutions(config, round_)]


@dataclass(slots=True)
class Reviser:
    """An agent that revises its own work: where it sits, its ``seat`` there, its seed, and what it was shown.

    ``past``: what its prompts may show of the rounds so far, (round, agents of the seating).
    """

    seating: Seating
    seat: int
    seed: int
    past: list[list[Entry]] = field(default_factory=list["list[Entry]"])


Shown = Callable[[Reviser, int, Entry], list[Entry]]
"""What a reviser is shown of a round behind it, (agents of its seating), given its own entry of it."""


async def revised(work: Work, revisers: Sequence[Reviser], protocol: DebateConfig, shown: Shown) -> Answered:
    """Return the most frequent answer of the last round in which the revisers wrote solutions.

    There are as many rounds of solutions as in a debate by the ``protocol``, and fewer where its agents would
    agree early enough. A round in which the budget leaves any turn out is left out as a whole. Ties are drawn
    by the seed.
    """
    said, numbers = list[list[Turn]](), solution_rounds(protocol)
    agreed = agreement(work.plan.environment, work.plan.mode)
    for round_, number in enumerate(numbers):
        turns = await _round(work, revisers, round_, shown)
        if turns is None:
            break
        said.append(turns)
        there = [replace(turn, id=turn.id._replace(round=number)) for turn in turns]
        if stops(protocol, work.problem, there, agreed):
            break
    for turn in said[-1] if said else ():
        work.take(turn)
    tally = work.counted()
    ended = "settled" if len(said) < len(numbers) else "done"
    return work.answered(tally, tally.best(), ended, turns=[turn for turns in said for turn in turns])


async def _round(work: Work, revisers: Sequence[Reviser], round_: int, shown: Shown) -> list[Turn] | None:
    """Return the turns of a round in the order of the revisers; None where the budget ended any of them."""
    policy = work.policy
    asked = []
    for one in revisers:
        budget = context_budget(policy, one.seating.config)
        prompt = agent_prompt(one.seating, one.past, one.seat, round_, budget)
        request = turn_request(one.seating, prompt, TurnId(one.seat, round_), one.seed, work.name)
        asked.append((prompt, replace(request, seat="learning")))
    numbered = [replace(request, turn=TurnId(at, round_)) for at, (_, request) in enumerate(asked)]
    replies = await work.replies(policy, numbered)
    turns: list[Turn] = []
    for one, (prompt, request), reply in zip(revisers, asked, replies, strict=True):
        if reply is None:
            return None
        in_thinking = opens_thinking(policy, request.messages)
        turn = read_turn(one.seating, request, prompt, reply, in_thinking=in_thinking)
        [own] = public_entries(one.seating, [turn], [])
        one.past.append(shown(one, round_, own))
        turns.append(replace(turn, id=TurnId(len(turns), round_)))
    return turns
