"""``debate report RUN...``: write a report on how well a policy judges and how training went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from debate.files import write_text
from debate_rl.commands.console import plain_console, progress_bar, text_table, wide_console
from debate_rl.commands.options import FilterOption, JsonFile
from debate_rl.formatting import number
from debate_rl.reports.document import Answer, Judged, interval_of
from debate_rl.reports.figures import Figure
from debate_rl.reports.pages import MARK, as_html, as_json, check_inspector, refuse_missing
from debate_rl.reports.report import judge_run, stages_sections, whole_report, with_stages
from debate_rl.reports.run import load_runs
from debate_rl.runs.folder import write_whole
from transcripts import compile_filter

FILES = ("report.html", "report.json")
SHOWN = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/correlation", "cascade/vulnerability", "cascade/recovery"),
)


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    filter: FilterOption = "",
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Write to this folder; default: RUN/report, or ./report for several runs.",
        ),
    ] = None,
    json: JsonFile = None,
    inspector: Annotated[
        str,
        typer.Option(metavar="URL", help="Link figures to their debates in the inspector at this address."),
    ] = "",
) -> None:
    """Report how well a policy judges and how training went, as an HTML page and JSON."""
    refuse_missing()
    compile_filter(filter)  # raises before anything is read or written
    check_inspector(inspector)
    folder = Path(out or (Path(runs[0]) / "report" if len(runs) == 1 else "report"))
    refuse_foreign(folder)
    stages, names = stages_sections(runs), with_stages(runs)
    judged: list[Judged] = []
    for name in names:
        with progress_bar() as progress:
            tell = partial(progress.update, progress.add_task(name, total=None), advance=1)
            judged.append(judge_run(name, filter, tell=lambda total, tell=tell: tell(total=total)))
    document = whole_report(judged, trained=load_runs([Path(name) for name in names]), more=stages)
    facts = as_json(document, judged)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(FILES, (as_html(document, inspector), facts), strict=True):
        write_whole(folder / name, text.encode(errors="replace"))
    if json is not None:
        write_text(json, facts)
    _show(judged, document.answers)
    plain_console().print(f"Report: {folder / FILES[0]} ({FILES[1]} next to it)")


def refuse_foreign(folder: Path) -> None:
    """Raise ValueError if the report would replace a file that ``debate report`` did not write."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is not a folder; choose another --out")
    for name in FILES:
        path = folder / name
        if path.is_symlink() or path.exists():
            if path.exists() and not path.is_file():  # opening a pipe would block
                raise ValueError(f"{path}: is not a file; choose another --out")
            with path.open("rb") as file:
                head = file.read(200)
            if MARK.encode() not in head:
                raise ValueError(f"{path}: was not written by debate report; choose another --out")


def _show(runs: Sequence[Judged], answers: Sequence[Answer]) -> None:
    """Print the answers of the first screen and the main figures, with a column for each run."""
    say = plain_console().print
    for answer in answers:
        word = f" {answer.word[:1].upper()}{answer.word[1:]}." if answer.word else ""
        say(f"{answer.question}{word}")
        for part in answer.text:
            say(f"  {part.text}")
            if part.command:
                say(f"      {part.command}")

    def shown(figure: Figure) -> str:
        if figure.estimate is None:
            return "none"
        text = number(figure.estimate.value, signed=figure.range[0] < 0)
        return f"{text} ({interval_of(figure.estimate, figure.range)})"

    by_name = [{figure.name: figure for figure in judged.figures} for judged in runs]
    if any(figures[name].estimate for figures in by_name for name in SHOWN):
        heads = ("figure", *(judged.run for judged in runs))
        rows = ((name, *(shown(figures[name]) for figures in by_name)) for name in SHOWN)
        caption = "with 95% intervals clustered by problem"
        table = text_table(heads, rows, caption=caption, caption_justify="left")
        wide_console(30 + 40 * len(runs)).print(table)
