"""``debate doctor CONFIG [key=value ...]``: check whether a recipe is ready to train."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import NO_GO, STDOUT_NAME, one_line, plain_console, write_json
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import refuse_missing_parts
from debate_rl.preflight.check import Check, is_go, summary
from debate_rl.sampling.load_problems import Problems, load_run_problems


def doctor(
    config: RecipeOrRun,
    overrides: Overrides = None,
    quick: Annotated[bool, typer.Option("--quick", help="Check only the inputs, without sampling.")] = False,
    problems: Annotated[int, typer.Option(min=1, help="Hold debates on this many problems.")] = 50,
    json: JsonFile = None,
) -> None:
    """Check whether a recipe is ready to train: its inputs, then a few debates. Exit with code 1 if not."""
    run, settings = open_run_or_recipe(config, overrides or ())
    console, aside = plain_console(quiet=json == STDOUT_NAME), plain_console(stderr=True)
    checks: list[Check] = []

    def note(found: Sequence[Check]) -> None:
        checks.extend(found)
        for check in found:
            console.print(check.line())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each warning becomes a check
        try:
            data = load_run_problems(settings)
        except (ValueError, OSError) as error:
            data = None
            note([Check("problems", "bad", None, one_line(error))])
        if data is not None:
            note(_input_checks(settings, data))
        if data is not None and not quick and is_go(checks):
            note(_debate_checks(settings, data, run, problems))
    if not quick and not is_go(checks) and not any(check.name == "base accuracy" for check in checks):
        aside.print("no debates were held; first fix the errors above")
    console.print(summary(checks))
    figures = {"go": is_go(checks), "summary": summary(checks), "checks": [asdict(check) for check in checks]}
    if json is not None:
        write_json(json, figures)
    if not is_go(checks):
        raise typer.Exit(NO_GO)


def _input_checks(config: Config, data: Problems) -> list[Check]:
    """Return the checks that need no sampling. The last one reports any error at the start of training."""
    from debate_rl.preflight import inputs  # loads torch
    from debate_rl.preflight.start import checked_problems

    found = [
        *inputs.data_checks(data),
        *inputs.model_checks(config, data),
        *inputs.prompt_checks(config, data),
        *inputs.setting_checks(config),
    ]
    if config.model.policy == "openai":
        return found
    try:
        checked_problems(config)
        refuse_missing_parts(config)
    except (ValueError, ImportError) as error:
        return [*found, Check("start", "bad", None, one_line(error))]
    return [*found, Check("start", "ok", None, "training can start with these settings")]


def _debate_checks(config: Config, data: Problems, run: Path | None, count: int) -> list[Check]:
    """Hold a few debates and return their checks."""
    from debate_rl.preflight.debates import debate_checks, hold, opened_policy, size_line

    tell = plain_console(stderr=True).print
    tell(size_line(config, min(count, len(data.train))))
    with opened_policy(config, data, run, tell) as opened:
        return list(debate_checks(hold(config, data, opened, count, tell), opened))
