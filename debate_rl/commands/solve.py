"""``debate solve RUN|RECIPE PROBLEM|FILE|-``: answers by a strategy within a budget, a JSON line each."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate_rl.commands.console import INTERRUPTED, Ended, one_line, plain_console, write_json
from debate_rl.commands.options import JsonFile, Overrides, writable
from debate_rl.commands.play import Kind
from debate_rl.formatting import duration, safe_json

if TYPE_CHECKING:
    from debate import Problem
    from debate_rl.config import Config
    from debate_rl.strategies.answers_file import AnswersFile, Line
    from debate_rl.strategies.posing import Posed
    from debate_rl.strategies.solving import Refused, SolvePlan
    from debate_rl.strategies.work import Answered, Judge

HOUR = 3600.0


def solve(
    what: Annotated[
        str, typer.Argument(metavar="RUN|RECIPE", help="Whose model answers: a run, or a recipe as it is.")
    ],
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM|FILE|-",
            show_default=False,
            help="A problem; a file of them (.jsonl, .json, .parquet, else one a line); - reads a pipe.",
        ),
    ] = None,
    overrides: Overrides = None,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help="How to come to one answer (docs/solve.md lists all).")
    ] = "majority",
    samples: Annotated[int, typer.Option(help="Solutions of each problem, at most.")] = 16,
    tokens: Annotated[
        int | None, typer.Option(help="Generated tokens of each problem, at most.", show_default="no limit")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds for all problems together.", show_default="no limit")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="The same in hours.")] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|RECIPE|JUDGE", help="Whose model compares solutions; default: the same one."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the answers.")] = 0,
    weights: Annotated[
        str, typer.Option(help="Of a run: newest, best, start, or the step of a checkpoint.")
    ] = "newest",
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Problems at a time; default: as many as fill the engine.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="What answers are; default: the file's, else as mathematics.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Write the answers to this file as they come; an existing one is continued.",
        ),
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Say whether it fits --gpus and how fast it is; ask nothing.")
    ] = False,
    gpus: Annotated[str, typer.Option(metavar="NxNAME", help="With --plan: the GPUs, as 4xL4.")] = "1xL4",
    bits: Annotated[int, typer.Option(help="With --plan: bits of a weight, 16, 8 or 4.")] = 16,
    speed: Annotated[
        float | None, typer.Option(help="With --plan: generated tokens a second, as you measured them.")
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --plan: take speed and tokens from what --json wrote."),
    ] = None,
    problems: Annotated[int | None, typer.Option(min=1, help="With --plan: how many problems.")] = None,
    json: JsonFile = None,
) -> None:
    """Answer problems by a strategy, a JSON line each; with --out, run it again to continue."""
    from debate_rl.commands.solve_plan import deployment_of, show_plan
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.strategies.posing import nothing_posed, pose
    from debate_rl.strategies.solving import SolvePlan, strategy_named, with_tools

    entry = strategy_named(strategy)
    limit = _seconds(seconds, hours)
    if tokens is not None and tokens < 1:
        raise ValueError(f"--tokens {tokens}: needs 1 or more")
    if plan_only and problem is not None:  # a plan has no problem: the word is a setting
        overrides, problem = [problem, *(overrides or ())], None
    if problem is None and not plan_only:
        raise ValueError("solve: name a problem, a file of problems, or - for a pipe")
    run, config = open_run_or_recipe(what, overrides or ())
    if entry.tools:
        config = with_tools(config, "python")
    posed = nothing_posed() if problem is None else pose(problem, _piped(problem), config, kind)
    plan = SolvePlan.of(
        config,
        strategy,
        posed.environment,
        samples=samples,
        tokens=tokens,
        seconds=limit,
        seed=seed,
        at_once=at_once,
    )
    if plan_only:
        show_plan(config, plan, deployment_of(gpus, bits, speed, measured), problems=problems, json=json)
        return
    path = weights_named(run, weights, what)
    judges = judge_of(judge) if judge is not None and entry.compares else None
    if judge is not None and judges is None:
        raise ValueError(
            f"--judge {judge}: {strategy} asks no judge; leave it out, or choose another strategy"
        )
    plan.check(posed.problems, judges and judges[1].debate)
    what_decides = _settings(plan, config, path, judges)
    with _answers(out, what_decides) as kept:
        _solve(plan, posed, (config, path), judges, kept, json)


def _piped(problem: str) -> str | None:
    """Return what is piped in, where that is what is to be solved."""
    return sys.stdin.read() if problem == "-" else None


def _seconds(seconds: float | None, hours: float | None) -> float | None:
    """Return the seconds of all problems; ValueError for two limits, or one that is none."""
    if seconds is not None and hours is not None:
        raise ValueError("--seconds and --hours: give one of them")
    limit = seconds if hours is None else hours * HOUR
    if limit is not None and not 0 < limit < 1e9:
        name = "--seconds" if hours is None else "--hours"
        raise ValueError(f"{name} {seconds if hours is None else hours:g}: needs more than 0")
    return limit


def weights_named(run: Path | None, name: str, what: str) -> Path | None:
    """Return the checkpoint of a name; ValueError where it is not one."""
    if run is None:
        if name != "newest":
            raise ValueError(f"--weights {name}: {what} is a recipe, the model as it is; name a run")
        return None
    from debate_rl.runs.weights import named_weights

    chosen = named_weights(run, name)
    if len(chosen) != 1:
        raise ValueError(f"--weights {name}: is {len(chosen)} checkpoints; name one")
    return chosen[0]


def judge_of(name: str) -> tuple[str, Config, Path | None]:
    """Return what --judge names: its configuration and its newest weights."""
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.strategies.solving import with_tools

    run, config = open_run_or_recipe(name, ())
    return name, with_tools(config, "none"), weights_named(run, "newest", name)


def _settings(
    plan: SolvePlan, config: Config, weights: Path | None, judge: tuple[str, Config, Path | None] | None
) -> dict[str, Any]:
    """Return what decides the answers, as the head of the file has it."""
    from debate_rl.evaluation.folder import identity

    def of(config: Config, weights: Path | None) -> dict[str, Any]:
        facts = identity(config, (), weights, (plan.seed,), direct=True)
        return {key: value for key, value in facts.items() if key not in ("problems", "direct", "seeds")}

    return {
        "strategy": plan.strategy,
        "samples": plan.samples,
        "tokens": plan.tokens,
        "seconds": plan.seconds,
        "seed": plan.seed,
        "grader": plan.mode,
        **of(config, weights),
        "judge": None if judge is None else of(*judge[1:]),
    }


@contextmanager
def _answers(out: str | None, of: dict[str, Any]) -> Iterator[AnswersFile | None]:
    """Yield the file of answers; a command that is interrupted says what it leaves."""
    if out is None:
        yield None
        return
    from debate_rl.strategies.answers_file import AnswersFile

    file = AnswersFile(Path(out), of)
    try:
        yield file
    except KeyboardInterrupt as stop:
        raise Ended(f"stopped; {out} keeps its answers; the same command resumes", INTERRUPTED) from stop
    finally:
        file.close()


def _solve(
    plan: SolvePlan,
    posed: Posed,
    model: tuple[Config, Path | None],
    judge: tuple[str, Config, Path | None] | None,
    kept: AnswersFile | None,
    json: str | None,
) -> None:
    """Solve what has no answer yet; each line goes to the file, or to the standard output."""
    from debate_rl.commands.eval_sets import policy_of
    from debate_rl.strategies.solving import solve_all
    from debate_rl.strategies.work import Judge

    problems = posed.problems
    lines = [] if kept is None else list(kept.lines)
    todo = range(len(problems)) if kept is None else kept.missing(problems)
    if kept is not None and lines:
        plain_console(stderr=True).print(f"{len(lines)} answers are there; {len(todo)} problems are left")
    begun = 0.0

    def told(number: int, found: Answered | Refused) -> None:
        line = line_of(problems[todo[number]], found, posed)
        lines.append(line)
        _tell(line, kept, len(problems))

    if todo:
        with policy_of(*model) as policy, policy_of(*judge[1:]) if judge else nullcontext() as compares:
            judging: Judge | None = None
            if judge is not None and compares is not None:
                judging = Judge(compares.open(), judge[1].debate)
            speaker, begun = policy.open(), time.perf_counter()
            solve_all([problems[i] for i in todo], plan, speaker, judge=judging, told=told)
    _end(plan, lines, time.perf_counter() - begun, len(todo), posed, json)


def line_of(problem: Problem, found: Answered | Refused, posed: Posed) -> Line:
    """Return the line of what came of a problem, graded where there is a gold answer."""
    from debate_rl.difficulty import question_checksum
    from debate_rl.evaluation.grading import grade_turn
    from debate_rl.strategies.answers_file import Line
    from debate_rl.strategies.solving import Refused

    if isinstance(found, Refused):
        return Line(problem.id, question_checksum(problem), problem.question, refused=found.reason)
    right: bool | None = None
    if not posed.ungraded:
        right = False
        if found.turn is not None:
            verdict = grade_turn(posed.environment, problem, found.turn, posed.mode).verdict
            right = None if verdict is None else verdict is True
    return Line.of(problem, found, right)


def _tell(line: Line, kept: AnswersFile | None, count: int) -> None:
    """Keep or print a line as JSON, and say on the standard error what the answer is."""
    if kept is None:
        typer.echo(safe_json(line.text()))
    else:
        kept.write(line)
    say = plain_console(stderr=True).print
    if line.refused:
        say(f"{line.id}: refused: {one_line(line.refused)}")
        return
    name = f"{line.id}: " if count > 1 else ""
    mark = {True: ", right", False: ", wrong", None: ""}[line.right]
    share = f" ({line.shares[0][1]:.0%} of the weight)" if line.shares else ""
    text = "no answer" if line.answer is None else one_line(line.answer) or "(empty)"
    say(
        f"{name}{text}{mark}{share}; {line.tokens_generated:,} tokens, {duration(line.seconds)}, {line.ended}"
    )


def _end(
    plan: SolvePlan, lines: Sequence[Line], seconds: float, solved: int, posed: Posed, json: str | None
) -> None:
    """Say on the standard error what all of it was worth; write the figures."""
    from debate_rl.strategies.answers_file import summary, summary_lines

    names = {problem.id for problem in posed.problems}
    here = [line for line in lines if line.id in names]
    figures = summary(here, seconds=seconds, solved=solved)
    if len(here) > 1:
        for text in summary_lines(figures):
            plain_console(stderr=True).print(text)
    if posed.ungraded and len(here) > 1:
        plain_console(stderr=True).print(f"answers are not graded: {posed.ungraded}")
    if json is not None:
        write_json(json, {"strategy": plan.strategy, "samples": plan.samples, **figures})
    if here and all(line.refused for line in here):
        raise ValueError(here[0].refused)
