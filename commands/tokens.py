"""``debate tokens RUN DEBATE``: one turn of a stored debate, token by token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.runs import open_run_folder
from debate.types import TurnId
from learner.formatting import fixed
from transcripts import Record, read_records, shard_paths, shard_step

if TYPE_CHECKING:
    from learner.config import Config
    from learner.token_table import TokenRow

COLUMNS = ("place", "token", "stream", "advantage", "sampler", "trainer", "ratio")


def run_tokens(name: str, debate: str, *, turn: str, json_path: str | None, overrides: Sequence[str]) -> None:
    """Print the table of a turn, and say which weights the trainer's log-probabilities are of."""
    from learner.runs.kept_weights import load_kept
    from learner.token_table import token_table

    run, config = open_run_folder(name, overrides)
    turn_id = TurnId(*_pair(turn, "--turn", "AGENT.ROUND"))
    record = find_debate(run, *_pair(debate, "DEBATE", "STEP.PLACE"))
    version = next((t.completion.policy_version for t in record.debate.turns if t.id == turn_id), 0)
    path, held, note = _trainer(run, config, version)
    model, tokenizer = load_kept(config, path)
    try:
        rows = token_table(record, turn_id, model, tokenizer)
    except ValueError as error:
        raise ValueError(f"{name} {debate}: {error}") from error
    title = f"debate {debate}, turn {turn}: {record.debate.problem.id}"
    Console().print(_table(title, rows))
    Console(markup=False, highlight=False, soft_wrap=True).print(note)
    if json_path is not None:
        facts = {"debate": debate, "turn": turn, "policy_version": version, "trainer_version": held}
        tokens = [asdict(row) for row in rows]
        Path(json_path).write_text(json.dumps(facts | {"tokens": tokens}, indent=1) + "\n", encoding="utf-8")


def _pair(text: str, name: str, form: str) -> tuple[int, int]:
    """Return the two numbers of a place.

    >>> _pair("12.3", "DEBATE", "STEP.PLACE")
    (12, 3)
    """
    first, _, second = text.partition(".")
    if not (first.isdecimal() and second.isdecimal()):
        raise ValueError(f"{name} {text!r}: write {form}, counted from 0 as in the transcripts")
    return int(first), int(second)


def find_debate(run: Path, step: int, place: int) -> Record:
    """Return the debate at a place of a step's transcript; ValueError says which there are."""
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
    from learner.runs.kept_weights import newest_weights, version_of, weights_of_version

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
        table.add_row(str(row.place), Text(repr(row.text)), row.stream, *figures)
    return table
