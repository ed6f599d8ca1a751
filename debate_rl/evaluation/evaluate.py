"""An evaluation from its plan to its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from debate import Policy
from debate_rl.evaluation.diagnosis import with_diagnosis
from debate_rl.evaluation.modes import with_modes
from debate_rl.evaluation.play import EvalPlan, Tell, Unopened, play
from debate_rl.evaluation.scores import Scores, scores
from envs import DataError
from envs.answers.keys import key_of
from envs.types import Mode


def evaluate(
    plan: EvalPlan,
    policy: Policy | Unopened,
    folder: Path | None = None,
    *,
    modes: Sequence[Mode] = (),
    tell: Tell = lambda *_: None,
    diagnose: bool = False,
) -> Scores:
    """Return the figures of what a plan plays, also under these modes; ``folder`` keeps what was said.

    ``diagnose``: the plan's verifier model is also asked about approaches and causes. The policy must report
    tokens. Problems without an answer are refused. DataError when the grader gave no verdict on any problem.
    """
    played = play(plan, policy, folder, tell=tell)
    figures = replace(scores(played, key_of(plan.environment)), mode=plan.mode)
    if not figures.problems:
        where = folder or "held_out"
        raise DataError(f"{where}: the grader gave no verdict on any of {len(plan.problems)} problems")
    if plan.verifying is not None:
        if diagnose:
            figures = with_diagnosis(figures, played, plan.verifying)
        figures = replace(figures, asked=plan.verifying.checked_tally())
    return with_modes(figures, played, plan.environment, modes)
