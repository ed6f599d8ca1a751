"""``debate eval passrate RECIPE|RUN``: measure how often a policy solves each problem without debate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import (
    plain_console,
    print_table,
    progress_of,
    with_interval,
    write_json,
)
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun, WeightsOption, writable
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import kept_folder, policy_of, requests_at_once, weights_named
from debate_rl.evaluation.folder import identity, open_folder
from debate_rl.evaluation.play import EvalPlan, Tell, Unopened, play
from debate_rl.formatting import counted, share
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.runs.provenance import checksum
from debate_rl.sampling.difficulty import (
    HELD_OUT_KEY,
    KEY,
    Difficulty,
    question_checksum,
    write_difficulty,
)
from debate_rl.sampling.load_problems import Problems, load_held_out, load_run_problems
from envs import DataError

MAX_SAMPLES = 1024
FILE = "difficulty.jsonl"
HEADS = ("problems", "pass rate", "never solved", "sometimes", "always", "missing")


def passrate(
    what: RecipeOrRun,
    overrides: Overrides = None,
    weights: WeightsOption = "newest",
    samples: Annotated[int, typer.Option(help="Number of solutions per problem.")] = 8,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Measure the held-out problems, for held_out.difficulty.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=writable, help="Also write the difficulty file to this path."),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Measure how often a policy solves each training problem. The same command resumes or adds samples.

    Set env.difficulty.path or held_out.difficulty to the difficulty file: docs/curriculum.md.
    """
    if not 1 <= samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {samples}: must be from 1 to {MAX_SAMPLES}")
    run, config = open_run_or_recipe(what, overrides or ())
    path = weights_named(run, weights, what)
    data = problems_to_measure(config, held_out=held_out)
    plan = pass_rate_plan(config, data, samples=samples, requests=requests_at_once(config))
    kept = identity(config, plan.problems, path, plan.seeds, direct=True)
    folder = kept_folder("passrates", run, config, path, kept)
    with open_folder(folder, kept), progress_of(str(folder)) as tell, policy_of(config, path) as policy:
        rows = measure(plan, policy, folder, tell=tell)
        of = measured_of(config, path, samples=samples)
        for file in (folder / FILE, *([Path(out)] if out else [])):
            write_difficulty(file, of, rows)
    figures = summary(rows, {problem.id: problem.level for problem in data.train})
    cells = [
        (
            f"{name}: {found['problems']}",
            with_interval(pass_rate),
            *(str(found[key]) for key in ("never", "sometimes", "always")),
            share(found["missing"]),
        )
        for name, (pass_rate, found) in figures.items()
    ]
    print_table([HEADS, *cells])
    say, file = plain_console().print, Path(out) if out else folder / FILE
    if without := len(data.train) - len(rows):
        say(f"left out {counted(without, 'problem')}: the grader gave no verdict")
    say(f"difficulty file: {file}; set {HELD_OUT_KEY if held_out else KEY}={file} to use it")
    if json is not None:
        plain = {name: found for name, (_, found) in figures.items()}
        write_json(json, {"file": str(file), "of": of, "figures": plain})


def problems_to_measure(config: Config, *, held_out: bool = False) -> Problems:
    """Return a run's training problems before any are dropped by measured difficulty.

    ``held_out``: return the held-out problems instead. Raise DataError if there are none.
    """
    if held_out:
        environment, problems = load_held_out(config)
        if not problems:
            raise DataError("held_out.limit: there are no held-out problems to measure")
        return Problems(environment, problems, (), {}, environment)
    env = config.env.model_copy(update={"difficulty": None})
    return load_run_problems(config.model_copy(update={"env": env}))


def pass_rate_plan(config: Config, data: Problems, *, samples: int, requests: int | None) -> EvalPlan:
    """Return the plan of an evaluation with ``samples`` solutions per problem and no debates.

    Raise DataError for a problem without a gold answer.
    """
    if known := next((problem.id for problem in data.train if problem.kind in ("open", "rubric")), None):
        raise DataError(f"{known}: has no gold answer, so it has no pass rate; choose other problems")
    more = {"requests": requests, "direct": True, "mode": config.grader.final, "tokens": False}
    live = config.train.max_live
    return EvalPlan(data.train, data.environment, config.debate, (0,), live, samples, **more)


def measure(
    plan: EvalPlan, policy: Unopened, folder: Path, *, tell: Tell = lambda *_: None
) -> list[Difficulty]:
    """Return how often each problem was solved, in order. Problems without a verdict are left out.

    Replies in ``folder`` are not sampled again. If the process is killed, only unfinished replies are lost.
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
    """Return the header of a difficulty file: all settings that determine the pass rates."""
    own = {} if weights is None else {"sha256": checksum(weights / "manifest.json")}
    return {
        "model": config.model.name_or_path or "tiny",
        "weights": "model" if weights is None else weights.name,
        **own,
        "prompts": config.debate.prompts,
        "grader": config.grader.final,
        "temperature": config.debate.agent_personas[0].temperature,
        "max_tokens": config.debate.max_tokens,
        "samples": samples,
    }


def summary(
    rows: Sequence[Difficulty], levels: Mapping[str, str]
) -> dict[str, tuple[Estimate, dict[str, float | int]]]:
    """Return pass rate and figures of all problems and of each level. ``levels``: problem id -> level.

    >>> rows = [Difficulty("p", "", 0, 4, 4), Difficulty("q", "", 4, 4), Difficulty("r", "", 2, 4)]
    >>> _, found = summary(rows, {"p": "", "q": "", "r": ""})["all"]
    >>> [found[name] for name in ("problems", "pass_rate", "never", "sometimes", "always")]
    [3, 0.5, 1, 1, 1]
    """
    names = sorted(set(levels.values()))
    groups = {"all": list(rows)}
    if len(names) > 1:
        groups |= {f"level {name or 'none'}": [r for r in rows if levels[r.id] == name] for name in names}
    found: dict[str, tuple[Estimate, dict[str, float | int]]] = {}
    for name, group in groups.items():
        if group:
            estimate = clustered_mean([row.pass_rate for row in group], [row.id for row in group])
            never, always = (sum(row.pass_rate == end for row in group) for end in (0, 1))
            bounds = {"pass_rate": estimate.value, "low": estimate.low, "high": estimate.high}
            counts = {"never": never, "sometimes": len(group) - never - always, "always": always}
            missing = sum(row.missing for row in group) / sum(row.samples for row in group)
            found[name] = estimate, {"problems": len(group), **bounds, **counts, "missing": missing}
    return found
