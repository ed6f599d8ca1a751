"""``debate train``: plan or train a run or the stages of a curriculum, by RL or supervised learning.

``say`` prints results, ``tell`` prints progress.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TypeAlias

import torch

from debate_rl.config import Config
from debate_rl.curriculum.drive import Driver, most_steps, stage_configs
from debate_rl.curriculum.promotion import after
from debate_rl.curriculum.record import Curriculum, stage_folder
from debate_rl.engines import lacks_gpu
from debate_rl.forecast.plan import Plan, chosen_correction, planned
from debate_rl.forecast.time import time_line
from debate_rl.formatting import counted
from debate_rl.known_models import CHARACTERS
from debate_rl.metrics.held_out import read_held_out, sentences
from debate_rl.metrics.step_log import read_metrics
from debate_rl.models import is_known_only
from debate_rl.preflight.start import baseline_lines, best_by
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.runs.folder import time_words, wall_seconds
from debate_rl.sampling.draw_problems import length_line
from debate_rl.sampling.load_problems import Problems, assumed_problems, load_run_problems
from debate_rl.sft.session import REPLIES, open_replies, planned_replies, prepared, replies_time_line
from debate_rl.training.loop import evaluates_first, goes_on, train_steps
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.ranks import joined
from debate_rl.training.run import BY_ALARM, End, Run
from envs.errors import UnreachableError
from learner.update.ranks import ALONE, Ranks

Say: TypeAlias = Callable[..., None]
SHOWN = ("loss", "eval/sft/loss", "eval/direct/accuracy", "eval/direct/generated_tokens")
"""Figures of a supervised run, each taken from the last step with a value."""


def train_run(config: Config, ranks: Ranks, say: Say, tell: Say) -> tuple[dict[str, object], bool]:
    """Train a run and print its results. Return its figures, and True if an alarm ended the run."""
    tell(_head(config))
    session = _trained(config, ranks, tell)
    _say_end(session, say)
    return _figures(session), session.end is not None and session.end.reason in BY_ALARM


def train_stages(config: Config, only: str | None, say: Say, tell: Say) -> tuple[dict[str, object], bool]:
    """Train a curriculum, or only its stage ``only``. Print and return results as ``train_run`` does."""
    done, others = list[dict[str, object]](), list[End]()

    def steps_of(own: Config) -> int | None:
        session = _trained(own, ALONE, tell)
        done.append(_figures(session))
        steps, end = session.step, session.end
        del session
        gc.collect()  # frees memory before the model of the next stage is loaded
        torch.cuda.empty_cache()
        if end is None or end.reason in ("steps", "target"):
            return steps
        others.append(end)
        return None

    def look(own: Config, data: Problems) -> None:
        if (needs := _needs(own, data)) is not None:
            needs.refuse_too_large()

    record = Driver(config, steps_of, tell, look, only).drive()
    _say_stages(config, record, say)
    return {"run": config.run.dir, "stages": done}, bool(others) and others[0].reason in BY_ALARM


def plan_stages(config: Config, gib: float | None, only: str | None) -> Iterator[str]:
    """Yield the forecast of each stage at its maximum length, or only of the stage ``only``."""
    for number, (stage, own) in enumerate(stage_configs(config), start=1):
        if only in (None, stage.name):
            yield f"stage {number}, {stage.name}: at most {most_steps(stage)} in {own.run.dir}"
            yield from plan_lines(own, Path(own.run.dir), gib, ALONE)[1:]


def plan_lines(config: Config, run: Path, gib: float | None, ranks: Ranks) -> list[str]:
    """Return the forecast of a run on this machine, or on a GPU with ``gib`` GiB."""
    there = None if gib is None else int(gib * 2**30)
    if config.sft.data:
        return [f"{_head(config)}; nothing is started", *_replies_lines(config, there)]
    if config.engine.kind == "verl":
        from debate_rl.backends.verl_api import plan_lines as verl_lines  # torch takes seconds to load

        return [f"{_head(config)}; nothing is started", *verl_lines(config)]
    known_only, assumed = is_known_only(config.model), list[str]()
    try:
        data = load_run_problems(config)
    except UnreachableError:
        if config.env.max_prompt_tokens is not None and not known_only:
            raise
        data = assumed_problems(config)
        assumed.append(
            f"problems of {len(data.train[0].question):,} characters: the data is not on this machine"
        )
    if there is None and lacks_gpu(config):
        assumed.append(
            "the memory of this machine, which has no GPU; --memory 80 plans for a GPU with 80 GiB"
        )
    if known_only:
        assumed.append(f"{CHARACTERS} characters per token: the tokenizer is not on this machine")
    done = _steps_saved(config)
    needs = planned(config, data, there=there, done=done, ranks=ranks.count, assumed=known_only)
    if needs is None:
        raise ValueError(
            f"--plan: {config.model.policy or config.engine.kind}: the needs of this engine are unknown"
        )
    time = time_line(needs, run if run.is_dir() else None, here=gib is None)
    said = [f"  assumed {what}" for what in assumed]
    head = f"{_head(config)}; nothing is started"
    return [head, *needs.memory_lines(), *said, *needs.work_lines(), time]


def _replies_lines(config: Config, there: int | None) -> Iterator[str]:
    config, data = prepared(config)
    yield from data.lines()
    yield f"{config.train.steps} steps of {config.sft.batch_size} replies"
    if (found := planned_replies(config, data, there=there)) is not None:
        yield from found.memory_lines()
        yield replies_time_line(config, data, found, here=there is None)


def _head(config: Config) -> str:
    if config.sft.data:
        return f"{config.run.dir}: supervised training"
    size = config.train
    least = f"{size.adaptive.chunk} to " if size.adaptive else ""
    debates = f"{size.batch_size} problems x {least}{size.group_size} debates"
    return f"{config.run.dir}: {size.steps} steps of {debates}"


def _needs(config: Config, data: Problems, *, done: int = 0, ranks: int = 1) -> Plan | None:
    if config.sft.data:
        return planned_replies(config, data)
    return planned(config, data, done=done, ranks=ranks)


def _trained(config: Config, ranks: Ranks, tell: Say) -> Run:
    """Train the remaining steps of a run. After a rollback, open the run again."""
    while True:
        session = _trained_once(config, ranks, tell)
        if not goes_on(session):
            return session


def _trained_once(config: Config, ranks: Ranks, tell: Say) -> Run:
    """Print the forecast of the remaining steps, and then train them."""
    replies, needs = bool(config.sft.data), list[Plan]()

    def look(data: Problems) -> Mapping[str, bool | float]:
        done = 0 if replies else _steps_saved(config)
        left, found = replies or done < config.train.steps, None
        if left:
            tell(*data.lines(), sep="\n")
            if not replies:
                tell(length_line(config, len(data.train)), *baseline_lines(config), sep="\n")
            found = _needs(config, data, done=done, ranks=ranks.count)
        if found is not None:
            found.refuse_too_large()
            tell(*found.memory_lines(), sep="\n")
            needs.append(found)
        tell("loading the model")
        return found.chosen if found is not None else chosen_correction(config) if left else {}

    opened = open_replies if replies else open_training
    with joined(config, ranks) as group, opened(config, look=look, group=group) as session:
        _say_start(session, needs)
        train_steps(session, REPLIES if replies else None)
    return session


def _say_start(session: Run, needs: list[Plan]) -> None:
    """Print the step at which a run starts, and the forecast of its time."""
    config, say = session.config, session.tracker.say  # prints above the progress bar
    steps, replies = config.train.steps, bool(config.sft.data)
    left = session.step < steps
    if session.threads and left:
        say(session.threads)
    resumed = f"resuming after {session.step} of " if session.step else ""
    if replies:
        say(f"{resumed}{steps} steps of {config.sft.batch_size} replies")
    elif resumed:
        say(f"{resumed}{steps} steps")
    known = replies or config.model.policy is None or session.step
    for found in needs if left and known and config.logging.progress != "none" else ():
        plan = replace(found, done=session.step)
        if replies:
            say(replies_time_line(config, session.data, plan, here=True, model=session.model))
        else:
            run = session.folder.path if session.step else None
            say(time_line(plan, run, here=True, model=session.model))
    if left and not replies:
        say(f"to watch it: debate inspect {quote(config.run.dir)} --web")
    if evaluates_first(session) and not replies:
        say(f"evaluating {counted(len(session.data.held_out), 'held-out problem')} before the first step")


def _steps_saved(config: Config) -> int:
    return max(map(step_of, checkpoints(Path(config.run.dir) / "checkpoints")), default=0)


def _say_end(session: Run, say: Say) -> None:
    run, replies = session.folder, bool(session.config.sft.data)
    if trained := session.data.trained_on:
        held_out = counted(len(session.data.never_trained), "held-out problem")
        say(f"test-time learning: {trained} of {held_out} are trained on")
    if kept := read_held_out(run.path):
        say(*sentences(kept), sep="\n")
    if replies and session.best:
        say(f"best: step {session.best[0]}, {best_by(session.config)} {session.best[1]:.4g}")
    say(f"done: {session.step} steps in {run.path}")
    if session.end is not None:
        say(f"  ended        {session.end.why}; {time_words(run.starts)}")
    say(f"  metrics      {run.metrics}")
    if not replies:
        say(f"  transcripts  {run.transcripts}")
    say(f"  checkpoints  {run.checkpoints}")
    folder = quote(str(run.path))
    if replies:
        say(f"  next         debate eval {folder}; debate train RECIPE warm_start.from_run={folder}@best")
    else:
        say(f"  look         debate inspect {folder}; debate report {folder}")


def _figures(session: Run) -> dict[str, object]:
    """Return the reason of a run's end, its wall time and its last figures."""
    run, end = session.folder, session.end
    rows = read_metrics(run.metrics) if run.metrics.exists() else []
    figures: dict[str, object] = {
        "run": str(run.path),
        "steps": session.step,
        "end": {"reason": end.reason, "why": end.why} if end is not None else None,
        "wall_seconds": wall_seconds(run.starts),
        "metrics": rows[-1] if rows else {},
    }
    if bool(session.config.sft.data):
        last = {name: value for row in rows for name, value in row.items() if value is not None}
        figures |= {name: last[name] for name in SHOWN if name in last}
        step, best = session.best or (None, None)
        figures |= {"best_by": best_by(session.config), "best_step": step, "best": best}
    return figures


def _say_stages(config: Config, record: Curriculum, say: Say) -> None:
    run, last = Path(config.run.dir), record.visits[-1]
    for visit in record.visits:
        say(f"{visit.folder}: {visit.end or 'not ended'}{', ' if visit.why else ''}{visit.why}")
    if last.end is None:
        say(f"stopped: the same command resumes {stage_folder(run, last)}")
        return
    say(f"done: {_over(config, record)} in {run}")
    say(f"  weights      {stage_folder(run, last)}/checkpoints")
    say(f"  look         debate inspect {quote(str(run))}; debate report {quote(str(run))}")


def _over(config: Config, record: Curriculum) -> str:
    stages, last = config.stages or (), record.visits[-1]
    left = len(stages) - 1 - last.stage
    if not left and last.end != "demoted":
        return "the curriculum is complete,"
    if after(last, stages) is not None:
        return f"{last.name} is complete, and the same command without stage= continues;"
    return f"the curriculum has ended; {last.name} missed its target, and {left} stages were not started,"
