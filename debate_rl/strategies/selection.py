"""Selection of a solution by a judge: best of n and Swiss rounds by blind ballots, and choice from a list.

The prompt of a ballot is that of a debate's final ballot among three agents (or of a comparing round, if the
protocol has no final ballot). It shows two solutions as the work of others, and a third as the judge's own.
In a game, the judge reads the two solutions as those of the arguing agents, and has no solution of its own.
Thus, selection uses the skill that debate trains. A ballot without a valid vote counts as unread.

In a list [GenSelect, arXiv 2504.16891], the judge reads several solutions and names the label of the best in
a comparison section. More solutions are split into lists, and the selected ones compete again. Each prompt
has random labels and a random order; texts are escaped and cut to fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2
from random import Random
from typing import NamedTuple

from debate import DebateConfig, Message, Problem, SampleRequest, Turn
from debate.hold import read_turn, turn_request
from debate.parsing.sections import find_sections
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget, context_budget, fit_history
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import Entry, Frame, render_entry
from debate.prompting.seating import Seating, prompts_of, seat_debate
from debate.prompting.shown import CRITIC, PROPOSER, PublicTurn, asks_pairs, public_turn
from debate.protocols import GAMES
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.strategies.voting import Tally, draw_by_seed
from debate_rl.strategies.work import Answered, End, Solution, Work, of_one_round

AGENTS = 3
"""Number of agents of a ballot: the judge, and the authors of the two compared solutions."""
EVEN = 0.5
"""Score of each solution for a tie, or for a ballot without a valid vote."""
WAVES = 4
"""Number of waves in which best of n requests its ballots. It stops once the result is settled."""
LONGEST = 16
"""Maximum number of solutions in one list."""


def check_ballots(work: Work) -> None:
    """Raise ValueError if the judge has no ballots, or the budget does not fit a solution and a ballot."""
    check_judge(work.judged_by.protocol)
    work.need(1, "a solution and a ballot", more=work.comparison_tokens)


def check_judge(protocol: DebateConfig) -> None:
    """Raise ValueError if the judge's protocol never compares solutions."""
    why = None
    if prompts_of(protocol).alone:
        why = f"debate.prompts = {protocol.prompts!r} is for one agent"
    elif protocol.num_agents < AGENTS:
        why = f"debate.num_agents = {protocol.num_agents}, but a ballot compares two other agents"
    elif protocol.history_rounds == 0:
        why = "debate.history_rounds = 0 shows no solutions to compare"
    elif protocol.num_rounds == 1 and not protocol.final_ballot:
        why = "debate.num_rounds = 1 without debate.final_ballot has no votes"
    if why is not None:
        raise ValueError(
            f"the judge has no ballots: {why}; name a run or recipe with {AGENTS} or more agents as "
            f"--judge, or choose a strategy without a judge"
        )


async def _entered(work: Work, name: str) -> tuple[Tally, list[int], Random]:
    """Request all solutions. Return their tally, those with an answer in random order, and the generator."""
    votes = await work.solve_all()
    players = [index for members in votes.members for index in members]
    rng = Random(derive_seed(work.seed, name))
    rng.shuffle(players)
    return votes, players, rng


async def best_of_n(work: Work) -> Answered:
    """Return the answer of the solution with the highest mean score on two ballots.

    The solutions form a random ring, and each is compared with both neighbours. Two neighbours with the same
    answer are not compared and get half a point each, like both sides of a ballot that could not be parsed.
    If several solutions lead, the answer whose solutions have the highest total score wins. Shares are
    fractions of the total score.
    """
    votes, ring, rng = await _entered(work, "ring")
    pairs = list(zip(ring, [*ring[1:], *ring[:1]], strict=True)) if len(ring) > 1 else []
    left = _comparisons(work, votes, pairs, rng)
    scores = {index: [EVEN] * (2 - sum(index in one[:2] for one in left)) for index in ring}
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
    return _of_most(work, votes, means, ended)


def _ring_is_settled(votes: Tally, scores: dict[int, list[float]]) -> bool:
    """Return whether the remaining ballots cannot change which answer has the highest score."""
    low = [max(sum(scores[index]) for index in members) for members in votes.members]
    high = [max(sum(scores[i]) + 2 - len(scores[i]) for i in members) for members in votes.members]
    first = max(range(len(low)), key=low.__getitem__)
    return all(low[first] > most for at, most in enumerate(high) if at != first)


async def swiss(work: Work) -> Answered:
    """Return the answer of the solution with the most points after ceil(log2 k) Swiss rounds.

    Based on V1 [arXiv 2603.04304], which first compares every solution; here, all rounds are Swiss. A ballot
    gives one point to its winner. A tie, or a reply that could not be parsed, gives half a point to both
    sides. A solution also gets half a point for a round without an opponent, or against a solution with the
    same answer. If several solutions lead, the answer whose solutions have the most points in total wins.
    """
    votes, players, rng = await _entered(work, "swiss")
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
        due = _comparisons(work, votes, pairs, rng)
        found = await compare(work, due)
        gained = dict.fromkeys(players, EVEN)
        for one, score in zip(due, found, strict=True):
            if score is not None:
                gained[one.left], gained[one.right] = score, 1 - score
        points = {index: points[index] + gained[index] for index in players}
        if None in found:
            break
    return _of_most(work, votes, points, ended)


def paired(players: list[int], points: dict[int, float], met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Return the pairs of a round: neighbours by points, preferably pairs that have not met before.

    >>> paired([3, 1, 2, 0], {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0}, {frozenset((2, 0))})
    [(2, 3), (0, 1)]
    """
    left = sorted(players, key=lambda index: -points[index])  # a stable sort: ties stay in random order
    pairs: list[tuple[int, int]] = []
    while len(left) > 1:
        first, *others = left
        other = next((one for one in others if frozenset((first, one)) not in met), others[0])
        pairs.append((first, other))
        left = [one for one in others if one != other]
    return pairs


def _of_most(work: Work, votes: Tally, points: dict[int, float], ended: End) -> Answered:
    """Return the answer of the solution with the most points.

    If several answers tie, the answer with the largest weight is returned; the seed breaks further ties.
    """
    weights = [sum(points[index] for index in members) for members in votes.members]
    counted = replace(votes, weights=weights) if any(weights) else votes  # nothing was compared
    chosen, leading = None, dict[int, int]()
    for index in sorted(points):
        at = votes.of(index)
        if at is not None and points[index] == max(points.values()):
            leading.setdefault(at, index)
    if leading:
        heaviest = max(weights[at] for at in leading)
        chosen = leading[draw_by_seed([at for at in sorted(leading) if weights[at] == heaviest], votes.seed)]
    return work.answered(counted, chosen, ended)


class Comparison(NamedTuple):
    """One ballot on two solutions, by index. The judge sees solution ``third``, if any, as its own."""

    left: int
    right: int
    third: int | None = None


def _comparisons(work: Work, votes: Tally, pairs: Sequence[tuple[int, int]], rng: Random) -> list[Comparison]:
    """Return the ballots on the pairs of different answers, each with a third solution if there is one."""
    found: list[Comparison] = []
    for left, right in pairs:
        if votes.of(left) != votes.of(right):
            others = [index for index in range(len(work.solutions)) if index not in (left, right)]
            found.append(Comparison(left, right, rng.choice(others) if others else None))
    return found


async def compare(work: Work, comparisons: Sequence[Comparison]) -> list[float | None]:
    """Return the score of the left solution in each comparison: 1.0, 0.0, or 0.5 for a tie or no valid vote.

    The score is None if the budget was spent before the ballot arrived.
    """
    judge = work.judged_by
    config = judging_protocol(judge.protocol)
    seat, *sides = seats_of(config)
    pair = sides if asks_pairs(config, 1) else None
    work.stage += 1
    ballots: list[tuple[Seating, Prompt, SampleRequest]] = []
    for number, one in enumerate(comparisons):
        seed = derive_seed(work.seed, "comparison", work.stage, number)
        seating = seat_debate(work.problem, config, seed)
        shown = dict(zip((seat, *sides), (one.third, one.left, one.right), strict=True))
        solutions = [None if (at := shown[agent]) is None else work.solutions[at] for agent in range(AGENTS)]
        past = [[entry_of(seating, agent, solution) for agent, solution in enumerate(solutions)]]
        prompt = agent_prompt(seating, past, seat, 1, context_budget(judge.policy, config), pair=pair)
        ballots.append((seating, prompt, turn_request(seating, prompt, TurnId(seat, 1), seed, work.name)))
    numbered = [
        replace(request, turn=TurnId(number, work.stage)) for number, (_, _, request) in enumerate(ballots)
    ]
    scores: list[float | None] = []
    replies = await work.replies(judge.policy, numbered)
    for (seating, prompt, request), reply in zip(ballots, replies, strict=True):
        if reply is None:
            scores.append(None)
            continue
        in_thinking = opens_thinking(judge.policy, request.messages)
        turn = read_turn(seating, request, prompt, reply, in_thinking=in_thinking)
        score = _score(turn, *(seating.handles[side] for side in sides))
        work.comparisons += 1
        work.unread += score is None
        scores.append(EVEN if score is None else score)
    return scores


def _score(turn: Turn, left: str, right: str) -> float | None:
    """Return the score that a turn gives the left solution, or None without a vote or if votes contradict."""
    worth = {"left": 1.0, "right": 0.0, "tie": EVEN}
    found = {worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (left, right)}
    found |= {1 - worth[b.outcome] for b in turn.parsed.ballots if (b.left, b.right) == (right, left)}
    return found.pop() if len(found) == 1 else None


def judging_protocol(protocol: DebateConfig) -> DebateConfig:
    """Return the judge's protocol, reduced to three agents and a single ballot."""
    return of_one_round(
        protocol,
        num_agents=AGENTS,
        num_rounds=1 if protocol.final_ballot else 2,
        judge_own=False,
        order="per_debate",
        personas=protocol.agent_personas[:AGENTS],
    )


def seats_of(protocol: DebateConfig) -> tuple[int, int, int]:
    """Return the agents of a ballot: the judge, and the authors of the left and the right solution.

    >>> seats_of(DebateConfig()), seats_of(DebateConfig(protocol="zero_sum", num_rounds=1))
    ((0, 1, 2), (2, 0, 1))
    """
    return (CRITIC + 1, PROPOSER, CRITIC) if protocol.protocol in GAMES else (0, 1, 2)


def entry_of(seating: Seating, agent: int, solution: Solution | None) -> Entry:
    """Return the public part of a solution as prompts show it, as the work of ``agent``."""
    texts, id, handle = seating.texts, TurnId(agent, 0), seating.handles[agent]
    if solution is None:
        return render_entry(texts, PublicTurn(id, handle, None))
    public = public_turn(solution.turn, strip=texts.strip)
    return render_entry(texts, PublicTurn(id, handle, public.solution, answer=public.answer))


def check_list(work: Work) -> None:
    """Raise ValueError if the judge's prompts do not show other solutions, or the budget is too small."""
    check_selection(work.judged_by.protocol)
    work.need(1, "a solution and a selection", more=work.comparison_tokens)


def check_selection(protocol: DebateConfig) -> None:
    """Raise ValueError if a prompt set cannot show the solutions of others."""
    if prompts_of(protocol).alone:
        raise ValueError(
            f"debate.prompts = {protocol.prompts!r}: is for one agent and cannot show the solutions "
            f"that genselect compares; choose a prompt set for debates, or another strategy"
        )


async def genselect(work: Work) -> Answered:
    """Return the answer of the solution that remains after repeated selection from lists.

    The seed draws the lists, and the judge selects one solution of each. A list whose solutions all have the
    same answer needs no request. The result is settled when all remaining solutions have the same answer. If
    a selection could not be parsed, the list keeps the solution with the most frequent answer.
    """
    size = longest_list(work.judged_by.protocol)
    tally, left, _ = await _entered(work, "lists")
    ended: End = "settled" if len(tally.answers) == 1 and left else "done"
    while len({tally.of(index) for index in left}) > 1 and work.room(work.comparison_tokens) >= 1:
        groups = [left[start : start + size] for start in range(0, len(left), size)]
        mixed = [group for group in groups if len({tally.of(index) for index in group}) > 1]
        if not mixed:  # each list has a single answer: keep one solution of each
            left = [group[0] for group in groups]
            continue
        found = dict(zip(map(tuple, mixed), await _select(work, mixed), strict=True))
        left = []
        for group in groups:
            named = found.get(tuple(group))
            usual = max(group, key=lambda index: tally.weights[tally.of(index) or 0])
            left.append(usual if named is None else named)
        if work.seconds is not None and work.elapsed() >= work.seconds:
            break
    chosen = left[0] if len({tally.of(index) for index in left}) == 1 else tally.best()
    return work.answered(tally, chosen if left else None, ended)


async def _select(work: Work, groups: Sequence[Sequence[int]]) -> list[int | None]:
    """Request the selections from all groups together. Return the selected solution of each, or None."""
    judge = work.judged_by
    protocol, budget = judge.protocol, context_budget(judge.policy, judge.protocol)
    work.stage += 1
    prompts, requests = list[SelectionPrompt](), list[SampleRequest]()
    for number, group in enumerate(groups):
        seed = derive_seed(work.seed, "selection", work.stage, number)
        listed = [work.solutions[index] for index in group]
        prompt = selection_prompt(work.problem, listed, protocol, budget, seed)
        prompts.append(prompt)
        requests.append(
            SampleRequest(
                messages=prompt.messages,
                temperature=protocol.agent_personas[0].temperature,
                max_tokens=protocol.max_tokens,
                stop=prompt.stop,
                seed=seed,
                debate=work.name,
                turn=TurnId(number, work.stage),
                thinking_tokens=protocol.thinking_tokens,
                top_p=protocol.top_p,
                top_k=protocol.top_k,
            )
        )
    chosen: list[int | None] = []
    for prompt, group, reply in zip(prompts, groups, await work.replies(judge.policy, requests), strict=True):
        at = None
        if reply is not None:
            in_thinking = opens_thinking(judge.policy, prompt.messages)
            at = selected(reply.text, prompt.labels, in_thinking=in_thinking)
            work.comparisons += 1
            work.unread += at is None
        chosen.append(None if at is None else group[at])
    return chosen


class SelectionPrompt(NamedTuple):
    """The prompt of a list: its messages, the stop strings, and the labels of the solutions, (n,)."""

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    labels: tuple[str, ...]


def longest_list(protocol: DebateConfig) -> int:
    """Return the maximum number of solutions in a list: the number of labels, but at most 16."""
    labels = protocol.handles
    return LONGEST if labels is None else min(LONGEST, len({label.upper() for label in labels}))


def selection_prompt(
    problem: Problem, solutions: Sequence[Solution], protocol: DebateConfig, budget: ContextBudget, seed: int
) -> SelectionPrompt:
    """Return the prompt that lists these solutions, two or more, in random order."""
    config = of_one_round(protocol, protocol="debate", num_agents=len(solutions))
    seating = seat_debate(problem, config, seed)
    entries = [entry_of(seating, agent, one) for agent, one in enumerate(solutions)]
    order, texts = seating.orders[0], seating.texts
    labels = ", ".join(seating.handles[agent] for agent in order)
    frame = Frame("ballot", "", seating.opening, texts.select(compared=labels))
    history = fit_history(frame, [[entries[agent] for agent in order]], seating, budget)
    stop = ("</comparison>",) if texts.sections else ()
    return SelectionPrompt(frame.messages(history.text), (*config.stop, *stop), seating.handles)


def selection_reply(label: str) -> str:
    """Return the reply that names a solution.

    >>> selected(selection_reply("K7"), ("Q2", "K7"))
    1
    """
    return f"<comparison>\n{label}\n</comparison>"


def selected(text: str, labels: Sequence[str], *, in_thinking: bool = False) -> int | None:
    """Return the index of the label that a reply names, or None if the reply names no label or several.

    >>> selected("<comparison>K7 or Q2</comparison>", ("K7", "Q2")) is None
    True
    """
    span = find_sections(text, in_thinking=in_thinking).inside("comparison")
    words = {word.upper() for word in re.findall(r"[^\W_]+", span.of(text))} if span else set[str]()
    whole = " ".join(span.of(text).split()).upper() if span else ""
    known = [label.upper() for label in labels]
    named = [index for index, label in enumerate(known) if label in words or label == whole]
    return named[0] if len(named) == 1 else None
