"""``debate run`` of a recipe with stages: the plan of each, and one after the other."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from debate_rl.commands.console import plain_console
from debate_rl.commands.errors import NO_GO

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.curriculum.record import Curriculum
    from debate_rl.sampling.problems import Problems
    from debate_rl.training.run import End, Run
    from learner.update.ranks import Ranks


def plan_stages(
    config: Config, plan: Callable[[Config], list[str]], say: Callable[..., None], *, only: str | None = None
) -> None:
    """Print what the run of each stage needs at most, or of one alone."""
    from debate_rl.curriculum.drive import most_steps, stage_configs

    for number, (stage, own) in enumerate(stage_configs(config), start=1):
        if only in (None, stage.name):
            say(f"stage {number}, {stage.name}: at most {most_steps(stage)} in {own.run.dir}")
            say(*plan(own), sep="\n")


def train_stages(
    config: Config,
    ranks: Ranks,
    train: Callable[[Config], Run],
    tell: Callable[[str], None],
    *,
    only: str | None = None,
) -> None:
    """Drive a curriculum to its end, or to that of the stage ``only``; print what each stage came to."""
    from debate_rl.curriculum.drive import Driver
    from debate_rl.training.run import BY_ALARM

    if ranks.count > 1:
        raise ValueError("stages: a curriculum is driven by one process; start it without torchrun")

    others: list[End] = []

    def steps_of(own: Config) -> int | None:
        session = train(own)
        steps, end = session.step, session.end
        del session
        _free_memory()
        if end is None or end.reason in ("steps", "goal"):
            return steps
        others.append(end)
        return None

    record = Driver(config, steps_of, tell, _refuse_too_large, only).drive()
    _report(config, record)
    if others and others[0].reason in BY_ALARM:
        raise typer.Exit(NO_GO)


def _refuse_too_large(config: Config, data: Problems) -> None:
    """Refuse a stage whose prompts do not fit the context, or which needs more memory than there is."""
    from debate_rl.forecast.plan import planned
    from debate_rl.sft.plan import planned_replies

    needs = planned_replies(config, data) if config.sft.data else planned(config, data)
    if needs is not None:
        needs.refuse_too_large()


def _free_memory() -> None:
    """Give back what the model of a stage held: that of the next needs room."""
    gc.collect()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


def _report(config: Config, record: Curriculum) -> None:
    from debate_rl.curriculum.record import stage_folder

    say, run = plain_console().print, Path(config.run.dir)
    last = record.visits[-1]
    for visit in record.visits:
        say(f"{visit.folder}: {visit.end or 'not ended'}{', ' if visit.why else ''}{visit.why}")
    if last.end is None:
        say(f"stopped: the same command resumes with {stage_folder(run, last)}")
        return
    say(f"done: {_over(config, record)} in {run}")
    say(f"  weights      {stage_folder(run, last)}/checkpoints")
    say(f"  look         debate inspect {quote(str(run))}; debate report {quote(str(run))}")


def _over(config: Config, record: Curriculum) -> str:
    """Return in words how much of a curriculum is over."""
    from debate_rl.curriculum.record import after

    stages, last = config.stages or (), record.visits[-1]
    left = len(stages) - 1 - last.stage
    if not left and last.end != "demoted":
        return "the curriculum is over,"
    if after(last, stages) is not None:
        return f"{last.name} is over, and the same command without stage= continues;"
    return f"the curriculum is over; {last.name} did not reach its target, and {left} stages were not begun,"
