"""``debate report RUN...``: how well a policy judges and how training went, in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from debate_rl.commands.console import plain_console, progress_bar, text_table, wide_console
from debate_rl.commands.options import FilterOption, JsonFile

if TYPE_CHECKING:
    from debate_rl.reports.cells import Judged
    from debate_rl.reports.document import Answer
    from debate_rl.reports.figures.figure import Figure
    from debate_rl.reports.rendering import Links
    from debate_rl.reports.simulation import Judges
    from debate_rl.reports.training.loading import Run

FILES: tuple[str, ...] = ("report.html", "report.md", "report.json")
EXAMPLE = "debate-example"
EXAMPLE_PROBLEMS, EXAMPLE_DEBATES = 60, 200
LEAST_DEBATES = 600
"""Debates simulated on a file's solutions; more where it has more problems."""
SHOWN = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/correlation", "cascade/vulnerability", "cascade/recovery"),
)


def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Folders of runs.")] = None,
    filter: FilterOption = "",
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Write to this folder; default RUN/report, or ./report for several runs.",
        ),
    ] = None,
    json: JsonFile = None,
    inspector: Annotated[
        str, typer.Option(metavar="URL", help="Link figures to their debates in this browser inspector.")
    ] = "",
    example: Annotated[
        bool, typer.Option("--example", help="Simulate a run of debates, and report on it.")
    ] = False,
    solutions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Simulate debates on the solutions in a file of JSON lines."),
    ] = None,
    judge_accuracy: Annotated[float, typer.Option(help="Accuracy of simulated judges.")] = 0.7,
    position_bias: Annotated[
        float, typer.Option(help="Bias of simulated judges for what is shown first.")
    ] = 0.0,
    tie_rate: Annotated[float, typer.Option(help="Share of ties among simulated votes.")] = 0.0,
    agents: Annotated[int, typer.Option(help="Agents of simulated debates.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of simulated debates.")] = 0,
) -> None:
    """Report how well a policy judges and how training went, as a page, as Markdown and as JSON."""
    from debate_rl.reports.rendering import Links, refuse_missing
    from debate_rl.reports.simulation import Judges
    from transcripts import compile_filter

    refuse_missing()
    compile_filter(filter)  # says what is wrong before anything is read or written
    names, links = runs or [], Links(inspector)
    if example or solutions is not None:
        if names:
            raise ValueError(f"{names[0]}: --example and --solutions make a run of their own; name none")
        judges = Judges(judge_accuracy, position_bias, tie_rate)
        names, out = [str(_simulate(solutions, judges, agents, seed, out))], None
    if not names:
        raise ValueError("name the folder of a run, or say --example or --solutions FILE")
    folder = Path(out or (Path(names[0]) / "report" if len(names) == 1 else "report"))
    refuse_foreign(folder)
    _write(names, filter, folder, json, links)


def _write(names: Sequence[str], filter: str, folder: Path, json: str | None, links: Links) -> None:
    """Write the report of the runs, and print its answers and main figures."""
    from debate_rl.reports.rendering import as_html, as_json, as_markdown
    from debate_rl.reports.report import whole_report
    from debate_rl.reports.stages import stages_sections, with_stages
    from debate_rl.runs.folder import write_whole

    stages, names = stages_sections(names), with_stages(names)
    judged = [_judge(name, filter) for name in names]
    document = whole_report(judged, trained=_trained(names), more=stages)
    facts = as_json(document, judged)
    texts = as_html(document, links), as_markdown(document, links), facts
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(FILES, texts, strict=True):
        write_whole(folder / name, text.encode(errors="replace"))
    if json is not None:
        from debate.files import write_text

        write_text(json, facts)
    _show(judged, document.answers)
    plain_console().print(f"Report: {folder / FILES[0]} ({', '.join(FILES[1:])} next to it)")


def _simulate(solutions: str | None, judges: Judges, agents: int, seed: int, out: str | None) -> Path:
    """Make a run of simulated debates, on a file's solutions or on made ones, and return its folder."""
    from debate_rl.reports.simulation import Setting, made_solutions, read_solutions, simulate_run
    from debate_rl.runs.provenance import checksum

    if solutions is None:
        folder, origin, debates = Path(out or EXAMPLE), "made", EXAMPLE_DEBATES
        solved = made_solutions(EXAMPLE_PROBLEMS, seed=seed)
    else:
        path = Path(solutions)
        solved = read_solutions(path)
        folder = Path(out or f"debate-{path.stem}")
        origin = f"{path.name} {checksum(path)[:12]}"
        debates = max(LEAST_DEBATES, len(solved))
    simulate_run(folder, solved, Setting(origin, judges, agents, debates=debates, seed=seed))
    return folder


def _judge(name: str, filter: str) -> Judged:
    from debate_rl.reports.report import judge_run

    with progress_bar() as progress:
        task = progress.add_task(name, total=None)
        return judge_run(name, filter, tell=lambda total: progress.update(task, total=total, advance=1))


def _trained(names: Sequence[str]) -> Sequence[Run]:
    """Return the runs that were trained, simulated ones left out."""
    from debate_rl.reports.simulation import read_setting
    from debate_rl.reports.training.loading import load_runs

    return load_runs([Path(name) for name in names if read_setting(Path(name)) is None])


def refuse_foreign(folder: Path) -> None:
    """Raise ValueError where a file that a report would replace was not written by one."""
    from debate_rl.reports.rendering.json import MARK

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is not a folder; choose another --out")
    for name in FILES:
        path = folder / name
        if path.is_symlink() or path.exists():
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise ValueError(f"{path}: is not a file; choose another --out")
            with path.open("rb") as file:
                head = file.read(200)
            if MARK.encode() not in head:
                raise ValueError(f"{path}: was not written by debate report; choose another --out")


def _show(runs: Sequence[Judged], answers: Sequence[Answer]) -> None:
    """Print the answers of the first screen, then the main figures, a column for each run."""
    say = plain_console().print
    for answer in answers:
        word = f" {answer.word[:1].upper()}{answer.word[1:]}." if answer.word else ""
        say(f"{answer.question}{word}")
        for part in answer.text:
            say(f"  {part.text}")
            if part.command:
                say(f"      {part.command}")
    if any(figure.estimate for judged in runs for figure in judged.figures if figure.name in SHOWN):
        wide_console(30 + 40 * len(runs)).print(_main_figures(runs))


def _main_figures(runs: Sequence[Judged]) -> Table:
    heads = ("figure", *(judged.run for judged in runs))
    by_name = [{figure.name: figure for figure in judged.figures} for judged in runs]
    rows = ((name, *(_with_interval(figures[name]) for figures in by_name)) for name in SHOWN)
    caption = "with 95% intervals clustered by problem"
    return text_table(heads, rows, caption=caption, caption_justify="left")


def _with_interval(figure: Figure) -> str:
    from debate_rl.formatting import number
    from debate_rl.reports.cells import bounds_of, interval_of

    if figure.estimate is None:
        return "none"
    text = number(figure.estimate.value, signed=bounds_of(figure.name)[0] < 0)
    return f"{text} ({interval_of(figure.name, figure.estimate)})"
