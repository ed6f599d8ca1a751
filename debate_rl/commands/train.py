"""``debate train CONFIG [key=value ...]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

import typer

from debate_rl.commands.arguments import JsonFile, MemoryOption, Overrides, check_memory
from debate_rl.commands.console import plain_console, write_json
from debate_rl.commands.errors import NO_GO, end_on_stop
from debate_rl.formatting import counted

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.forecast.plan import Plan
    from debate_rl.sampling.problems import Problems
    from debate_rl.training.run import Run
    from learner.update.ranks import Ranks


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|RUN", help="A TOML recipe, e.g. gsm8k_smoke, or the folder of a run to resume."
        ),
    ],
    overrides: Overrides = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Tell what memory, time and disk the run needs, and start nothing."),
    ] = False,
    memory: MemoryOption = None,
    json: JsonFile = None,
) -> None:
    """Train; the same command, or one with the run's folder, resumes a run that stopped."""
    check_memory(memory, plan=plan)
    settings = settings_of(config, overrides or (), starts=not plan)
    if settings.stages:
        train_curriculum(settings, plan=plan, memory=memory, json=json)
    else:
        train_run(settings, Path(config), plan=plan, memory=memory, json=json)


def train_run(settings: Config, where: Path, *, plan: bool, memory: float | None, json: str | None) -> None:
    """Train one run or plan it; ``where``: what the command named, perhaps the folder of a run."""
    from debate_rl.training.run import BY_ALARM
    from learner.update.ranks import Ranks

    ranks = Ranks.launched()
    size, quiet = settings.train, settings.logging.progress == "none" or ranks.index > 0
    tell = plain_console(stderr=True, quiet=quiet).print
    least = f"{size.adaptive.chunk} to " if size.adaptive.chunk else ""
    debates = f"{size.problems_per_step} problems x {least}{size.debates_per_problem} debates"
    head = f"{settings.run.dir}: {size.steps} steps of {debates}"
    if plan:
        say = plain_console(quiet=ranks.index > 0).print
        say(f"{head}; nothing is started")
        say(*_plan_lines(settings, where, memory, ranks), sep="\n")
        return
    tell(head)
    with end_on_stop():
        session = _train(settings, ranks, tell)
    _report(session)
    if json is not None:
        write_json(json, _figures(session))
    if session.end is not None and session.end.reason in BY_ALARM:
        raise typer.Exit(NO_GO)


def train_curriculum(
    settings: Config, *, plan: bool, memory: float | None, json: str | None, only: str | None = None
) -> None:
    """Train the stages of a recipe one after the other, or plan each; ``only``: the name of one of them."""
    from debate_rl.commands.sft import figures_of, learn_replies, plan_replies
    from debate_rl.commands.stages import plan_stages, train_stages
    from learner.update.ranks import Ranks

    ranks, quiet = Ranks.launched(), settings.logging.progress == "none"
    done: list[dict[str, object]] = []

    def lines(own: Config) -> list[str]:
        return (
            plan_replies(own, memory) if own.sft.data else _plan_lines(own, Path(own.run.dir), memory, ranks)
        )

    def trained(own: Config) -> Run:
        session = learn_replies(own, quiet=quiet) if own.sft.data else _train(own, ranks, tell)
        done.append(figures_of(session) if own.sft.data else _figures(session))
        return session

    tell = plain_console(stderr=True, quiet=quiet).print
    if plan:
        plan_stages(settings, lines, plain_console().print, only=only)
    else:
        with end_on_stop():
            train_stages(settings, ranks, trained, tell, only=only)
    if json is not None:
        write_json(json, {"run": settings.run.dir, "stages": done})


def _plan_lines(settings: Config, run: Path, gib: float | None, ranks: Ranks) -> list[str]:
    """Return what a run needs, on this machine or on a GPU of so many GiB."""
    from debate_rl.engines import lacks_gpu
    from debate_rl.forecast.plan import planned
    from debate_rl.forecast.time_line import time_line
    from debate_rl.known_models import CHARACTERS
    from debate_rl.models import is_known_only
    from debate_rl.sampling.problems import assumed_problems, load_run_problems
    from envs.errors import UnreachableError

    there = None if gib is None else int(gib * 2**30)
    done, known_only, assumed = _steps_saved(settings), is_known_only(settings.model), list[str]()
    try:
        data = load_run_problems(settings)
    except UnreachableError:
        if settings.env.max_prompt_tokens is not None and not known_only:
            raise
        data = assumed_problems(settings)
        assumed.append(
            f"problems of {len(data.train[0].question):,} characters: the data is not on this machine"
        )
    if there is None and lacks_gpu(settings):
        assumed.append("this machine's memory, though it has no GPU: --memory 80 plans for one of 80 GiB")
    if known_only:
        assumed.append(f"{CHARACTERS} characters a token: the tokenizer is not on this machine")
    needs = planned(settings, data, there=there, done=done, ranks=ranks.count, assumed=known_only)
    if needs is None:
        raise ValueError(
            f"--plan: model.policy={settings.model.policy}: what another engine needs is not known"
        )
    time = time_line(needs, run if run.is_dir() else None, here=gib is None)
    said = [f"  assumed {what}" for what in assumed]
    return [*needs.memory_lines(), *said, *needs.work_lines(), time]


def _train(settings: Config, ranks: Ranks, tell: Callable[..., None]) -> Run:
    """Do the steps that are left, once more from where a rollback went to."""
    from debate_rl.training.loop import goes_on

    while goes_on(session := _train_once(settings, ranks, tell)):
        continue
    return session


def _train_once(settings: Config, ranks: Ranks, tell: Callable[..., None]) -> Run:
    """Do the steps that are left; ``tell`` says before them what they will need."""
    from debate_rl.forecast.plan import planned  # torch takes seconds to load
    from debate_rl.forecast.time_line import time_line
    from debate_rl.preflight.start import baseline_lines
    from debate_rl.sampling.sampler import length_line
    from debate_rl.training.loop import evaluates_first, train_steps
    from debate_rl.training.ranks import joined
    from debate_rl.training.run import open_training

    steps = settings.train.steps
    needs: list[Plan] = []

    def look(data: Problems) -> Mapping[str, bool | float]:
        done = _steps_saved(settings)
        if done < steps:
            steps_line = length_line(settings, len(data.train))
            tell(*data.lines(), steps_line, *baseline_lines(settings), sep="\n")
        found = planned(settings, data, done=done, ranks=ranks.count) if done < steps else None
        if found is not None:
            found.refuse_too_large()
            tell(*found.memory_lines(), sep="\n")
            needs.append(found)
        tell("loading the model")
        return found.chosen if found is not None else {}

    with joined(settings, ranks) as group, open_training(settings, look=look, group=group) as session:
        say = session.tracker.say  # above the bar, where there is one
        if session.threads and session.step < steps:
            say(session.threads)
        if session.step:
            say(f"resuming after {session.step} of {steps} steps")
        known = settings.model.policy is None or session.step
        timed = session.step < steps and settings.logging.progress != "none" and known
        for found in needs if timed else ():
            run = session.folder.path if session.step else None
            say(time_line(replace(found, done=session.step), run, here=True, model=session.model))
        if evaluates_first(session):
            held_out = counted(len(session.data.held_out), "held-out problem")
            say(f"evaluating {held_out} before the first step")
        train_steps(session)
    return session


def _steps_saved(settings: Config) -> int:
    """Return after how many steps the newest checkpoint of the run was written; 0 without any."""
    from debate_rl.runs.checkpoint_folder import checkpoints, step_of

    return max(map(step_of, checkpoints(Path(settings.run.dir) / "checkpoints")), default=0)


def _report(session: Run) -> None:
    """Print what the run came to, and where its parts lie."""
    from debate_rl.runs.ending import time_words
    from debate_rl.tracking.held_out import read_held_out, sentences

    say, run = plain_console().print, session.folder
    if trained := session.data.trained_on:
        held_out = counted(len(session.data.never_trained), "held-out problem")
        say(f"test-time learning: {trained} of {held_out} are trained on")
    if kept := read_held_out(run.path):
        say(*sentences(kept), sep="\n")
    say(f"done: {session.step} steps in {run.path}")
    if session.end is not None:
        say(f"  ended        {session.end.why}; {time_words(run.starts)}")
    say(f"  metrics      {run.metrics}")
    say(f"  transcripts  {run.transcripts}")
    say(f"  checkpoints  {run.checkpoints}")
    folder = quote(str(run.path))
    say(f"  look         debate inspect {folder}; debate report {folder}")


def settings_of(name: str, overrides: Sequence[str], *, starts: bool) -> Config:
    """Return the configuration of a recipe, or of a run: it goes on where its folder lies now.

    ``starts``: whether it is to run on this machine, which is refused first of all for want of a GPU.
    """
    from debate_rl.config.recipes import open_run_or_recipe, parse_override

    run, settings = open_run_or_recipe(name, overrides)
    if starts:
        from debate_rl.engines import refuse_no_gpu  # torch takes seconds to load

        refuse_no_gpu(settings)
    given = {".".join(parse_override(text)[0]) for text in overrides}
    longer = run is not None and "train.epochs" in given and "train.steps" not in given
    settings = _in_steps(settings, capped=False if longer else None)
    if run is None or "run.dir" in given:
        return settings
    return settings.model_copy(update={"run": settings.run.model_copy(update={"dir": name})})


def _in_steps(settings: Config, *, capped: bool | None) -> Config:
    """Return the configuration with the steps that ``train.epochs`` are, which takes the problems to know.

    ``capped``: as for ``with_epochs``; the folder of a run has the steps of the epochs that it had.
    """
    if settings.train.epochs is None:
        return settings
    from debate_rl.sampling.problems import load_run_problems
    from debate_rl.sampling.sampler import with_epochs

    with catch_warnings():
        simplefilter("ignore")  # the start itself says it
        return with_epochs(settings, len(load_run_problems(settings).train), capped=capped)


def _figures(session: Run) -> dict[str, object]:
    """Return what a run came to as JSON has it: why it ended, its wall time, and the last step's figures."""
    from debate_rl.runs.ending import wall_seconds
    from debate_rl.tracking.step_lines import read_metrics

    run, end = session.folder, session.end
    rows = read_metrics(run.metrics) if run.metrics.exists() else []
    return {
        "run": str(run.path),
        "steps": session.step,
        "end": {"reason": end.reason, "why": end.why} if end is not None else None,
        "wall_seconds": wall_seconds(run.starts),
        "metrics": rows[-1] if rows else {},
    }
