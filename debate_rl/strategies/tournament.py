"""Tournaments of solutions by a judge's blind ballots: best of n, and Swiss rounds.

The judge reads the final ballot of a debate of three (or, where its protocol has none, the round that
compares) with two solutions of others and, as its own, a third one of the same problem; the judge of a game
reads these two in the places of those that argue, and has none. So what debate trains selects. Labels and
order are drawn for each comparison; a turn that does not vote on the pair says nothing, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2
from random import Random
from typing import NamedTuple

from debate import Completion, DebateConfig, SampleRequest
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
from debate_rl.strategies.work import (
    Answered,
    End,
    Judge,
    Solution,
    Tally,
    Work,
    drawn,
    of_one_round,
)

AGENTS = 3
"""The judge, and the two whose solutions it compares."""
EVEN = 0.5
"""What a tie is worth to each side, and what nobody's vote is."""
WAVES = 4
"""Parts in which the ballots of best of n are asked for: after each it may be settled."""


def check_ballots(work: Work) -> None:
    """ValueError where the judge knows no ballots, or the budget has no room for a solution and one."""
    check_judge(work.judged_by.protocol)
    work.need(1, "a solution and a ballot", more=work.comparison_tokens)


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


async def best_of_n(work: Work) -> Answered:
    """Return the answer of the solution with the highest mean score on two ballots.

    The solutions stand in a drawn ring, and each is compared with both that stand next to it. Two of the same
    answer are not compared and get half a point each, as do both sides of a ballot that could not be read. Of
    several that lead, the answer whose solutions have the highest scores together is taken. The shares are of
    all scores.
    """
    votes = await work.solve_all()
    ring = [index for members in votes.members for index in members]
    rng = Random(derive_seed(work.seed, "ring"))
    rng.shuffle(ring)
    pairs = list(zip(ring, [*ring[1:], *ring[:1]], strict=True)) if len(ring) > 1 else []
    due = [pair for pair in pairs if votes.of(pair[0]) != votes.of(pair[1])]
    left = [Comparison(a, b, _third_of(a, b, len(work.solutions), rng)) for a, b in due]
    scores = {index: [EVEN] * (2 - sum(index in pair for pair in due)) for index in ring}
    ended: End = "settled" if len(votes.answers) == 1 else "done"
    wave = max(1, -(-len(left) // WAVES))
    while left:
        if _ring_is_settled(votes, scores):
            ended = "settled"
            break
        now, left = left[:wave], left[wave:]
        found = await compare(work, now)
        for one, score in zip(now, found, strict=True):
            if score is not None:
                scores[one.left].append(score)
                scores[one.right].append(1 - score)
        if None in found:
            break
    means = {index: (sum(got) + EVEN * (2 - len(got))) / 2 for index, got in scores.items()}
    weights = [sum(means[index] for index in members) for members in votes.members]
    return work.answered(replace(votes, weights=weights), _best(votes, means, weights), ended)


def _ring_is_settled(votes: Tally, scores: dict[int, list[float]]) -> bool:
    """Return whether no ballot that is still to come can change which answer has the highest score."""
    low = [max(sum(scores[index]) for index in members) for members in votes.members]
    high = [max(sum(scores[i]) + 2 - len(scores[i]) for i in members) for members in votes.members]
    first = max(range(len(low)), key=low.__getitem__)
    return all(low[first] > most for at, most in enumerate(high) if at != first)


async def swiss(work: Work) -> Answered:
    """Return the answer of the solution with the most points after ceil(log2 k) Swiss rounds.

    After V1 [arXiv 2603.04304], which compares every solution first; here the rounds are Swiss from the
    start. A ballot gives its winner a point, a tie or a reply that could not be read half a point to both,
    and so does a round without an opponent or against a solution of the same answer. Of several that lead,
    the answer whose solutions have the most points together is taken.
    """
    votes = await work.solve_all()
    players = [index for members in votes.members for index in members]
    rng = Random(derive_seed(work.seed, "swiss"))
    rng.shuffle(players)
    points, met = dict.fromkeys(players, 0.0), set[frozenset[int]]()
    rounds = ceil(log2(len(players))) if len(players) > 1 else 0
    ended: End = "settled" if len(votes.answers) == 1 else "done"
    for number in range(rounds):
        most = max(points.values())
        in_reach = [index for index in players if points[index] + rounds - number >= most]
        if len({votes.of(index) for index in in_reach}) == 1:
            ended = "settled"
            break
        pairs = paired(players, points, met)
        met |= {frozenset(pair) for pair in pairs}
        due = [pair for pair in pairs if votes.of(pair[0]) != votes.of(pair[1])]
        ballots = [Comparison(a, b, _third_of(a, b, len(work.solutions), rng)) for a, b in due]
        found = await compare(work, ballots)
        gained = dict.fromkeys(players, EVEN)
        for (left, right), score in zip(due, found, strict=True):
            if score is not None:
                gained[left], gained[right] = score, 1 - score
        points = {index: points[index] + gained[index] for index in players}
        if None in found:
            break
    weights = [sum(points[index] for index in members) for members in votes.members]
    counted = replace(votes, weights=weights) if any(weights) else votes  # no round was held: the solutions
    return work.answered(counted, _best(votes, points, weights), ended)


def paired(players: list[int], points: dict[int, float], met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Return the pairs of a round: neighbours by points that have not met, if there are such.

    >>> paired([3, 1, 2, 0], {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0}, {frozenset((2, 0))})
    [(2, 3), (0, 1)]
    """
    left = sorted(players, key=lambda index: -points[index])  # the drawn order among equals
    pairs: list[tuple[int, int]] = []
    while len(left) > 1:
        first, *others = left
        other = next((one for one in others if frozenset((first, one)) not in met), others[0])
        pairs.append((first, other))
        left = [one for one in others if one != other]
    return pairs


def _best(votes: Tally, points: dict[int, float], weights: list[float]) -> int | None:
    """Return the solution of most points; of several answers, drawn among those that weigh most."""
    if not points:
        return None
    most = max(points.values())
    leading: dict[int, int] = {}
    for index in sorted(points):
        at = votes.of(index)
        if at is not None and points[index] == most:
            leading.setdefault(at, index)
    heaviest = max(weights[at] for at in leading)
    return leading[drawn([at for at in sorted(leading) if weights[at] == heaviest], votes.seed)]


class Comparison(NamedTuple):
    """One ballot on two solutions, by index; ``third``: the one that the judge reads as its own, if any."""

    left: int
    right: int
    third: int | None = None


def _third_of(left: int, right: int, count: int, rng: Random) -> int | None:
    """Return a third solution, drawn from ``count``; None where there are no more than these two."""
    others = [index for index in range(count) if index not in (left, right)]
    return rng.choice(others) if others else None


async def compare(work: Work, comparisons: Sequence[Comparison]) -> list[float | None]:
    """Return what each comparison gives its left solution: 1.0, 0.0, or half for a tie or no valid vote.

    None where the budget ended before it came.
    """
    judge = work.judged_by
    work.stage += 1
    ballots = [_ballot(work, judge, one, number) for number, one in enumerate(comparisons)]
    replies = await work.replies(judge.policy, [request for _, _, request in ballots])
    scores: list[float | None] = []
    for ballot, reply in zip(ballots, replies, strict=True):
        score = None if reply is None else _score(judge, ballot, reply)
        work.comparisons += reply is not None
        work.unread += reply is not None and score is None
        scores.append(EVEN if reply is not None and score is None else score)
    return scores


_Ballot = tuple[Seating, Prompt, SampleRequest]


def _ballot(work: Work, judge: Judge, one: Comparison, number: int) -> _Ballot:
    """Return the request for one comparison, with its seating and prompt."""
    seed = derive_seed(work.seed, "comparison", work.stage, number)
    config = judging_protocol(judge.protocol)
    seating = seat_debate(work.problem, config, seed)
    seat, *sides = seats_of(config)
    shown = dict(zip((seat, *sides), (one.third, one.left, one.right), strict=True))
    solutions = [None if (at := shown[agent]) is None else work.solutions[at] for agent in range(AGENTS)]
    past = [[entry_of(seating, agent, solution) for agent, solution in enumerate(solutions)]]
    pair = sides if asks_pairs(config, 1) else None
    prompt = agent_prompt(seating, past, seat, 1, context_budget(judge.policy, config), pair=pair)
    request = turn_request(seating, prompt, TurnId(seat, 1), seed, work.name)
    return seating, prompt, replace(request, turn=TurnId(number, work.stage))


def _score(judge: Judge, ballot: _Ballot, reply: Completion) -> float | None:
    """Return what a reply gives the left solution; None without a vote, or with votes that contradict."""
    seating, prompt, request = ballot
    seat, *sides = seats_of(seating.config)
    request = replace(request, turn=TurnId(seat, 1))
    in_thinking = opens_thinking(judge.policy, request.messages)
    turn = read_turn(seating, request, prompt, reply, in_thinking=in_thinking)
    left, right = (seating.handles[side] for side in sides)
    worth = {"left": 1.0, "right": 0.0, "tie": EVEN}
    found = {worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (left, right)}
    found |= {1 - worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (right, left)}
    return found.pop() if len(found) == 1 else None


def judging_protocol(protocol: DebateConfig) -> DebateConfig:
    """Return the protocol of a single ballot: that of the judge, cut down to three agents and one vote."""
    return of_one_round(
        protocol,
        num_agents=AGENTS,
        num_rounds=1 if protocol.final_ballot else 2,
        judge_own=False,
        order="per_debate",
        personas=protocol.agent_personas[:AGENTS],
    )


def seats_of(protocol: DebateConfig) -> tuple[int, int, int]:
    """Return where the judge of a ballot sits, and whose work stands on the left and on the right.

    >>> seats_of(DebateConfig()), seats_of(DebateConfig(protocol="zero_sum", num_rounds=1))
    ((0, 1, 2), (2, 0, 1))
    """
    return (CRITIC + 1, PROPOSER, CRITIC) if protocol.protocol in GAMES else (0, 1, 2)


def entry_of(seating: Seating, agent: int, solution: Solution | None) -> Entry:
    """Return a solution as the seating's prompts show that of an agent: nothing but what is public of it."""
    texts, id, handle = seating.texts, TurnId(agent, 0), seating.handles[agent]
    if solution is None:
        return render_entry(texts, PublicTurn(id, handle, None))
    public = public_turn(solution.turn, strip=texts.strip)
    return render_entry(texts, PublicTurn(id, handle, public.solution, answer=public.answer))
