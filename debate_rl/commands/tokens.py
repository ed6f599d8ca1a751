"""``debate tokens RUN DEBATE``: one turn of a stored debate, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from debate_rl.commands.arguments import JsonFile, Overrides, RunFolder, turn_named, two_numbers
from debate_rl.commands.console import plain_console, write_json

if TYPE_CHECKING:
    from debate_rl.commands.token_table import TokenRow
    from debate_rl.config import Config
    from transcripts import Record

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
    from debate_rl.commands.config import open_run_folder
    from debate_rl.commands.token_table import token_table
    from debate_rl.formatting import json_number
    from debate_rl.runs.kept_weights import load_kept

    path, config = open_run_folder(run, overrides or ())
    turn_id = turn_named(turn)
    record = find_debate(path, *two_numbers(debate, "DEBATE", "STEP.INDEX", "both from 0"))
    version = next((t.completion.policy_version for t in record.debate.turns if t.id == turn_id), 0)
    weights, held, note = _trainer(path, config, version)
    model, tokenizer = load_kept(config, weights)
    try:
        rows = token_table(record, turn_id, model, tokenizer)
    except ValueError as error:
        raise ValueError(f"{run} {debate}: {error}") from error
    Console().print(_table(f"debate {debate}, turn {turn}: {record.debate.problem.id}", rows))
    plain_console().print(note)
    if json is not None:
        facts = {"debate": debate, "turn": turn, "policy_version": version, "trainer_version": held}
        cells = [{name: json_number(value) for name, value in asdict(row).items()} for row in rows]
        write_json(json, facts | {"tokens": cells})


def find_debate(run: Path, step: int, place: int) -> Record:
    """Return the debate at a place of a step's transcript; ValueError says which there are."""
    from transcripts import read_records
    from transcripts.names import shard_paths, shard_step

    folder = run / "transcripts"
    shards = {shard_step(path) or 0: path for path in (shard_paths(run) if folder.is_dir() else ())}
    if step not in shards:
        known = f"there are steps {min(shards)} to {max(shards)}" if shards else "there are none"
        raise ValueError(f"{run}: no transcript of step {step}; {known}")
    record = next(islice(read_records(shards[step]), place, None), None)
    if record is None:
        count = sum(1 for _ in read_records(shards[step], tokens=False))
        known = f"debates 0 to {count - 1}, and no {place}" if count else "no debates"
        raise ValueError(f"{run}: step {step} has {known}")
    return record


def _trainer(run: Path, config: Config, version: int) -> tuple[Path | None, int, str]:
    """Return the checkpoint to compute with, its policy version, and what to say of it."""
    from debate_rl.runs.kept_weights import newest_weights, version_of, weights_of_version

    kept = weights_of_version(run, config, version)
    if kept is not None:
        place = "the weights the run began with" if kept.path is None else kept.path.relative_to(run)
        return kept.path, version, f"trainer: {place}, policy version {version}, which sampled this turn"
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

    table = Table(
        title=Text(title), caption="sampler, trainer: log-probability; ratio: exp(trainer - sampler)"
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("token", "stream") else "right")
    for row in rows:
        figures = (
            fixed(row.advantage, "+.3f", none=""),
            *(fixed(v, ".4f", none="") for v in (row.sampler, row.trainer, row.ratio)),
        )
        table.add_row(str(row.index), Text(repr(row.text)), row.stream, *figures)
    return table
