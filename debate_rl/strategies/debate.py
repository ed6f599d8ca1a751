"""One debate as a strategy: its winner by its votes, or the majority of its last round."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from debate import Debate, Message
from debate.compression import TRIES
from debate.hold import debate_in_seat
from debate.prompting.shown import holds_solutions, rounds_held
from debate.protocols import GAMES
from debate.types import Summary, Turn
from debate_rl.evaluation.grading import agreement
from debate_rl.evaluation.play import CountedReplies, summarizer_of
from debate_rl.evaluation.scores import winner_of
from debate_rl.strategies.work import Answered, Tally, Work
from rewards import RewardConfig, score_debate


def check_debate(work: Work) -> None:
    """ValueError where there is no debate, or no budget for its turns and summaries at their longest."""
    if work.plan.protocol.num_agents == 1:
        raise ValueError("debate.num_agents = 1 holds no debate; use majority")
    config = work.protocol
    behind = rounds_held(config) - 1
    more = behind * (config.summary.max_tokens + config.summary_thinking) if config.summary.enabled else 0
    if config.compress.over is not None:
        each = TRIES * (config.compress.max_tokens + config.compress_thinking)
        more += behind * config.num_agents * each
    work.need(config.num_agents * rounds_held(config), "one debate", more=more)


async def debate_winner(work: Work) -> Answered:
    """Return the answer of the winner of one debate; without any vote an agent of the last round is drawn.

    The shares are of the last round's answers. Turns that were to compare count as comparisons, those without
    a vote as unread. The clock ends it with the majority of the newest solutions.
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
    """Return the most frequent answer of a debate's last round; ties are drawn by the seed.

    No final ballot is held, since it changes nothing here; but for that of a game, without which it would be
    none. The clock ends it with the newest solutions.
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
    """Return the debate on a problem; None where the clock ended it, and then the work has its solutions."""
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
