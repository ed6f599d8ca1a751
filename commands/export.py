"""``debate export RUN``: the weights of a run as a folder that transformers, peft and vLLM load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from rich.console import Console

from commands.runs import open_run_folder


def run_export(
    name: str, *, out: str | None, merge: bool, dtype: str | None, overrides: Sequence[str]
) -> None:
    """Write the export and say how to load it."""
    from learner.export import DType, export_run
    from learner.model_card import loading_code

    if dtype is not None and dtype not in get_args(DType):
        raise ValueError(f"--dtype {dtype}: unknown; valid: {', '.join(get_args(DType))}")
    run, config = open_run_folder(name, overrides)
    folder = Path(out) if out else run / "export"
    done = export_run(run, config, folder, merge=merge, dtype=cast("DType | None", dtype))
    say = Console(markup=False, highlight=False, soft_wrap=True).print
    say(f"done: {done.kind} weights of {done.checkpoint} in {done.folder}\n")
    say(loading_code(done.folder))
