"""Debate, winner: one debate, and the answer of the solution that its agents' votes rank first."""

from __future__ import annotations

from debate_rl.evaluation.scores import winner_of
from debate_rl.strategies.holding import held, need_debate, solution_turns
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work
from rewards import RewardConfig, score_debate


async def debate_winner(asked: Asked) -> Answered:
    """Return the answer of the winner of one debate; without any vote an agent of the last round is drawn.

    The shares are of the last round's answers. A debate stops before its last round as its protocol says
    (``debate.min_rounds``). Turns that were to compare count as comparisons, those without a vote as unread.
    The clock ends it with the majority of the newest solutions.
    """
    need_debate(asked)
    work, tally = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    debate = await held(work)
    if debate is None:
        for index, solution in enumerate(work.solutions):
            tally.add(index, solution)
        return work.answered(tally, best_of(work, tally), "seconds")
    rewards = score_debate(debate, None, RewardConfig(judge_own=debate.protocol.judge_own))
    winner = winner_of(debate, rewards)
    last = debate.protocol.num_rounds - 1
    turns = [turn for turn in debate.turns if turn.id.round == last or turn.id == winner]
    for turn in turns:
        work.take(turn)
    for index, (turn, solution) in enumerate(zip(turns, work.solutions, strict=True)):
        if turn.id.round == last:
            tally.add(index, solution)
    chosen = next(index for index, turn in enumerate(turns) if turn.id == winner)
    due = [turn.id for turn in debate.turns if len(turn.compared) > 1]
    work.comparisons, work.unread = len(due), len({*due} - {vote.judge for vote in debate.votes})
    ended = "settled" if debate.rounds_saved else "done"
    return work.answered(tally, chosen, ended, turns=solution_turns(debate))
