"""``debate run RECIPE|RUN [key=value ...]``: whatever the recipe asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.arguments import JsonFile, MemoryOption, Overrides, check_memory

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
    settings = settings_of(config, [word for word in words if not word.startswith(STAGE)])
    if settings.stages:
        only = named[-1] if named else None
        train_curriculum(settings, plan=plan, memory=memory, json=json, only=only)
    elif named:
        raise ValueError(f"stage={named[-1]}: the recipe has no stages; leave it out")
    elif settings.sft.data:
        sft_run(settings, plan=plan, memory=memory, json=json)
    else:
        train_run(settings, Path(config), plan=plan, memory=memory, json=json)
