"""What becomes of agents from round to round: corrected or misled, and whether they follow the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from debate import Problem, Turn
from debate.types import TurnId
from debate_rl.metrics.intervals import Estimate, ratio
from debate_rl.strategies.equal_cost import Comparison, Grader, Measured
from debate_rl.strategies.voting import Tally
from rewards import Truth
from rewards.truth import FLIPS, flips


class Rounds(NamedTuple):
    """Steps of agents from one round to the next, on one problem: how many went each way.

    ``flips``: right ("c") or wrong ("w") before and after, as ``rewards.truth.flips``. ``pressed``: the steps
    of agents whose answer was another one than that of more than half of the others; ``followed``: those of
    them behind which the agent gave that answer.
    """

    flips: Mapping[str, int]
    pressed: int
    followed: int


def rounds_by_problem(ladder: Comparison, one: Measured) -> dict[str, Rounds]:
    """Return the steps of the agents of a rung, by the id of each problem that has verdicts."""
    found: dict[str, Rounds] = {}
    for problem, answered in zip(ladder.problems, one.answers, strict=True):
        if problem.id in one.right:
            grades: list[Truth] = [ladder.grader.grade(problem, turn) for turn in answered.turns]
            found[problem.id] = rounds_of(problem, answered.turns, grades, ladder.grader)
    return found


def round_figures(rounds: Mapping[str, Rounds]) -> dict[str, Estimate | None]:
    """Return three shares of steps; None if there are none.

    ``corrected``: of those that were wrong in a round, those that are right in the next; ``misled``: of those
    that were right, those that are wrong; ``conformity``: of those whose answer was not that of most others,
    those that then give it.
    """
    every, codes = list(rounds.values()), np.arange(len(rounds))
    ways = {way: [each.flips[way] for each in every] for way in FLIPS}
    return {
        "corrected": ratio(ways["wc"], np.add(ways["wc"], ways["ww"]), codes),
        "misled": ratio(ways["cw"], np.add(ways["cw"], ways["cc"]), codes),
        "conformity": ratio([each.followed for each in every], [each.pressed for each in every], codes),
    }


def rounds_of(problem: Problem, turns: Sequence[Turn], grades: Sequence[Truth], grader: Grader) -> Rounds:
    """Return what became of the agents on one problem; ``turns`` are all solutions, of every round."""
    known: dict[TurnId, Truth] = {turn.id: grade for turn, grade in zip(turns, grades, strict=True)}
    numbers = sorted({id.round for id in known})
    if len(numbers) < 2:
        return Rounds(dict.fromkeys(FLIPS, 0), 0, 0)
    agents = sorted({id.agent for id in known})
    tally, answers = Tally(problem, grader.environment, 0), dict[TurnId, int | None]()
    for turn in turns:
        answer = grader.answer(problem, turn)
        answers[turn.id] = None if answer is None else tally.index_of(answer)
    followed = list[bool]()
    for before, after in pairwise(numbers):
        for agent in agents:
            others = Counter(answers.get(TurnId(other, before)) for other in agents if other != agent)
            answer, times = others.most_common(1)[0] if others else (None, 0)
            own = answers.get(TurnId(agent, before))
            if own is not None and answer not in (None, own) and 2 * times > others.total():
                followed.append(answers.get(TurnId(agent, after)) == answer)
    rows: list[list[Truth]] = [[known[id] for id in sorted(known) if id.agent == agent] for agent in agents]
    return Rounds(flips(rows), len(followed), sum(followed))
