"""``debate tokens RUN DEBATE``: one turn of a stored debate, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from debate_rl.commands.arguments import JsonFile, Overrides, RunFolder, turn_of
from debate_rl.commands.console import plain_console, text_table, write_json

if TYPE_CHECKING:
    from debate_rl.commands.token_table import TokenRow
    from debate_rl.config import Config

COLUMNS = ("index", "token", "stream", "advantage", "sampler", "trainer", "ratio")


def tokens(
    run: RunFolder,
    debate: Annotated[
        str, typer.Argument(metavar="DEBATE", help="STEP.INDEX, e.g. 12.3: debate 3 of step 12.")
    ],
    turn: Annotated[
        str,
        typer.Option(metavar="AGENT.ROUND", help="Show this turn; both count from 0, the final ballot last."),
    ] = "0.0",
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Show one turn token by token: stream, advantage, log-probabilities of sampler and trainer, ratio."""
    from debate_rl.commands.inspect_lines import opened
    from debate_rl.commands.token_table import token_table
    from debate_rl.config.recipes import read_run_config
    from debate_rl.formatting import json_number
    from debate_rl.inspector.views import open_debate
    from debate_rl.runs.kept_weights import load_kept

    path, turn_id = Path(run), turn_of(turn)
    config = read_run_config(path, overrides or ())
    with opened(path) as store:
        record = open_debate(store, debate, tokens=True)
    version = next((t.completion.policy_version for t in record.debate.turns if t.id == turn_id), 0)
    weights, trainer_version, note = _trainer(path, config, version)
    model, tokenizer = load_kept(config, weights)
    try:
        rows = token_table(record, turn_id, model, tokenizer)
    except ValueError as error:
        raise ValueError(f"{run} {debate}: {error}") from error
    Console().print(_table(f"debate {debate}, turn {turn}: {record.debate.problem.id}", rows))
    plain_console().print(note)
    if json is not None:
        facts = {
            "debate": debate,
            "turn": turn,
            "policy_version": version,
            "trainer_version": trainer_version,
        }
        cells = [{name: json_number(value) for name, value in asdict(row).items()} for row in rows]
        write_json(json, facts | {"tokens": cells})


def _trainer(run: Path, config: Config, version: int) -> tuple[Path | None, int, str]:
    """Return the checkpoint to compute with, its policy version, and what to say of it."""
    from debate_rl.runs.kept_weights import newest_weights, version_of, weights_of_version

    kept = weights_of_version(run, config, version)
    if kept is not None:
        name = "the weights the run began with" if kept.path is None else kept.path.relative_to(run)
        return kept.path, version, f"trainer: {name}, policy version {version}, which sampled this turn"
    path = newest_weights(run)
    newest = version_of(path)
    return (
        path,
        newest,
        f"trainer: {path.relative_to(run)}, policy version {newest}. Version {version}, which sampled this "
        "turn, was not kept: the ratios hold what training changed since",
    )


def _table(title: str, rows: Sequence[TokenRow]) -> Table:
    from debate_rl.formatting import fixed

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
    caption = "sampler, trainer: log-probability; ratio: exp(trainer - sampler)"
    return text_table(COLUMNS, cells, align="rllr", title=Text(title), caption=caption)
