"""``debate run RECIPE|RUN [key=value ...]``: whatever the recipe asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.arguments import JsonFile, MemoryOption, Overrides, check_memory

if TYPE_CHECKING:
    from debate_rl.config import Config

STAGE = "stage="


def run_recipe(
    config: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|RUN", help="A TOML recipe, e.g. aimo3/tiny, or the folder of a run to resume."
        ),
    ],
    overrides: Overrides = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Tell what memory, time and disk it needs, and start nothing."),
    ] = False,
    memory: MemoryOption = None,
    json: JsonFile = None,
) -> None:
    """Do what a recipe says: its stages, supervised training, or RL. stage=NAME does one stage alone.

    The same command again, or with the run's folder, goes on with what stopped.
    """
    from debate_rl.commands.sft import sft_run
    from debate_rl.commands.train import settings_of, train_curriculum, train_run

    check_memory(memory, plan=plan)
    words = list(overrides or ())
    named = [word.removeprefix(STAGE) for word in words if word.startswith(STAGE)]
    keys = [word for word in words if not word.startswith(STAGE)]
    settings = settings_of(config, keys, starts=not plan)
    only = named[-1] if named else None
    if settings.held_out.strategies:
        from debate_rl.commands.eval_strategies import strategies_named

        strategies_named(",".join(settings.held_out.strategies))
    if settings.stages:
        train_curriculum(settings, plan=plan, memory=memory, json=json, only=only)
    elif only is not None:
        raise ValueError(f"stage={only}: the recipe has no stages; leave it out")
    elif settings.sft.data:
        sft_run(settings, plan=plan, memory=memory, json=json)
    else:
        train_run(settings, Path(config), plan=plan, memory=memory, json=json)
    if settings.held_out.strategies and not plan and (last := _last_run(settings)) is not None:
        _compare(settings, last)


def _last_run(settings: Config) -> Path | None:
    """Return the run whose weights are the end of all; None where stages are still to come."""
    from debate_rl.curriculum.record import after, read_curriculum, stage_folder

    run = Path(settings.run.dir)
    if not settings.stages:
        return run
    record = read_curriculum(run)
    over = record is not None and record.visits[-1].end and after(record.visits[-1], settings.stages) is None
    return stage_folder(run, record.visits[-1]) if record is not None and over else None


def _compare(settings: Config, run: Path) -> None:
    """Print the table of the strategies that the recipe names, on the held-out problems."""
    from debate_rl.commands.eval import evaluate

    evaluate([str(run), "debate.tools=none"], strategies=",".join(settings.held_out.strategies))
