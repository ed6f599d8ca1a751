"""Strategies: the winner of a debate, the majority of its last round, and self-correction.

In self-correction, each agent revises its own solution as often as in a debate, without reading others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from debate import Debate, DebateConfig, Message
from debate.compression import TRIES
from debate.early_stop import stops
from debate.hold import debate_in_seat, read_turn, turn_request
from debate.policy import opens_thinking
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import Entry
from debate.prompting.seating import Seating, public_entries, seat_debate
from debate.prompting.shown import holds_solutions, rounds_held
from debate.protocols import GAMES
from debate.seeds import derive_seed
from debate.types import Summary, Turn, TurnId
from debate_rl.evaluation.grading import agreement
from debate_rl.evaluation.play import CountedReplies, summarizer_of
from debate_rl.evaluation.scores import winner_of
from debate_rl.strategies.voting import Tally
from debate_rl.strategies.work import Answered, Work, of_one_round
from rewards import RewardConfig, score_debate


def check_debate(work: Work) -> None:
    """Raise ValueError for a single agent, or a budget too small for all turns and summaries."""
    if work.plan.protocol.num_agents == 1:
        raise ValueError("debate.num_agents = 1 allows no debate; use majority")
    config = work.protocol
    behind = rounds_held(config) - 1
    more = behind * (config.summary.max_tokens + config.summary_thinking) if config.summary.enabled else 0
    if config.compress.over is not None:
        each = TRIES * (config.compress.max_tokens + config.compress_thinking)
        more += behind * config.num_agents * each
    work.need(config.num_agents * rounds_held(config), "one debate", more=more)


async def debate_winner(work: Work) -> Answered:
    """Return the answer of a debate's winner. Without votes, a random agent of the last round wins.

    Shares are over the last round's answers. ``comparisons`` counts turns in which comparisons were due, and
    ``unread`` those without a vote. If time runs out, the majority of the newest solutions decides.
    """
    debate = await held(work)
    if debate is None:
        return _majority(work, debate)
    winner = winner_of(debate, score_debate(debate, None, RewardConfig(judge_own=debate.protocol.judge_own)))
    last = debate.protocol.num_rounds - 1
    turns = [turn for turn in debate.turns if turn.id.round == last or turn.id == winner]
    tally = work.tally()
    for index, turn in enumerate(turns):
        work.take(turn)
        if turn.id.round == last:
            tally.add(index, work.solutions[index])
    due = [turn.id for turn in debate.turns if len(turn.compared) > 1]
    work.comparisons, work.unread = len(due), len({*due} - {vote.judge for vote in debate.votes})
    return _answered(work, tally, [turn.id for turn in turns].index(winner), debate)


async def debate_majority(work: Work) -> Answered:
    """Return the most frequent answer of a debate's last round. The seed breaks ties.

    The debate has no final ballot, except in a game, which requires one. If time runs out, the majority is
    over the newest solutions.
    """
    if (protocol := work.plan.protocol).protocol not in GAMES:
        protocol = protocol.model_copy(update={"final_ballot": False})
    work = replace(work, plan=replace(work.plan, protocol=protocol))
    debate = await held(work)
    if debate is not None:
        for turn in debate.turns:
            if turn.id.round == debate.protocol.num_rounds - 1:
                work.take(turn)
    return _majority(work, debate)


def _majority(work: Work, debate: Debate | None) -> Answered:
    tally = work.counted()
    return _answered(work, tally, tally.best(), debate)


def _answered(work: Work, tally: Tally, chosen: int | None, debate: Debate | None) -> Answered:
    if debate is None:
        return work.answered(tally, chosen, "seconds")
    turns = [turn for turn in debate.turns if holds_solutions(debate.protocol, turn.id.round)]
    return work.answered(tally, chosen, "settled" if debate.rounds_saved else "done", turns=turns)


async def held(work: Work) -> Debate | None:
    """Hold the debate and return it, or None if time ran out; ``work`` then has the newest solutions."""
    plan, policy, turns = work.plan, CountedReplies(work.policy, work.count), list[Turn]()

    def heard(said: Turn | Summary, _: tuple[Message, ...]) -> None:
        if isinstance(said, Turn):
            turns.append(said)

    summarizer = summarizer_of(plan.protocol, plan.summarizer)
    writer = policy if summarizer is None else CountedReplies(summarizer, work.count)
    agreed = agreement(plan.environment, plan.mode)
    clock = asyncio.timeout(work.seconds)
    try:
        async with clock:
            return await debate_in_seat(
                work.problem, policy, plan.protocol, work.seed, work.name, writer, agreed, heard
            )
    except TimeoutError:
        if not clock.expired():
            raise
    work.spent = "seconds"
    solved = [turn for turn in turns if holds_solutions(work.protocol, turn.id.round)]
    newest = {turn.id.agent: turn for turn in sorted(solved, key=lambda turn: turn.id.round)}
    for turn in newest.values():
        work.take(turn)
    return None


def check_revisions(work: Work) -> None:
    """Raise ValueError if there is no revision, or if the tokens are too few for all solutions."""
    config = work.protocol
    rounds = len(solution_rounds(config))
    if rounds < 2:
        raise ValueError(f"debate.num_rounds = {config.num_rounds} has no round of revisions; use majority")
    work.need(config.num_agents * rounds, f"{config.num_agents} agents with {rounds} solutions each")


async def self_correction(work: Work) -> Answered:
    """Return the most frequent last answer of agents that each revise their own solution.

    The agents, personas, number of solutions and stopping by agreement (``debate.min_rounds``) are those of a
    debate, but agents do not see the work of others [the isolated arm of arXiv 2605.00914].
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
    """An agent that revises its own work: its seating, its ``seat`` in the seating, and its seed.

    ``past``: the entries that its prompts may show, by round and agent of the seating.
    """

    seating: Seating
    seat: int
    seed: int
    past: list[list[Entry]] = field(default_factory=list["list[Entry]"])


Shown = Callable[[Reviser, int, Entry], list[Entry]]
"""Returns the entries of a round that a reviser is shown, given the reviser, the round and its own entry."""


async def revised(work: Work, revisers: Sequence[Reviser], protocol: DebateConfig, shown: Shown) -> Answered:
    """Return the most frequent answer of the last round in which the revisers wrote solutions.

    The number of solution rounds is that of a debate under ``protocol``, which may stop early. A round that
    exceeds the budget is dropped. The seed breaks ties.
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
    """Return the turns of a round in the order of the revisers, or None if the budget is spent."""
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
