"""What the weights of a session are worth on a held-out set, and where what they said is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from debate.seeds import derive_seed
from debate_rl.evaluation.evaluate import evaluate
from debate_rl.evaluation.folder import FIGURES, TRAINING, identity, training_folder
from debate_rl.evaluation.play import EvalPlan, is_alone
from debate_rl.evaluation.report import plain_rows
from debate_rl.evaluation.scores import Scores
from debate_rl.problems import HeldOutProblems
from debate_rl.runs.folder import write_whole

if TYPE_CHECKING:
    from debate_rl.training.session import Session


def evaluate_on(session: Session, part: HeldOutProblems, step: int) -> Scores:
    """Return the figures of a held-out set; what is said is kept as ``debate eval`` keeps it."""
    config = session.config

    def tell(name: str, _done: int, total: int, work: float) -> None:
        session.tracker.advance(
            f"evaluating {part.name}: {name}" if part.name else f"evaluating: {name}", work, total
        )

    plan = EvalPlan(
        part.problems,
        part.environment,
        config.debate,
        (derive_seed(config.seed, "held out", *([part.name] if part.name else [])),),
        samples=part.settings.samples,
        direct=part.settings.direct or is_alone(config.debate),
        mode=config.grader.final,
        tokens=config.logging.transcript_tokens,
        verifying=session.verifying,
        summarizer=lambda: session.summarizer,
    )
    if not config.logging.evaluation_transcripts:
        return evaluate(plan, session.policy, modes=config.grader.beside, tell=tell)
    what = identity(config, part.problems, None, plan.seeds, direct=plan.direct) | {TRAINING: step}
    with training_folder(session.folder.path, step, part.name, what) as folder:
        scores = evaluate(plan, session.policy, folder, modes=config.grader.beside, tell=tell)
        write_whole(folder / FIGURES, json.dumps(plain_rows({str(session.folder.path): scores})).encode())
    return scores
