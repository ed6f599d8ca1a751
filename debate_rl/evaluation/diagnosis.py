"""Direct solutions as a verifier model sees them: whether the approach is valid, and why one is wrong.

Opinions by fixed rubrics. What the rules of ``envs.causes`` know of a wrong solution is not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace

from debate import Problem
from debate_rl.evaluation.grading import Graded, Verifying, solution_text
from debate_rl.evaluation.play import Played
from debate_rl.evaluation.scores import Scores
from envs.rubrics.diagnosis import CAUSES, approach, cause
from envs.rubrics.verdicts import Stated, Verdict
from transcripts import Record
from transcripts.causes import wrong_replies


@dataclass(frozen=True, slots=True)
class Asked:
    """What is being waited for about one direct solution."""

    problem: Problem
    approach: Future[Verdict] | None
    cause: Future[Stated] | None


def with_diagnosis(scores: Scores, played: Played, verifying: Verifying) -> Scores:
    """Return the scores with ``verifier/direct/approach``, and each cause's share of the wrong solutions."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    parts = [
        one for pair in zip(played.opening, played.further, strict=True) for part in pair for one in part
    ]
    asked = [
        ask for one in parts if one.debate.problem.id in scores.problems for ask in _begin(one, verifying)
    ]
    for one in asked:
        valid = one.approach.result().score if one.approach else None
        if valid is not None:
            values["verifier/direct/approach"][one.problem.id].append(valid)
        name = one.cause.result().value if one.cause else None
        for known in CAUSES if name is not None else ():
            values[f"verifier/direct/cause/{known}"][one.problem.id].append(float(known == name))
    return replace(scores, values={**scores.values, **values})


def _begin(one: Graded, verifying: Verifying) -> Iterator[Asked]:
    """Begin with each solution of a debate that has grades."""
    debate = one.debate
    record = Record(debate, 0, debate.problem.id, one.truth)
    wrong = {turn.id: reply for turn, reply in wrong_replies(record)}
    for turn in debate.turns if one.truth is not None else ():
        text = solution_text(debate.problem, turn)
        yield Asked(
            debate.problem,
            approach(verifying.model, debate.problem, text) if text else None,
            cause(verifying.model, wrong[turn.id]) if turn.id in wrong else None,
        )
