"""Rounds of agents that do not read one another: each has a seating and a history of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from debate import DebateConfig, SampleRequest, Turn
from debate.early_stop import stops
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import Entry
from debate.prompting.seating import Seating, public_entries
from debate.prompting.shown import holds_solutions
from debate.types import TurnId
from debate_rl.evaluation.agreement import agreement
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work


@dataclass(slots=True)
class Reviser:
    """An agent that revises its own work: where it sits, its ``seat`` there, its seed, and what it was shown.

    ``past``: what its prompts may show of the rounds so far, (round, agents of the seating).
    """

    seating: Seating
    seat: int
    seed: int
    past: list[list[Entry]] = field(default_factory=list["list[Entry]"])

    def request(self, work: Work, round_: int) -> tuple[Prompt, SampleRequest]:
        """Return the prompt and the request of its turn in a round."""
        budget = context_budget(work.asked.policy, self.seating.config)
        prompt = agent_prompt(self.seating, self.past, self.seat, round_, budget)
        turn = TurnId(self.seat, round_)
        request = turn_request(self.seating, prompt, turn, self.seed, work.asked.name)
        return prompt, replace(request, seat="learning")


Shown = Callable[[Reviser, int, Entry], list[Entry]]
"""What a reviser is shown of a round behind it, (agents of its seating), given its own entry of it."""


Ends = Callable[[Sequence[Turn]], bool]
"""Whether a round of these solutions, (N,), is the last."""


def ending(asked: Asked, protocol: DebateConfig) -> Ends:
    """Return what ends the rounds where a debate by the protocol would end: its agents agree early enough."""
    agreed = agreement(asked.environment, asked.mode)
    rounds = [round_ for round_ in range(protocol.num_rounds) if holds_solutions(protocol, round_)]

    def ends(turns: Sequence[Turn]) -> bool:
        there = [replace(turn, id=turn.id._replace(round=rounds[turn.id.round])) for turn in turns]
        return stops(protocol, asked.problem, there, agreed)

    return ends


async def revised(
    work: Work, revisers: Sequence[Reviser], rounds: int, shown: Shown, ends: Ends
) -> list[list[Turn]]:
    """Return the turns of each round, (rounds, N), agents counted in the order of the revisers.

    The budget of the work ends it with fewer rounds: one in which any turn is missing is left out.
    """
    said: list[list[Turn]] = []
    for round_ in range(rounds):
        asked = [one.request(work, round_) for one in revisers]
        requests = [
            replace(request, turn=TurnId(number, round_)) for number, (_, request) in enumerate(asked)
        ]
        replies = await work.replies(work.asked.policy, requests)
        turns: list[Turn] = []
        for number, (one, (prompt, request), reply) in enumerate(zip(revisers, asked, replies, strict=True)):
            if reply is None:
                return said
            in_thinking = opens_thinking(work.asked.policy, request.messages)
            turn = read_turn(one.seating, request, prompt, reply, in_thinking=in_thinking)
            [own] = public_entries(one.seating, [turn], [])
            one.past.append(shown(one, round_, own))
            turns.append(replace(turn, id=TurnId(number, round_)))
        said.append(turns)
        if ends(turns):
            break
    return said


def majority_of(work: Work, rounds: Sequence[Sequence[Turn]], *, settled: bool) -> Answered:
    """Return the most frequent answer of the last round that was held; ties are drawn by the seed.

    ``settled``: whether fewer rounds were held than might have been.
    """
    tally = Tally(work.asked.problem, work.asked.environment, work.asked.seed)
    for turn in rounds[-1] if rounds else ():
        work.take(turn)
    for index, solution in enumerate(work.solutions):
        tally.add(index, solution)
    turns = [turn for held in rounds for turn in held]
    return work.answered(tally, best_of(work, tally), "settled" if settled else "done", turns=turns)
