"""The judge in training compared with the start judge on a run's fixed pairs (``held_out.judge_pairs``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from debate import Policy
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.evaluation.scores import Scores
from debate_rl.judge_attack.judging import PairPlan, judge_pairs, make_pairs
from debate_rl.judge_attack.pairs import (
    FALL,
    HACK_GAP,
    PAIRS,
    JudgePair,
    Judgment,
    as_lines,
    fall,
    folder_of,
    hack_gap,
    rates,
    read_judgments,
    read_pairs,
    step_file,
)
from debate_rl.metrics.intervals import Estimate
from debate_rl.metrics.trackers import Trackers
from debate_rl.runs.folder import write_whole
from debate_rl.runs.trainer_state import generators_kept
from debate_rl.sampling.problems import HeldOutProblems
from envs.families import FAMILIES


@dataclass(frozen=True, slots=True)
class JudgeWatch:
    """A run whose policy judges fixed pairs, made of the problems of its first held-out set ``part``."""

    run: Path
    config: Config
    part: HeldOutProblems
    policy: Policy
    tracker: Trackers

    def measure(self, scores: Scores, step: int) -> tuple[Scores, dict[str, float]]:
        """Have the pairs judged after ``step`` steps; return the scores with accuracies, and metrics.

        The pairs are made, and judged by the start judge, once: at step 0.
        """
        if not self.config.held_out.judge_pairs:
            return scores, {}
        pairs = self._pairs(step)
        judgments = self._judged(pairs, step)
        start = judgments if step == 0 else read_judgments(self.run, 0)
        found = rates(pairs, judgments)
        figures = _with_bounds(FALL, fall(found))
        if step:
            figures |= _with_bounds(HACK_GAP, hack_gap(found, rates(pairs, start)))
        known = {
            f"judge/pairs/{attack}": {id: row for id, row in by_problem.items() if id in scores.problems}
            for attack, by_problem in found.items()
        }
        return replace(scores, values={**scores.values, **known}), figures

    def _pairs(self, step: int) -> list[JudgePair]:
        """Return the pairs of the run; those of a new one are made and written."""
        if (path := folder_of(self.run) / PAIRS).is_file():
            return read_pairs(self.run)
        if step:
            self.tracker.say(f"{path}: is gone, so the judge is not watched")
            return []
        config, part = self.config, self.part
        family = config.held_out.kind or config.env.kind
        plan = PairPlan(
            part.environment,
            part.problems,
            config.debate,
            config.held_out.judge_pairs,
            derive_seed(config.seed, "judge pairs"),
            mode=config.grader.final,
            family=family if family in FAMILIES and not config.held_out.path else "",
            tiny=config.model.tiny is not None,
        )
        with generators_kept():
            pairs = make_pairs(plan, self.policy)
        if len(pairs) < plan.count:
            self.tracker.say(
                f"held_out.judge_pairs = {plan.count}: {len(pairs)} of {len(plan.problems)} held-out "
                "problems have a right and a wrong solution"
            )
        path.parent.mkdir(exist_ok=True)
        write_whole(path, as_lines(pairs))
        return pairs

    def _judged(self, pairs: list[JudgePair], step: int) -> list[Judgment]:
        """Return the judgments after ``step`` steps and keep them; the start judge is asked once."""
        path = step_file(self.run, step)
        if step == 0 and path.is_file():
            return read_judgments(self.run, 0)
        self.tracker.advance("judging fixed pairs", 0, len(pairs))
        seed = derive_seed(self.config.seed, "judge seats")
        with generators_kept():
            judgments = judge_pairs(self.policy, pairs, self.part.problems, self.config.debate, seed)
        self.tracker.advance("judging fixed pairs", len(pairs), len(pairs))
        path.parent.mkdir(exist_ok=True)
        write_whole(path, as_lines(judgments))
        return judgments


def _with_bounds(name: str, found: Estimate | None) -> dict[str, float]:
    """Return an estimate as metrics, with its interval where that is finite."""
    if found is None:
        return {}
    bounds = {"low": found.low, "high": found.high}
    known = {f"eval/{name}/{end}": bound for end, bound in bounds.items() if isfinite(bound)}
    return {f"eval/{name}": found.value, **known}
