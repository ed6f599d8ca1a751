"""Debate, majority: one debate, and the answer that the most agents give in its last round."""

from __future__ import annotations

from dataclasses import replace

from debate.protocols import GAMES
from debate_rl.strategies.holding import held, need_debate, solution_turns
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work


async def debate_majority(asked: Asked) -> Answered:
    """Return the most frequent answer of a debate's last round; ties are drawn by the seed.

    No final ballot is held, since it changes nothing here; but for that of a game, without which it would be
    none. The clock ends it with the newest solutions.
    """
    protocol = asked.protocol
    if protocol.protocol not in GAMES:
        asked = replace(asked, protocol=protocol.model_copy(update={"final_ballot": False}))
    need_debate(asked)
    work, tally = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    debate = await held(work)
    if debate is not None:
        for turn in debate.turns:
            if turn.id.round == debate.protocol.num_rounds - 1:
                work.take(turn)
    for index, solution in enumerate(work.solutions):
        tally.add(index, solution)
    ended = "settled" if debate is not None and debate.rounds_saved else "done"
    return work.answered(tally, best_of(work, tally), ended, turns=debate and solution_turns(debate))
