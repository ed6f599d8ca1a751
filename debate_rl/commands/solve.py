"""``debate solve RUN|RECIPE PROBLEM|FILE|-``: answer problems by a strategy, one JSON line each."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from debate_rl.commands.console import INTERRUPTED, Ended, one_line, plain_console, write_json
from debate_rl.commands.options import (
    JsonFile,
    JudgeOption,
    KindOption,
    Overrides,
    ProblemsOption,
    SeedOption,
    WeightsOption,
    positive,
    writable,
)
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import judge_of, policy_of, weights_named
from debate_rl.evaluation.folder import identity
from debate_rl.formatting import counted, duration, safe_json
from debate_rl.strategies.answers_file import AnswersFile, Line, line_of, summary, summary_lines
from debate_rl.strategies.posing import Posed, pose
from debate_rl.strategies.solving import Refused, check_plan, solve_all, strategy_named, with_tools
from debate_rl.strategies.work import Answered, Judge, SolvePlan
from envs import load_environment

HOUR = 3600.0
Model = tuple[Config, Path | None]


def solve(
    what: Annotated[
        str, typer.Argument(metavar="RUN|RECIPE", help="A run, or a recipe (uses its untrained model).")
    ],
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM|FILE|-",
            show_default=False,
            help="A problem, a file of problems (.jsonl, .json, .parquet, or one per line), or - for stdin.",
        ),
    ] = None,
    overrides: Overrides = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Strategy that selects the answer (docs/solve.md lists all strategies)."
        ),
    ] = "majority",
    samples: Annotated[int, typer.Option(help="Maximum number of solutions per problem.")] = 16,
    tokens: Annotated[
        int | None,
        typer.Option(
            callback=positive,
            help="Maximum number of generated tokens per problem.",
            show_default="no limit",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Time limit in seconds for all problems together.", show_default="no limit"),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(help="Time limit in hours for all problems together.")
    ] = None,
    judge: JudgeOption = None,
    seed: SeedOption = 0,
    weights: WeightsOption = "newest",
    at_once: Annotated[
        int | None,
        typer.Option(min=1, help="Number of concurrent problems; default: as many as fill the engine."),
    ] = None,
    kind: KindOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Write each answer to this file at once, and resume an existing file.",
        ),
    ] = None,
    plan_only: Annotated[
        bool,
        typer.Option("--plan", help="Print whether the model fits --gpus and its speed, without sampling."),
    ] = False,
    gpus: Annotated[
        str, typer.Option(metavar="NxNAME", help="With --plan: the GPUs, such as 4xL4.")
    ] = "1xL4",
    bits: Annotated[int, typer.Option(help="With --plan: bits per weight: 16, 8 or 4.")] = 16,
    speed: Annotated[
        float | None, typer.Option(help="With --plan: measured number of generated tokens per second.")
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="With --plan: take speed and tokens from a file that --json wrote."
        ),
    ] = None,
    problems: ProblemsOption = None,
    json: JsonFile = None,
) -> None:
    """Answer problems by a strategy, one JSON line each. With --out, the same command resumes."""
    entry, limit = strategy_named(strategy), _seconds(seconds, hours)
    if plan_only and problem is not None:  # a plan takes no problem, so the word is an override
        overrides, problem = [problem, *(overrides or ())], None
    run, config = open_run_or_recipe(what, overrides or ())
    if entry.tools:
        config = with_tools(config, "python")
    budget = {"samples": samples, "tokens": tokens, "seconds": limit, "seed": seed, "at_once": at_once}
    if plan_only:
        from debate_rl.forecast.deployment import deployment, deployment_of, plan_lines  # load torch

        plan = SolvePlan.of(config, strategy, load_environment("gsm8k"), **budget)
        figures = deployment(config, plan, deployment_of(gpus, bits, speed, measured), problems=problems)
        plain_console().print(*plan_lines(figures), sep="\n")
        if json is not None:
            write_json(json, figures)
        return
    if problem is None:
        raise ValueError("solve: name a problem, a file of problems, or - for a pipe")
    posed = pose(problem, sys.stdin.read() if problem == "-" else None, config, kind)
    posed = replace(posed, problems=posed.problems[:problems])
    plan = SolvePlan.of(config, strategy, posed.environment, **budget)
    path = weights_named(run, weights, what)
    if judge is not None and not entry.compares:
        raise ValueError(
            f"--judge {judge}: {strategy} uses no judge; leave it out, or choose another strategy"
        )
    judges = None if judge is None else judge_of(judge)
    check_plan(plan, posed.problems, judges and judges[0].debate)
    kept = None if out is None else AnswersFile(Path(out), _settings(plan, config, path, judges))
    try:
        _solve(plan, posed, (config, path), judges, kept, json)
    except KeyboardInterrupt as stop:
        if kept is None:
            raise
        raise Ended(f"stopped; {out} keeps its answers; the same command resumes", INTERRUPTED) from stop
    finally:
        if kept is not None:
            kept.close()


def _seconds(seconds: float | None, hours: float | None) -> float | None:
    """Return the time limit in seconds. Raise ValueError for two limits or an invalid limit."""
    if seconds is not None and hours is not None:
        raise ValueError("--seconds and --hours: give only one of them")
    limit = seconds if hours is None else hours * HOUR
    if limit is not None and not 0 < limit < 1e9:
        name = "--seconds" if hours is None else "--hours"
        raise ValueError(f"{name} {seconds if hours is None else hours:g}: must be greater than 0")
    return limit


def _settings(plan: SolvePlan, config: Config, weights: Path | None, judge: Model | None) -> dict[str, Any]:
    """Return all settings that determine the answers, for the header of the answers file."""

    def of(config: Config, weights: Path | None) -> dict[str, Any]:
        facts = identity(config, (), weights, (plan.seed,), direct=True)
        return {key: value for key, value in facts.items() if key not in ("problems", "direct", "seeds")}

    own = {name: getattr(plan, name) for name in ("strategy", "samples", "tokens", "seconds", "seed")}
    its = None if judge is None else of(*judge)
    return {**own, "grader": plan.mode, **of(config, weights), "judge": its}


def _solve(
    plan: SolvePlan,
    posed: Posed,
    model: Model,
    judge: Model | None,
    kept: AnswersFile | None,
    json: str | None,
) -> None:
    """Solve the problems that have no stored answer.

    Write each answer to the file or to standard output, and a summary to standard error.
    """
    problems, say = posed.problems, plain_console(stderr=True).print
    lines = [] if kept is None else list(kept.lines)
    todo = problems if kept is None else kept.missing(problems)
    if lines:
        say(f"{len(lines)} answers are already in the file; {len(todo)} problems are left")

    def on_answer(number: int, found: Answered | Refused) -> None:
        line = line_of(todo[number], found, posed, plan.mode)
        lines.append(line)
        if kept is None:
            typer.echo(safe_json(msgspec.json.encode(line).decode()))
        else:
            kept.write(line)
        say(_in_words(line, f"{line['id']}: " if len(problems) > 1 else "", found))

    begun = time.perf_counter()
    if todo:
        with ExitStack() as stack:
            policy = stack.enter_context(policy_of(*model)).open()
            compares = judge and Judge(stack.enter_context(policy_of(*judge)).open(), judge[0].debate)
            begun = time.perf_counter()
            solve_all(todo, plan, policy, judge=compares, on_answer=on_answer)
    names = {problem.id for problem in problems}
    here = [line for line in lines if line["id"] in names]
    figures = summary(here, seconds=time.perf_counter() - begun, solved=len(todo))
    if len(here) > 1:
        ungraded = [f"answers are not graded: {posed.ungraded}"] if posed.ungraded else []
        say(*summary_lines(figures), *ungraded, sep="\n")
    if json is not None:
        write_json(json, {"strategy": plan.strategy, "samples": plan.samples, **figures})
    if here and all(line["refused"] for line in here):
        raise ValueError(here[0]["refused"])


def _in_words(line: Line, name: str, found: Answered | Refused) -> str:
    if isinstance(found, Refused):
        return f"{line['id']}: refused: {one_line(line['refused'])}"
    mark = {True: ", right", False: ", wrong", None: ""}[line["right"]]
    share = f" ({line['shares'][0][1]:.0%} of the weight)" if line["shares"] else ""
    text = f"no answer: {_why_none(found)}" if found.answer is None else one_line(found.answer) or "(empty)"
    spent = f"{line['tokens_generated']:,} tokens, {duration(line['seconds'])}"
    return f"{name}{text}{mark}{share}; {spent}, {line['ended']}"


def _why_none(found: Answered) -> str:
    """Return why there is no answer."""
    if found.shares:
        return "no vote or comparison selected one of the solutions"
    solutions = [turn for turn in found.turns if not turn.ballot]
    if not solutions:
        return "no solution was completed within the budget"
    cut = sum(turn.completion.stop_reason == "length" for turn in solutions)
    form = "states an answer in the required form"
    return f"none of {counted(len(solutions), 'solution')} {form}; {cut} ended at debate.max_tokens"
