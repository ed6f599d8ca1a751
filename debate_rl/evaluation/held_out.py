"""Held-out figures during training: those of ``debate eval``, under the names of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

from debate import DebateConfig, Policy, Problem
from debate_rl.evaluation.play import Examination, play
from debate_rl.evaluation.report import rows
from debate_rl.evaluation.scores import Scores, scores
from envs import DataError, Environment
from envs.answers.keys import key_of


def evaluate(
    policy: Policy, environment: Environment, problems: Sequence[Problem], *, config: DebateConfig, seed: int
) -> Scores:
    """Return the figures of one debate per problem and of self-consistency at equal generated tokens.

    The policy must report tokens. Problems without an answer are refused. DataError when the grader gave no
    verdict on any problem.
    """
    found = scores(play(Examination(problems, environment, config, (seed,)), policy), key_of(environment))
    if not found.problems:
        raise DataError(f"held_out: the grader gave no verdict on any of {len(problems)} problems")
    return found


def metrics(found: Scores) -> dict[str, float]:
    """Return the figures over all problems as "eval/...", with their 95% bounds under "/low" and "/high".

    With one problem there are no bounds.
    """
    counts = {"problems": len(found.problems), "ungraded": found.ungraded, "direct/samples": found.samples}
    figures = {f"eval/{name}": float(count) for name, count in counts.items()}
    for row in rows(found):
        if not row.group:
            estimate, name = row.estimate, f"eval/{row.name}"
            figures[name] = estimate.value
            if estimate.clusters > 1:
                figures |= {f"{name}/low": estimate.low, f"{name}/high": estimate.high}
    return figures
