"""Computes the figures of an evaluation plan, in several grading modes, with diagnosis by a verifier model.

The 95% intervals of the figures are computed in ``debate_rl.metrics.intervals``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from debate import Policy, Problem, Turn
from debate.types import WITHOUT_TRUTH
from debate_rl.evaluation.grading import Graded, Verifying, grade_text, solution_text
from debate_rl.evaluation.play import EvalPlan, Played, Tell, Unopened, play
from debate_rl.evaluation.scores import Scores, scores
from debate_rl.metrics.answers import pass_at_k, powers_to
from envs import DataError, Environment
from envs.answers.keys import key_of
from envs.rubrics.model import CAUSES, approach, cause
from envs.rubrics.verdicts import Stated, Verdict
from envs.types import Mode
from transcripts import Record
from transcripts.causes import wrong_replies


def evaluate(
    plan: EvalPlan,
    policy: Policy | Unopened,
    folder: Path | None = None,
    *,
    modes: Sequence[Mode] = (),
    tell: Tell = lambda *_: None,
    diagnose: bool = False,
) -> Scores:
    """Play an evaluation plan and return its figures, also in the further grading modes ``modes``.

    Replies are stored in ``folder``. With ``diagnose``, the plan's verifier model also judges approaches and
    causes of errors. The policy must report tokens. Open problems are refused. DataError if
    the grader gave no verdict on any problem.
    """
    played = play(plan, policy, folder, tell=tell)
    figures = replace(scores(played, key_of(plan.environment)), mode=plan.mode)
    if not figures.problems:
        where = folder or "held_out"
        raise DataError(f"{where}: the grader gave no verdict on any of {len(plan.problems)} problems")
    if plan.verifying is not None:
        if diagnose:
            figures = _with_diagnosis(figures, played, plan.verifying)
        figures = replace(figures, asked=plan.verifying.checked_tally())
    return with_modes(figures, played, plan.environment, modes)


def check_modes(modes: Sequence[Mode], problems: Sequence[Problem]) -> None:
    """Raise ValueError if these problems cannot be graded in one of the modes."""
    if "first_letter" in modes and any(problem.kind != "choice" for problem in problems):
        raise ValueError("--modes first_letter: is for multiple choice, but some problems have no choices")


def with_modes(scores: Scores, played: Played, environment: Environment, modes: Sequence[Mode]) -> Scores:
    """Return the scores with accuracy, missing, pass@k and greedy accuracy in each further mode.

    As in other harnesses, the whole reply after its thinking is graded. The problems are those of ``scores``.
    A mode leaves out a problem if it gives no verdict on one of the replies.
    """
    known = {name for name, problem in scores.problems.items() if problem.kind not in WITHOUT_TRUTH}
    values = {name: dict(by_problem) for name, by_problem in scores.values.items()}
    samples = [_replies(group)[: played.solutions] for group in played.opening]
    greedy = [_replies([solution]) for solution in played.greedy]
    for mode in modes:
        for name, groups in (("direct/accuracy", samples), ("direct/greedy_accuracy", greedy)):
            found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
            for group in groups:
                id = group[0][0].id
                verdicts = [
                    grade_text(environment, problem, text, mode).verdict
                    for problem, text in group
                    if id in known
                ]
                if not verdicts or None in verdicts:
                    continue
                right = [verdict is True for verdict in verdicts]
                found[name][id] += map(float, right)
                if name == "direct/accuracy":
                    found["direct/missing"][id] += [float(verdict == "missing") for verdict in verdicts]
                    for k in powers_to(len(right))[1:]:
                        found[f"direct/pass@{k}"][id].append(pass_at_k(len(right), sum(right), k))
            values |= {f"{figure} [{mode}]": dict(by_problem) for figure, by_problem in found.items()}
    return replace(scores, values=values)


def _replies(parts: Sequence[Graded]) -> list[tuple[Problem, str]]:
    return [(part.debate.problem, _behind_thinking(turn)) for part in parts for turn in part.debate.turns]


def _behind_thinking(turn: Turn) -> str:
    """Return a reply without its thinking, or "" if the reply was cut off while thinking."""
    start = turn.parsed.thinking.end if turn.parsed.thinking else 0
    return turn.completion.stated[start:]


def _with_diagnosis(scores: Scores, played: Played, verifying: Verifying) -> Scores:
    """Return the scores with ``verifier/direct/approach``, and the fraction of wrong solutions by cause.

    Both are opinions of the verifier model under fixed rubrics, except for causes that the rules of
    ``envs.causes`` already determine.
    """
    model, values = verifying.model, defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    asked: list[tuple[str, Future[Verdict] | None, Future[Stated] | None]] = []  # ask before waiting
    for one in (one for group in played.opening for one in group):
        problem = one.debate.problem
        if problem.id in scores.problems and one.truth is not None:
            replies = wrong_replies(Record(one.debate, 0, problem.id, one.truth))
            wrong = {turn.id: reply for turn, reply in replies}
            for turn in one.debate.turns:
                text = solution_text(problem, turn)
                valid = approach(model, problem, text) if text else None
                asked.append((problem.id, valid, cause(model, wrong[turn.id]) if turn.id in wrong else None))
    for id, valid, why in asked:
        score = valid.result().score if valid else None
        if score is not None:
            values["verifier/direct/approach"][id].append(score)
        name = why.result().value if why else None
        for known in CAUSES if name is not None else ():
            values[f"verifier/direct/cause/{known}"][id].append(float(known == name))
    return replace(scores, values={**scores.values, **values})
