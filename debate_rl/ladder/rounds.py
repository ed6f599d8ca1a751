"""What becomes of agents from round to round: corrected or misled, and whether they follow the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from debate import Problem, Turn
from debate.types import TurnId
from debate_rl.ladder.pool import Grader
from debate_rl.strategies.tally import Tally
from rewards import Truth
from rewards.truth import FLIPS, flips


@dataclass(frozen=True, slots=True)
class Rounds:
    """Steps of agents from one round to the next, on one problem: how many went each way.

    ``flips``: right ("c") or wrong ("w") before and after, as ``rewards.truth.flips``. ``pressed``: the steps
    of agents whose answer was another one than that of more than half of the others; ``followed``: those of
    them behind which the agent gave that answer.
    """

    flips: Mapping[str, int]
    pressed: int
    followed: int


def rounds_of(problem: Problem, turns: Sequence[Turn], grades: Sequence[Truth], grader: Grader) -> Rounds:
    """Return what became of the agents on one problem; ``turns`` are all solutions, of every round."""
    known: dict[TurnId, Truth] = {turn.id: grade for turn, grade in zip(turns, grades, strict=True)}
    ids = sorted(known)
    if len({id.round for id in ids}) < 2:
        return Rounds(dict.fromkeys(FLIPS, 0), 0, 0)
    agents = sorted({id.agent for id in ids})
    answers = _answers(problem, turns, grader)
    rows: list[list[Truth]] = [[known[id] for id in ids if id.agent == agent] for agent in agents]
    steps = list(pairwise(sorted({id.round for id in ids})))
    followed = [
        follow
        for before, after in steps
        for agent in agents
        if (follow := _followed(answers, agents, agent, before, after)) is not None
    ]
    return Rounds(flips(rows), len(followed), sum(followed))


def _answers(problem: Problem, turns: Sequence[Turn], grader: Grader) -> dict[TurnId, int | None]:
    """Return the answer of each solution as a number, the same for answers that mean the same."""
    tally, found = Tally(problem, grader.environment, 0), dict[TurnId, int | None]()
    for turn in turns:
        answer = grader.answer(problem, turn)
        found[turn.id] = None if answer is None else tally.index_of(answer)
    return found


def _followed(
    answers: Mapping[TurnId, int | None], agents: Sequence[int], agent: int, before: int, after: int
) -> bool | None:
    """Return whether an agent took the answer of most others over; None where it had it, or one is none."""
    others = Counter(answers.get(TurnId(other, before)) for other in agents if other != agent)
    answer, count = others.most_common(1)[0] if others else (None, 0)
    own = answers.get(TurnId(agent, before))
    if own in (None, answer) or answer is None or 2 * count <= others.total():
        return None
    return answers.get(TurnId(agent, after)) == answer
