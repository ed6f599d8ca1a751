"""``debate export RUN``: export the weights of a run for transformers, peft and vLLM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from debate_rl.commands.console import plain_console, write_json
from debate_rl.commands.options import JsonFile, Overrides, RunFolder
from debate_rl.config.recipes import read_run_config
from debate_rl.strategies.selection import check_judge


def export(
    run: RunFolder,
    merge: Annotated[bool, typer.Option("--merge", help="Merge a LoRA adapter into its base model.")] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Also export prompts and protocol, to use the folder as --judge.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Write to this folder; default: RUN/export, or RUN/judge with --judge."
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Store weights as float32, bfloat16 or float16; default: as in training."),
    ] = None,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Export a run's newest weights, with a model card, as a folder that transformers, peft and vLLM load."""
    from debate_rl.runs.export import DType, export_run, loading_code  # torch takes seconds to load

    if dtype is not None and dtype not in get_args(DType):
        raise ValueError(f"--dtype {dtype}: unknown; valid: {', '.join(get_args(DType))}")
    path = Path(run)
    config = read_run_config(path, overrides or ())
    folder = Path(out) if out else path / ("judge" if judge else "export")
    if judge:
        check_judge(config.debate)
    done = export_run(path, config, folder, merge=merge, dtype=cast("DType | None", dtype), judge=judge)
    say = plain_console().print
    say(f"done: {done.kind} weights of {done.checkpoint} in {done.folder}\n")
    say(loading_code(done.folder))
    if judge:
        say(f"\nTo select solutions of another model with this judge, use --judge {done.folder}:")
        say(f"  debate solve MODEL PROBLEM --strategy swiss --judge {done.folder}")
    if json is not None:
        write_json(json, {name: str(value) for name, value in done._asdict().items()})
