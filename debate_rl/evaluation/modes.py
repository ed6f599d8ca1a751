"""Single answers under other graders' modes, from the replies as they were kept: nothing is sampled again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from debate import Problem, Turn
from debate.types import WITHOUT_TRUTH
from debate_rl.evaluation.grading import Graded, grade_text
from debate_rl.evaluation.play import Played
from debate_rl.evaluation.scores import Scores
from debate_rl.metrics.answers import pass_at_k, powers_to
from envs import Environment
from envs.types import Mode


def check_modes(modes: Sequence[Mode], problems: Sequence[Problem]) -> None:
    """ValueError where these problems cannot be graded in one of the modes."""
    if "first_letter" in modes and any(problem.kind != "choice" for problem in problems):
        raise ValueError("--modes first_letter: is for multiple choice, and not all of these problems are")


def with_modes(scores: Scores, played: Played, environment: Environment, modes: Sequence[Mode]) -> Scores:
    """Return the scores with accuracy, missing, pass@k and greedy accuracy of each mode beside them.

    What is graded is the whole reply behind its thinking, as other harnesses do, on the problems of the
    scores; one of which a mode gives no verdict on some reply is left out under that mode.
    """
    if not modes:
        return scores
    graded = {name for name, problem in scores.problems.items() if problem.kind not in WITHOUT_TRUTH}
    values = {name: dict(by_problem) for name, by_problem in scores.values.items()}
    for mode in modes:
        samples = zip(played.opening, played.further, strict=True)
        groups = [_replies((*opening, *further))[: played.solutions] for opening, further in samples]
        greedy = [_replies([solution]) for solution in played.greedy]
        for name, replies in (("direct/accuracy", groups), ("direct/greedy_accuracy", greedy)):
            _put(values, name, mode, [g for g in replies if g[0][0].id in graded], environment)
    return replace(scores, values=values)


def _replies(parts: Sequence[Graded]) -> list[tuple[Problem, str]]:
    debates = [graded.debate for graded in parts]
    return [(debate.problem, behind_thinking(turn)) for debate in debates for turn in debate.turns]


def behind_thinking(turn: Turn) -> str:
    """Return a reply without its thinking: nothing where its end cut that off."""
    start = turn.parsed.thinking.end if turn.parsed.thinking else 0
    return turn.completion.stated[start:]


def _put(
    values: dict[str, dict[str, Sequence[float]]],
    name: str,
    mode: Mode,
    groups: Sequence[Sequence[tuple[Problem, str]]],
    environment: Environment,
) -> None:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        verdicts = [grade_text(environment, problem, text, mode).verdict for problem, text in group]
        if None not in verdicts:
            right, id = [verdict is True for verdict in verdicts], group[0][0].id
            found[name][id] += map(float, right)
            if name == "direct/accuracy":
                found["direct/missing"][id] += [float(verdict == "missing") for verdict in verdicts]
                for k in powers_to(len(right))[1:]:
                    found[f"direct/pass@{k}"][id].append(pass_at_k(len(right), sum(right), k))
    values |= {f"{figure} [{mode}]": dict(by_problem) for figure, by_problem in found.items()}
