"""``debate train RECIPE|RUN [key=value ...]``: train by RL, by supervised learning or in stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer

from debate_rl.commands.console import NO_GO, plain_console, write_json
from debate_rl.commands.eval import evaluate
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun
from debate_rl.commands.strategies import contenders_named
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe, parse_override
from debate_rl.curriculum.promotion import after
from debate_rl.curriculum.record import read_curriculum, stage_folder
from debate_rl.engines import refuse_no_gpu
from debate_rl.sampling.draw_problems import with_epochs
from debate_rl.sampling.load_problems import load_run_problems
from learner.update.ranks import Ranks


def train(
    config: RecipeOrRun,
    overrides: Overrides = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the forecast of memory, time and disk without training.")
    ] = False,
    memory: Annotated[
        float | None, typer.Option("--memory", metavar="GIB", help="With --plan: the memory of the GPU.")
    ] = None,
    web: Annotated[
        bool, typer.Option("--web", help="Show the run in a browser on this machine while it trains.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Train by RL, by supervised learning (sft.data) or in stages; stage=NAME trains one stage.

    To resume a run, repeat the command or name the run's folder.
    """
    if memory is not None and not (plan and 0 < memory < 1 << 30):
        raise ValueError(
            f"--memory {memory:g}: needs --plan and a positive number of GiB, as in --plan --memory 80"
        )
    if web and plan:
        raise ValueError("--web and --plan: give only one of them")
    words = overrides or []
    keys = [word for word in words if not word.startswith("stage=")]
    only = next((word.removeprefix("stage=") for word in reversed(words) if word.startswith("stage=")), None)
    settings = settings_of(config, keys, starts=not plan)
    if settings.held_out.strategies:
        contenders_named(",".join(settings.held_out.strategies))
    if web and settings.sft.data:
        raise ValueError(
            "--web: supervised training has no debates; set logging.tensorboard or logging.wandb"
        )
    if only is not None and not settings.stages:
        raise ValueError(f"stage={only}: the recipe has no stages; leave it out")
    _do(settings, Path(config), plan=plan, memory=memory, web=web, json=json, only=only)


def _do(
    settings: Config,
    where: Path,
    *,
    plan: bool,
    memory: float | None,
    web: bool,
    json: str | None,
    only: str | None,
) -> None:
    """Train or plan. After training, compare the strategies of ``held_out.strategies``."""
    from debate_rl.curriculum.train import plan_lines, plan_stages, train_run, train_stages  # load torch

    ranks = Ranks.launched()
    if ranks.count > 1 and (settings.stages or settings.sft.data):
        raise ValueError("torchrun: is only for RL; start stages and supervised training without it")
    say = plain_console(quiet=ranks.index > 0).print
    quiet = ranks.index > 0 or settings.logging.progress == "none"
    tell = plain_console(stderr=True, quiet=quiet).print
    if plan:
        stages = settings.stages and plan_stages(settings, memory, only)
        say(*(stages or plan_lines(settings, where, memory, ranks)), sep="\n")
        return
    with _watched(settings, tell) if web and not ranks.index else nullcontext():
        if settings.stages:
            figures, by_alarm = train_stages(settings, only, say, tell)
        else:
            figures, by_alarm = train_run(settings, ranks, say, tell)
    if json is not None:
        write_json(json, figures)
    if by_alarm:
        raise typer.Exit(NO_GO)
    if settings.held_out.strategies and (run := _last_run(settings)) is not None:
        evaluate([str(run), "debate.tools=none"], strategies=",".join(settings.held_out.strategies))


def _watched(settings: Config, tell: Callable[[str], object]) -> AbstractContextManager[None]:
    from debate_rl.inspector.web.live import live_page

    return live_page(Path(settings.run.dir), tell)


def _last_run(settings: Config) -> Path | None:
    """Return the run with the final weights. None if the curriculum is not finished."""
    run = Path(settings.run.dir)
    if not settings.stages:
        return run
    record = read_curriculum(run)
    over = record is not None and record.visits[-1].end and after(record.visits[-1], settings.stages) is None
    return stage_folder(run, record.visits[-1]) if record is not None and over else None


def settings_of(name: str, overrides: Sequence[str], *, starts: bool) -> Config:
    """Return the configuration of a recipe, or of a run, which resumes in the folder ``name``.

    If ``starts``, raise ValueError if the run needs a GPU and this machine has none.
    """
    run, settings = open_run_or_recipe(name, overrides)
    if starts:
        refuse_no_gpu(settings)
    given = {".".join(parse_override(text)[0]) for text in overrides}
    longer = run is not None and "train.epochs" in given and "train.steps" not in given
    if settings.train.epochs is not None:  # the number of steps depends on the number of problems
        with catch_warnings():
            simplefilter("ignore")  # the start of training repeats the warning
            problems = len(load_run_problems(settings).train)
            settings = with_epochs(settings, problems, capped=False if longer else None)
    if run is None or "run.dir" in given:
        return settings
    return settings.model_copy(update={"run": settings.run.model_copy(update={"dir": name})})
