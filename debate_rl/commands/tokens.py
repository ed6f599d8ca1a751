"""``debate inspect tokens RUN DEBATE``: show one turn of a stored debate token by token."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from debate_rl.commands.console import plain_console, text_table, write_json
from debate_rl.commands.inspect_actions import opened
from debate_rl.commands.options import JsonFile, Overrides, RunFolder
from debate_rl.config.recipes import read_run_config
from debate_rl.formatting import fixed, json_number
from debate_rl.inspector.actions import turn_of
from debate_rl.runs.weights import KeptWeights, load_kept, weights_of_version

COLUMNS = ("index", "token", "stream", "advantage", "sampler", "trainer", "ratio")


def tokens(
    run: RunFolder,
    debate: Annotated[
        str, typer.Argument(metavar="DEBATE", help="STEP.INDEX, e.g. 12.3: debate 3 of step 12.")
    ],
    turn: Annotated[
        str,
        typer.Option(
            metavar="AGENT.ROUND", help="Show this turn; both count from 0; a final ballot is the last round."
        ),
    ] = "0.0",
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Show one turn token by token: stream, advantage, log-probabilities of sampler and trainer, ratio."""
    path, turn_id = Path(run), turn_of(turn)
    config = read_run_config(path, overrides or ())
    with opened(path) as store:
        record = store.debate(debate, tokens=True)
    version = next((t.completion.policy_version for t in record.debate.turns if t.id == turn_id), 0)
    kept = weights_of_version(path, config, version)
    model, tokenizer = load_kept(config, kept.path)
    try:
        from debate_rl.inspector.views.tokens import token_table  # torch takes seconds to load

        rows = token_table(record, turn_id, model, tokenizer, config)
    except ValueError as error:
        raise ValueError(f"{run} {debate}: {error}") from error
    cells = [
        (
            str(row.index),
            repr(row.text),
            row.stream,
            fixed(row.advantage, "+.3f", none=""),
            *(fixed(value, ".4f", none="") for value in (row.sampler, row.trainer, row.ratio)),
        )
        for row in rows
    ]
    title = Text(f"debate {debate}, turn {turn}: {record.debate.problem.id}")
    caption = Text("ratio: exp(trainer - sampler)")
    Console().print(text_table(COLUMNS, cells, align="rllr", title=title, caption=caption))
    plain_console().print(_note(path, kept, version))
    if json is not None:
        facts = {"debate": debate, "turn": turn, "policy_version": version, "trainer_version": kept.version}
        plain = [{name: json_number(value) for name, value in asdict(row).items()} for row in rows]
        write_json(json, facts | {"tokens": plain})


def _note(run: Path, kept: KeptWeights, version: int) -> str:
    """Return a note on the weights of the trainer. ``version``: the policy version that sampled the turn."""
    name = "the start weights" if kept.path is None else kept.path.relative_to(run)
    trainer = f"trainer: {name}, policy version {kept.version}"
    if kept.version == version:
        return f"{trainer}, which sampled this turn"
    lost = f"Version {version}, which sampled this turn, was not kept"
    return f"{trainer}. {lost}: the ratios include the effect of later updates"
