r"""``debate eval regrade``: grade stored replies in other modes, or cut at stop strings, without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, print_table, progress_bar, write_json
from debate_rl.commands.eval_tables import write_tables
from debate_rl.commands.options import FilterOption, JsonFile, StepsOption, TableFile, listed, steps_of
from debate_rl.metrics.intervals import Estimate
from debate_rl.replay import regrading
from debate_rl.replay.regrading import Row, Sheet, modes_named, plain, sources_of, stop_strings
from envs.types import Mode
from transcripts import compile_filter

MODES: tuple[Mode, ...] = ("boxed", "lenient")
"""The strictest and the most lenient mode, used in addition to the mode of the stored grades."""
_SET = "the prompt set's stop strings"


def regrade(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|EVALUATION...",
            help="Folders of runs (their training and all their evaluations), or of evaluations.",
        ),
    ],
    modes: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Grade in these modes (docs/grading.md); default: the stored mode, boxed and lenient.",
        ),
    ] = "",
    clip: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help=r"Also cut every reply at the first of these stop strings, except inside its thinking; "
            r"\n is a line break, \, a comma. family: those of its prompt set; family:NAME: of another set.",
        ),
    ] = "",
    filter: FilterOption = "",
    steps: StepsOption = "",
    json: JsonFile = None,
    table: TableFile = None,
) -> None:
    """Grade stored replies again in other modes, or cut at stop strings, without a model.

    With --clip, a second table splits each gain over the first weights into better answers and endings.
    """
    compile_filter(filter)  # raises before anything is read
    graders, stops, wanted = modes_named(listed(modes)), regrading.stops_of(clip), steps_of(steps)
    if modes and not graders:
        raise ValueError("--modes: name at least one mode (docs/grading.md)")
    found = [
        (source, regrading.own_environment(Path(name)))
        for name in what
        for source in sources_of(Path(name), filter=filter, steps=wanted)
    ]
    graders = graders or modes_named(
        dict.fromkeys((*(regrading.stored_mode_of(one) for one, _ in found), *MODES))
    )
    sheets: list[Sheet] = []
    for source, own in found:
        with progress_bar() as progress:
            tell = partial(progress.advance, progress.add_task(source.name, total=None))
            sheets += regrading.regrade(source, graders, stops, own=own, tell=tell)
    if not any(sheet.problems for sheet in sheets):
        raise ValueError(f"{what[0]}: has no stored replies to problems with a gold answer")
    lines = [line for sheet in sheets for line in regrading.lines_of(sheet, clip=bool(clip))]
    gains = list(regrading.gains_of(sheets)) if clip else []
    tables = {"": regrading.table_of(lines, clip=bool(clip))} | (
        {"gains": regrading.gain_table(gains)} if gains else {}
    )
    for rows in tables.values():
        print_table(rows, align="llllr")
    for note in _notes(gains, sheets, clip):
        plain_console().print(note)
    if json is not None:
        found = {"lines": lines, "gains": gains}
        rows = {name: [_plain(row) for row in of] for name, of in found.items()}
        write_json(json, {"schema": 1, "clip": clip, **rows})
    if table is not None:
        write_tables(table, tables)


def _notes(gains: Sequence[Row], sheets: Sequence[Sheet], clip: str) -> Iterator[str]:
    yield "Shares of replies, with 95% intervals clustered by problem. 'stored': grades in the transcripts."
    if clip:
        named = ", ".join(map(repr, stop_strings(clip)))
        is_family = clip.partition(":")[0] == regrading.FAMILY
        yield f"Clipped at the first of {_SET if is_family else named}; nothing was sampled."
    if gains:
        yield "'from stopping': the gain as sampled minus the gain clipped."
    if any(not gain["paired"] for gain in gains):
        yield "Gains between different problems, such as those of early and late steps, are not paired."
    if count := sum(sheet.open for sheet in sheets):
        yield f"{count} replies to open problems are left out: they have no gold answer."
    if ungraded := sum(sheet.ungraded.total() for sheet in sheets):
        yield f"{ungraded} grades are left out: the grader gave no verdict."


def _plain(row: Row) -> Row:
    return {name: plain(value) if isinstance(value, Estimate) else value for name, value in row.items()}
