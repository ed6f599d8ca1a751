"""``debate replay RUN``: recompute the rewards of stored debates under another scheme."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from debate.files import write_text
from debate_rl.commands.console import NARROW, Ended, plain_console, progress_bar, text_table
from debate_rl.commands.options import FilterOption, JsonFile, Overrides, RunFolder, StepsOption, steps_of
from debate_rl.config import Config
from debate_rl.config.keys import check_key
from debate_rl.config.recipes import ConfigError, parse_override, read_run_config
from debate_rl.formatting import fixed, percent, round_number
from debate_rl.replay.scheme import Scheme, replay_run, scheme_of
from debate_rl.replay.summary import (
    SCHEMA,
    Summary,
    facts_json,
    refuse_another,
    replay_name,
    write_debates,
    write_facts,
)
from transcripts import RunStore, compile_filter

MAY_CHANGE = ("rewards", "advantages")
DIFFERS = 1
"""Exit code if the run's own scheme does not reproduce the stored values."""
CAPTION = (
    "sign, gained, lost: share of turns whose advantage changes sign, was 0 or none, is now 0 or none; "
    "moved: mean |new - old|; peer and truth are the parts of generator"
)


def replay(
    run: RunFolder,
    filter: FilterOption = "",
    steps: StepsOption = "",
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write to this folder; default: RUN/replays/NAME.")
    ] = None,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Recompute a run's rewards under another scheme (rewards.*, advantages.*) and show what changes.

    Needs no GPU. Exits with code 1 if the run's own scheme does not reproduce the stored rewards.
    """
    changes = list(overrides or ())
    refuse_other_keys(changes)
    compile_filter(filter)  # raises before anything is written
    path = Path(run)
    own, other = (scheme_of(read_run_config(path, overridden)) for overridden in ((), changes))
    first, last = steps_of(steps)
    question: dict[str, object] = {}
    for name, scheme in (("own", own), ("scheme", other)):
        tables = {key: getattr(scheme, key).model_dump(mode="json") for key in MAY_CHANGE}
        question[name] = tables | {"group_size": scheme.group_size}
    question |= {"filter": filter, "steps": [first, last]}
    folder = None
    if own != other or out is not None:
        folder = Path(out or path / "replays" / replay_name(changes, question))
        refuse_another(folder, question)
    summary, damage = _replay(path, (own, other), filter, (first, last), folder)
    folder = folder if summary.debates else None
    facts = {"schema": SCHEMA, "overrides": changes, "asked": question, "damaged_lines": damage}
    facts |= summary.facts()
    if folder is not None:  # before output, because a closed pipe ends the command
        write_facts(folder, facts)
    if json is not None:
        write_text(json, facts_json(facts))
    show(str(path), summary, damage=damage, only_check=own == other)
    if folder is not None:
        plain_console().print(f"All debates: {folder / 'debates.jsonl'}")
        if summary.most_changed:
            name = folder.name if folder.parent == path / "replays" else str(folder)
            look = shlex.join(["debate", "inspect", run, "replays", name, summary.most_changed[0][0]])
            plain_console().print(f"Largest change: {look}")
    if summary.differ:
        count = f"{summary.differ} of {summary.checked} debates"
        raise Ended(f"{path}: its own scheme does not reproduce the stored values of {count}", DIFFERS)


def refuse_other_keys(overrides: Iterable[str]) -> None:
    """Raise ConfigError for an override of a key outside rewards and advantages."""
    for text in overrides:
        path, _ = parse_override(text)
        if path[0] in MAY_CHANGE:
            continue
        try:
            check_key(Config, ".".join(path))
        except ValueError as error:
            raise ConfigError(str(error)) from error
        raise ConfigError(f"{text}: a replay can only change rewards.* and advantages.*")


def _replay(
    run: Path,
    schemes: tuple[Scheme, Scheme],
    filter: str,
    steps: tuple[int, int | None],
    folder: Path | None,
) -> tuple[Summary, int]:
    """Replay the debates, and write them if a folder is given. Return the figures and the damaged lines."""
    summary, (first, last) = Summary(), steps
    with RunStore.open(run) as store, progress_bar() as progress:
        damage = len(store.damage)
        task = progress.add_task("debates", total=store.count(f"step:..{last}" if last is not None else ""))
        tell = partial(progress.advance, task)
        replayed = replay_run(store, *schemes, filter=filter, first=first, last=last, tell=tell)
        changes = summary.counting(replayed)
        first_change = list(islice(changes, 1))
        if folder is not None and first_change:  # without debates there is nothing to write
            write_debates(folder, chain(first_change, changes))
        else:
            deque(changes, maxlen=0)  # consumes the iterator, which counts the changes
    return summary, damage


def show(run: str, summary: Summary, *, damage: int, only_check: bool) -> None:
    """Print the check of stored values, the tables, and the debates that change most."""
    console, plain = Console(), plain_console()
    for line in summary.check_lines(run, damage):
        plain.print(line)
    if only_check or not summary.debates:
        return
    plain.print(f"Advantages change in {summary.changed} of {summary.debates} debates.")
    console.print(_table("by stream", ("stream",), summary))
    console.print(_table("by stream and persona", ("stream", "persona"), summary))
    console.print(_table("by stream and round, from 0", ("stream", "round"), summary, caption=CAPTION))
    if summary.most_changed:
        named = ", ".join(f"{id} ({change:.3g})" for id, change in summary.most_changed)
        plain.print(f"Largest changes (sum of |new - old|): {named}")


def _table(title: str, parts: tuple[str, ...], summary: Summary, caption: str | None = None) -> Table:
    heads = (*parts, "turns", "sign", "gained", "lost", "old", "new", "moved")
    rows: list[list[str]] = []
    for key, figures in summary.by(*parts).items():
        names = [one if isinstance(one, str) else round_number(one, summary.rounds) for one in key]
        shares = [percent(figures[name]) for name in ("sign_changed", "gained", "lost")]
        means = [fixed(figures[name], "+.3f") for name in ("old", "new")]
        rows.append([*names, str(figures["turns"]), *shares, *means, fixed(figures["moved"])])
    return text_table(heads, rows, align="l" * len(parts) + "r", title=title, caption=caption, **NARROW)
