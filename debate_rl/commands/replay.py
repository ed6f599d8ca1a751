"""``debate replay RUN``: what another reward scheme would have given the stored debates."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from debate_rl.commands.console import NARROW, Ended, plain_console, progress_bar, text_table
from debate_rl.commands.options import FilterOption, JsonFile, Overrides, RunFolder

if TYPE_CHECKING:
    from debate_rl.replay.scheme import Scheme
    from debate_rl.replay.summary import Summary, Tally

MAY_CHANGE = ("rewards", "advantages")
DIFFERS = 1
"""The exit code where stored numbers are not those of the run's own scheme."""
CAPTION = (
    "sign (changed), gained, lost: share of turns; gained had none or 0, lost has none or 0; "
    "moved: mean |new - old|; peer and truth are the parts of generator"
)


def replay(
    run: RunFolder,
    filter: FilterOption = "",
    steps: Annotated[str, typer.Option(metavar="A..B", help="Show these steps, counted from 0.")] = "",
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write to this folder; default RUN/replays/NAME.")
    ] = None,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Recompute a run's rewards under another scheme (rewards.*, advantages.*) and show what changes.

    Needs no GPU. Exit code 1: the stored rewards are not those of the run's own scheme.
    """
    from debate_rl.config.recipes import read_run_config
    from debate_rl.replay.scheme import scheme_of
    from debate_rl.replay.summary import SCHEMA, refuse_another, replay_name
    from transcripts import compile_filter

    changes = list(overrides or ())
    refuse_other_keys(changes)
    compile_filter(filter)  # says what is wrong before anything is written
    path = Path(run)
    own, other = (scheme_of(read_run_config(path, overridden)) for overridden in ((), changes))
    first, last = steps_of(steps)
    question = {"own": _plain(own), "scheme": _plain(other), "filter": filter, "steps": [first, last]}
    folder = None
    if own != other or out is not None:
        folder = Path(out or path / "replays" / replay_name(changes, question))
        refuse_another(folder, question)
    summary, damage = _replay(path, (own, other), filter, (first, last), folder)
    folder = folder if summary.debates else None
    facts = {"schema": SCHEMA, "overrides": changes, "asked": question, "damaged_lines": damage}
    # Before a reader that goes away can end the command.
    _write(facts | summary.facts(), folder, json)
    show(str(path), summary, damage=damage, only_check=own == other)
    if folder is not None:
        plain_console().print(f"Every debate: {folder / 'debates.jsonl'}")
        if summary.most_changed:
            plain_console().print(f"What changed most: {_look_at(run, folder, summary.most_changed[0][0])}")
    if summary.differ:
        count = f"{summary.differ} of {summary.checked} debates"
        raise Ended(f"{path}: what is stored is not what its own scheme gives in {count}", DIFFERS)


def _look_at(run: str, folder: Path, id: str) -> str:
    """Return the command that shows a debate of a replay, named by its path where it lies elsewhere."""
    name = folder.name if folder.parent == Path(run) / "replays" else str(folder)
    return shlex.join(["debate", "inspect", run, "replays", name, id])


def _write(facts: dict[str, object], folder: Path | None, json: str | None) -> None:
    from debate_rl.replay.summary import facts_json, write_facts

    if folder is not None:
        write_facts(folder, facts)
    if json is not None:
        from debate.files import write_text

        write_text(json, facts_json(facts))


def refuse_other_keys(overrides: Iterable[str]) -> None:
    """Raise ConfigError for an override of anything but the rewards and how advantages are made of them."""
    from debate_rl.config import Config
    from debate_rl.config.keys import check_key
    from debate_rl.config.recipes import ConfigError, parse_override

    for text in overrides:
        path, _ = parse_override(text)
        if path[0] not in MAY_CHANGE:
            try:
                check_key(Config, ".".join(path))
            except ValueError as error:
                raise ConfigError(str(error)) from error
            raise ConfigError(f"{text}: a replay changes rewards.* and advantages.* only")


def steps_of(text: str) -> tuple[int, int | None]:
    """Return the first and the last step of A..B, A.., ..B or A; None is the run's last.

    >>> steps_of("3..5"), steps_of("3.."), steps_of("..5"), steps_of("4"), steps_of("")
    ((3, 5), (3, None), (0, 5), (4, 4), (0, None))
    """
    if not text:
        return 0, None
    first, dots, last = text.partition("..")
    ends = (first, last) if dots else (first, first)
    good = all(end == "" or (end.isdecimal() and len(end) <= 11) for end in ends) and any(ends)
    low, high = (int(ends[0] or 0), int(ends[1]) if ends[1] else None) if good else (1, 0)
    if high is not None and high < low:
        raise ValueError(f"--steps {text!r}: write A..B with A no greater than B, A.., ..B or A, from 0")
    return low, high


def _plain(scheme: Scheme) -> dict[str, object]:
    return {
        "rewards": scheme.rewards.model_dump(mode="json"),
        "advantages": scheme.advantages.model_dump(mode="json"),
        "group_size": scheme.group_size,
    }


def _replay(
    run: Path,
    schemes: tuple[Scheme, Scheme],
    filter: str,
    steps: tuple[int, int | None],
    folder: Path | None,
) -> tuple[Summary, int]:
    """Go through the debates, write them where a folder is given; return figures and damaged lines."""
    from debate_rl.replay.scheme import replay_run
    from debate_rl.replay.summary import Summary, write_debates
    from transcripts import RunStore

    summary, (first, last) = Summary(), steps
    with RunStore.open(run) as store, progress_bar() as progress:
        damage = len(store.damage)
        task = progress.add_task("debates", total=store.count(f"step:..{last}" if last is not None else ""))
        tell = partial(progress.advance, task)
        replayed = replay_run(store, *schemes, filter=filter, first=first, last=last, tell=tell)
        changes = summary.counting(replayed)
        first_change = list(islice(changes, 1))
        if folder is not None and first_change:  # without debates nothing is left to look at
            write_debates(folder, chain(first_change, changes))
        else:
            deque(changes, maxlen=0)  # counts them
    return summary, damage


def show(run: str, summary: Summary, *, damage: int, only_check: bool) -> None:
    """Print the check, then the tables, then the debates to open."""
    console, plain = Console(), plain_console()
    for line in check_lines(run, summary, damage):
        plain.print(line)
    if only_check or not summary.debates:
        return
    plain.print(f"{summary.changed} of {summary.debates} debates have other advantages.")
    console.print(_table("by stream", ("stream",), summary))
    console.print(_table("by stream and persona", ("stream", "persona"), summary))
    console.print(_table("by stream and round, from 0", ("stream", "round"), summary, caption=CAPTION))
    if summary.most_changed:
        named = ", ".join(f"{id} ({change:.3g})" for id, change in summary.most_changed)
        plain.print(f"These change most (sum of |new - old|): {named}")


def check_lines(run: str, summary: Summary, damage: int) -> list[str]:
    """Return how stored and recomputed numbers compare."""
    lines = [f"{run}: {damage} lines cannot be read; their groups lack a debate"] if damage else []
    if summary.not_finite:
        lines.append(f"{run}: {summary.not_finite} rewards are infinite or not a number; they count as none")
    if not summary.debates:
        return [*lines, f"{run}: no debates are found"]
    if not summary.checked:
        return [*lines, f"{run}: no rewards are stored to check against"]
    if not summary.differ:
        same = f"stored = recomputed under the run's own scheme: all of {summary.checked} debates"
        return [*lines, same]
    named = ", ".join(summary.differing) + (", ..." if summary.differ > len(summary.differing) else "")
    differ = (
        f"stored and recomputed under the run's own scheme differ in {summary.differ} of {summary.checked}"
    )
    return [*lines, f"{differ} debates: {named}"]


def _table(title: str, parts: tuple[str, ...], summary: Summary, caption: str | None = None) -> Table:
    heads = (*parts, "turns", "sign", "gained", "lost", "old", "new", "moved")
    keys = {key: [_part(one, summary.rounds) for one in key] for key in summary.by(*parts)}
    rows = ((*keys[key], *_cells(tally)) for key, tally in summary.by(*parts).items())
    return text_table(heads, rows, align="l" * len(parts) + "r", title=title, caption=caption, **NARROW)


def _part(part: str | int, rounds: int) -> str:
    """Return a stream, a persona, or a round as a table has it."""
    from debate_rl.formatting import round_number

    return part if isinstance(part, str) else round_number(part, rounds)


def _cells(tally: Tally) -> list[str]:
    from debate_rl.formatting import fixed, percent

    figures = tally.figures()
    shares = [percent(figures[name]) for name in ("sign_changed", "gained", "lost")]
    means = [fixed(figures[name], "+.3f") for name in ("old", "new")]
    return [str(tally.turns), *shares, *means, fixed(figures["moved"])]
