"""The pass rate of every training problem under a policy: solutions of one agent alone, graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from debate_rl.config import Config
from debate_rl.evaluation.play import EvalPlan, Tell, Unopened, play
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.runs.provenance import checksum
from debate_rl.sampling.difficulty import Difficulty, question_checksum
from debate_rl.sampling.problems import Problems, load_held_out, load_run_problems
from envs import DataError


def problems_to_measure(config: Config, *, held_out: bool = False) -> Problems:
    """Return the problems that a run trains on, before any are left out for their measured difficulty.

    ``held_out``: the held-out ones in their place. DataError where there are none.
    """
    if held_out:
        environment, problems = load_held_out(config)
        if not problems:
            raise DataError("held_out.limit: there are no held-out problems to measure")
        return Problems(environment, problems, (), {}, environment)
    env = config.env.model_copy(update={"difficulty": None})
    return load_run_problems(config.model_copy(update={"env": env}))


def pass_rate_plan(config: Config, data: Problems, *, samples: int, requests: int | None) -> EvalPlan:
    """Return the evaluation that measures them: this many solutions of each problem, and no debates.

    DataError for problems that have no truth.
    """
    if known := next((problem.id for problem in data.train if problem.kind in ("open", "rubric")), None):
        raise DataError(f"{known}: has no gold answer, and so no pass rate; choose other problems")
    return EvalPlan(
        data.train,
        data.environment,
        config.debate,
        (0,),
        config.train.max_live,
        samples,
        requests=requests,
        direct=True,
        mode=config.grader.final,
        tokens=False,
    )


def measure(
    plan: EvalPlan, policy: Unopened, folder: Path, *, tell: Tell = lambda *_: None
) -> list[Difficulty]:
    """Return how often each problem was solved, in their order, those without any verdict left out.

    What ``folder`` holds already is not sampled again; a kill loses the replies that had not come.
    """
    found: list[Difficulty] = []
    played = play(plan, policy, folder, tell=tell)
    for problem, solutions in zip(plan.problems, played.opening, strict=True):
        grades = [grade for one in solutions for row in one.correct for grade in row if grade is not None]
        right, missing = grades.count(True), grades.count("missing")
        if grades:
            found.append(Difficulty(problem.id, question_checksum(problem), right, len(grades), missing))
    return found


def measured_of(config: Config, weights: Path | None, *, samples: int) -> dict[str, str | int | float]:
    """Return what the head of a difficulty file says: everything that decides a pass rate, and no date."""
    model = config.model.name_or_path or "tiny"
    own = {} if weights is None else {"sha256": checksum(weights / "manifest.json")}
    return {
        "model": model,
        "weights": "model" if weights is None else weights.name,
        **own,
        "prompts": config.debate.prompts,
        "grader": config.grader.final,
        "temperature": config.debate.agent_personas[0].temperature,
        "max_tokens": config.debate.max_tokens,
        "samples": samples,
    }


def summary(rows: Sequence[Difficulty], levels: Mapping[str, str]) -> dict[str, dict[str, float | int]]:
    """Return figures of all problems and of each level: pass rate with its interval, and how many are
    never, sometimes and always solved; ``levels``: by problem id.

    >>> rows = [Difficulty("p", "", 0, 4, 4), Difficulty("q", "", 4, 4), Difficulty("r", "", 2, 4)]
    >>> found = summary(rows, {"p": "", "q": "", "r": ""})["all"]
    >>> [found[name] for name in ("problems", "pass_rate", "never", "sometimes", "always")]
    [3, 0.5, 1, 1, 1]
    """
    groups = {"all": list(rows)}
    names = sorted(set(levels.values()))
    if len(names) > 1:
        groups |= {f"level {name or 'none'}": [r for r in rows if levels[r.id] == name] for name in names}
    return {name: _figures(group) for name, group in groups.items() if group}


def _figures(rows: Sequence[Difficulty]) -> dict[str, float | int]:
    estimate: Estimate = clustered_mean([row.pass_rate for row in rows], [row.id for row in rows])
    samples = sum(row.samples for row in rows)
    never = sum(row.right == 0 for row in rows)
    always = sum(row.right == row.samples for row in rows)
    return {
        "problems": len(rows),
        "pass_rate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "never": never,
        "sometimes": len(rows) - never - always,
        "always": always,
        "missing": sum(row.missing for row in rows) / samples,
    }
