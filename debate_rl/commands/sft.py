"""``debate sft CONFIG [key=value ...]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.arguments import JsonFile, MemoryOption, Overrides, check_memory
from debate_rl.commands.console import plain_console, write_json
from debate_rl.commands.errors import end_on_stop

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.forecast.plan import Plan
    from debate_rl.sampling.problems import Problems
    from debate_rl.training.run import Run


def sft(
    config: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|RUN", help="A TOML recipe, e.g. sft/tiny, or the folder of a run to resume."
        ),
    ],
    overrides: Overrides = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Tell what is learnt and what memory it needs, and start nothing.")
    ] = False,
    memory: MemoryOption = None,
    json: JsonFile = None,
) -> None:
    """Learn replies, supervised; the same command, or one with the run's folder, resumes a run."""
    from debate_rl.commands.train import settings_of

    check_memory(memory, plan=plan)
    settings = settings_of(config, overrides or (), starts=not plan)
    sft_run(settings, plan=plan, memory=memory, json=json)


def sft_run(settings: Config, *, plan: bool, memory: float | None, json: str | None) -> None:
    """Do one supervised run, or plan it."""
    if settings.stages:
        raise ValueError("stages: the recipe has several; debate run does them one after the other")
    if plan:
        plain_console().print(*plan_replies(settings, memory), sep="\n")
        return
    quiet = settings.logging.progress == "none"
    plain_console(stderr=True, quiet=quiet).print(f"{settings.run.dir}: supervised training")
    with end_on_stop():
        session = learn_replies(settings, quiet=quiet)
    figures = figures_of(session)
    _report(session, figures)
    if json is not None:
        write_json(json, figures)


def plan_replies(settings: Config, gib: float | None) -> list[str]:
    """Return what a run learns, its steps, and the memory that they take here or on a GPU of so many GiB."""
    from debate_rl.sft.plan import planned_replies, replies_time_line
    from debate_rl.sft.session import prepared

    config, data = prepared(settings)
    found = planned_replies(config, data, there=None if gib is None else int(gib * 2**30))
    steps = f"{config.train.steps} steps of {config.sft.batch_size} replies; nothing is started"
    lines = [*data.lines(), steps, *(found.memory_lines() if found is not None else ())]
    return lines if found is None else [*lines, replies_time_line(config, data, found, here=gib is None)]


def learn_replies(settings: Config, *, quiet: bool) -> Run:
    """Do the steps that are left."""
    from debate_rl.sft.plan import planned_replies, replies_time_line
    from debate_rl.sft.session import REPLIES, open_replies
    from debate_rl.training.loop import goes_on, train_steps

    tell = plain_console(stderr=True, quiet=quiet).print
    needs: list[Plan] = []

    def look(data: Problems) -> Mapping[str, bool | float]:
        tell(*data.lines(), sep="\n")
        found = planned_replies(settings, data)
        if found is not None:
            found.refuse_too_large()
            tell(*found.memory_lines(), sep="\n")
            needs.append(found)
        tell("loading the model")
        return found.chosen if found is not None else {}

    while True:
        with open_replies(settings, look=look) as session:
            steps, say = session.config.train.steps, session.tracker.say
            if session.threads and session.step < steps:
                say(session.threads)
            done = f"resuming after {session.step} of " if session.step else ""
            say(f"{done}{steps} steps of {settings.sft.batch_size} replies")
            for found in needs[-1:] if session.step < steps and not quiet else ():
                plan = replace(found, done=session.step)
                say(replies_time_line(session.config, session.data, plan, here=True, model=session.model))
            train_steps(session, REPLIES)
        if not goes_on(session):
            return session


def figures_of(session: Run) -> dict[str, object]:
    """Return what a run came to: its last losses, and the best of what it was measured by."""
    from debate_rl.preflight.start import best_by
    from debate_rl.tracking.step_lines import read_metrics

    rows = read_metrics(session.folder.metrics) if session.folder.metrics.exists() else []
    last = {name: value for row in rows for name, value in row.items() if value is not None}
    names = ("loss", "eval/sft/loss", "eval/direct/accuracy", "eval/direct/generated_tokens")
    return {
        "run": str(session.folder.path),
        "steps": session.step,
        **{name: last[name] for name in names if name in last},
        "best_by": best_by(session.config),
        "best_step": session.best[0] if session.best else None,
        "best": session.best[1] if session.best else None,
    }


def _report(session: Run, figures: Mapping[str, object]) -> None:
    """Print what a run came to, and where its parts lie."""
    from debate_rl.tracking.held_out import read_held_out, sentences

    say, run = plain_console().print, session.folder
    if kept := read_held_out(run.path):
        say(*sentences(kept), sep="\n")
    if session.best:
        say(f"best: step {session.best[0]}, {figures['best_by']} {session.best[1]:.4g}")
    folder = quote(str(run.path))
    say(f"done: {session.step} steps in {run.path}")
    say(f"  metrics      {run.metrics}")
    say(f"  checkpoints  {run.checkpoints}")
    say(f"  next         debate eval {folder}; debate train RECIPE warm_start.from_run={folder}@best")
