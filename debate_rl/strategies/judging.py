"""A judge's blind comparison of two solutions: the ballot of a debate, so that what debate trains selects.

The judge reads the final ballot of a debate of three (or, where its protocol has none, the round that
compares) with two solutions of others and, as its own, a third one of the same problem; the judge of a game
reads these two in the places of those that argue, and has none. Labels and order are drawn for each
comparison; a turn that does not vote on the pair says nothing, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from debate import Completion, DebateConfig, SampleRequest
from debate.config import CompressionConfig, SummaryConfig
from debate.hold import read_turn, turn_request
from debate.policy import opens_thinking
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import Entry, render_entry
from debate.prompting.seating import Seating, prompts_of, seat_debate
from debate.prompting.shown import CRITIC, PROPOSER, PublicTurn, asks_pairs, public_turn
from debate.protocols import GAMES
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.strategies.types import Asked, Judge, Solution
from debate_rl.strategies.work import Work

AGENTS = 3
"""The judge, and the two whose solutions it compares."""
EVEN = 0.5
"""What a tie is worth to each side, and what nobody's vote is."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One ballot on two solutions, by index; ``third``: the one that the judge reads as its own, if any."""

    left: int
    right: int
    third: int | None = None


@dataclass(frozen=True, slots=True)
class _Ballot:
    seating: Seating
    prompt: Prompt
    request: SampleRequest


def check_judge(protocol: DebateConfig) -> None:
    """ValueError for a judge that knows no ballots: nobody compares solutions in its protocol."""
    why = None
    if prompts_of(protocol).alone:
        why = f"debate.prompts = {protocol.prompts!r} is for one agent"
    elif protocol.num_agents < AGENTS:
        why = f"debate.num_agents = {protocol.num_agents}, and a ballot is on the work of two others"
    elif protocol.history_rounds == 0:
        why = "debate.history_rounds = 0 shows no work to compare"
    elif protocol.num_rounds == 1 and not protocol.final_ballot:
        why = "debate.num_rounds = 1 without debate.final_ballot never votes"
    if why is not None:
        raise ValueError(
            f"judge without ballots: {why}; name a run or recipe of debates of {AGENTS} or more as "
            "--judge, or choose a strategy that asks no judge"
        )


def judging_protocol(protocol: DebateConfig) -> DebateConfig:
    """Return the protocol of a single ballot: that of the judge, cut down to three agents and one vote."""
    return protocol.model_copy(
        update={
            "num_agents": AGENTS,
            "num_rounds": 1 if protocol.final_ballot else 2,
            "min_rounds": None,
            "by_level": (),
            "seats": (),
            "judge_own": False,
            "tools": "none",
            "conversation": False,
            "history_rounds": 1,
            "order": "per_debate",
            "personas": protocol.agent_personas[:AGENTS],
            "summary": SummaryConfig(),
            "compress": CompressionConfig(),
        }
    )


def seats_of(protocol: DebateConfig) -> tuple[int, int, int]:
    """Return where the judge of a ballot sits, and whose work stands on the left and on the right.

    >>> seats_of(DebateConfig()), seats_of(DebateConfig(protocol="zero_sum", num_rounds=1))
    ((0, 1, 2), (2, 0, 1))
    """
    return (CRITIC + 1, PROPOSER, CRITIC) if protocol.protocol in GAMES else (0, 1, 2)


async def compare(work: Work, comparisons: Sequence[Comparison]) -> list[float | None]:
    """Return what each comparison gives its left solution: 1.0, 0.0, or half for a tie or no valid vote.

    None where the budget ended before it came.
    """
    asked, judge, stage = work.asked, work.asked.judged_by, work.next_stage()
    ballots = [
        _ballot(asked, judge, one, work.solutions, stage, number) for number, one in enumerate(comparisons)
    ]
    replies = await work.replies(judge.policy, [ballot.request for ballot in ballots])
    scores: list[float | None] = []
    for ballot, reply in zip(ballots, replies, strict=True):
        score = None if reply is None else _score(judge, ballot, reply)
        work.comparisons += reply is not None
        work.unread += reply is not None and score is None
        scores.append(EVEN if reply is not None and score is None else score)
    return scores


def _ballot(
    asked: Asked, judge: Judge, one: Comparison, solutions: Sequence[Solution], stage: int, number: int
) -> _Ballot:
    """Return the request for one comparison."""
    seed = derive_seed(asked.seed, "comparison", stage, number)
    config = judging_protocol(judge.protocol)
    seating = seat_debate(asked.problem, config, seed)
    seat, *sides = seats_of(config)
    work = dict(zip((seat, *sides), (one.third, one.left, one.right), strict=True))
    shown = (None if (index := work[agent]) is None else solutions[index] for agent in range(AGENTS))
    past = [[entry_of(seating, agent, solution) for agent, solution in enumerate(shown)]]
    pair = sides if asks_pairs(config, 1) else None
    prompt = agent_prompt(seating, past, seat, 1, context_budget(judge.policy, config), pair=pair)
    request = turn_request(seating, prompt, TurnId(seat, 1), seed, asked.name)
    return _Ballot(seating, prompt, replace(request, turn=TurnId(number, stage)))


def entry_of(seating: Seating, agent: int, solution: Solution | None) -> Entry:
    """Return a solution as the seating's prompts show that of an agent: nothing but what is public of it."""
    texts, id, handle = seating.texts, TurnId(agent, 0), seating.handles[agent]
    if solution is None:
        return render_entry(texts, PublicTurn(id, handle, None))
    public = public_turn(solution.turn, strip=texts.strip)
    return render_entry(texts, PublicTurn(id, handle, public.solution, answer=public.answer))


def _score(judge: Judge, ballot: _Ballot, reply: Completion) -> float | None:
    """Return what a reply gives the left solution; None without a vote, or with votes that contradict."""
    seat, *sides = seats_of(ballot.seating.config)
    request = replace(ballot.request, turn=TurnId(seat, 1))
    in_thinking = opens_thinking(judge.policy, request.messages)
    turn = read_turn(ballot.seating, request, ballot.prompt, reply, in_thinking=in_thinking)
    left, right = (ballot.seating.handles[side] for side in sides)
    worth = {"left": 1.0, "right": 0.0, "tie": EVEN}
    found = {worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (left, right)}
    found |= {1 - worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (right, left)}
    return found.pop() if len(found) == 1 else None


def third_of(left: int, right: int, count: int, rng: Random) -> int | None:
    """Return a solution beside two, drawn from ``count``; None where there are no more than these."""
    others = [index for index in range(count) if index not in (left, right)]
    return rng.choice(others) if others else None
