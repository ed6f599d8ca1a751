"""Held-out figures of an open run, with the transcripts of its evaluations."""

from __future__ import annotations

import json

from debate.seeds import derive_seed
from debate_rl.evaluation.evaluate import evaluate
from debate_rl.evaluation.folder import FIGURES, TRAINING, identity, training_folder
from debate_rl.evaluation.play import EvalPlan, is_alone
from debate_rl.evaluation.report import held_out, metrics, plain_rows
from debate_rl.evaluation.scores import Scores
from debate_rl.judge_attack.judging import JudgeWatch
from debate_rl.metrics.held_out import append_held_out
from debate_rl.runs.folder import write_whole
from debate_rl.runs.trainer_state import generators_kept
from debate_rl.sampling.load_problems import HeldOutProblems
from debate_rl.training.run import Run


def evaluate_held_out(run: Run, step: int) -> dict[str, float]:
    """Return the figures of all held-out sets, under the names of metrics.jsonl.

    The scores of each problem are written to held_out.jsonl. Evaluation does not change the run's random
    draws.
    """
    figures: dict[str, float] = {}
    for part in run.data.evaluated(run.config):
        with generators_kept():
            scores = scores_of(run, part, step)
        if not part.name:
            watch = JudgeWatch(run.folder.path, run.config, part, run.policy, run.tracker)
            scores, watched = watch.measure(scores, step)
            figures |= watched
            run.evaluations[step] = scores
        if (part.name, step) not in run.measured:
            append_held_out(run.folder.held_out, held_out(scores, step, data=part.name))
            run.measured.add((part.name, step))
        figures |= metrics(scores, part.name)
    return figures


def scores_of(run: Run, part: HeldOutProblems, step: int) -> Scores:
    """Return the scores of a held-out set. Its transcripts are stored as ``debate eval`` stores them."""
    config, named = run.config, [part.name] if part.name else []

    def tell(name: str, _done: int, total: int, work: float) -> None:
        run.tracker.advance(f"{' '.join(['evaluating', *named])}: {name}", work, total)

    plan = EvalPlan(
        part.problems,
        part.environment,
        config.debate,
        (derive_seed(config.seed, "held out", *named),),
        samples=part.settings.samples,
        direct=part.settings.direct or is_alone(config.debate),
        mode=config.grader.final,
        tokens=config.logging.transcript_tokens,
        verifying=run.verifying,
        summarizer=lambda: run.summarizer,
    )
    if not config.logging.evaluation_transcripts:
        return evaluate(plan, run.policy, modes=config.grader.beside, tell=tell)
    what = identity(config, part.problems, None, plan.seeds, direct=plan.direct) | {TRAINING: step}
    with training_folder(run.folder.path, step, part.name, what) as folder:
        scores = evaluate(plan, run.policy, folder, modes=config.grader.beside, tell=tell)
        write_whole(folder / FIGURES, json.dumps(plain_rows({str(run.folder.path): scores})).encode())
    return scores
