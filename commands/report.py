"""``debate report RUN...``: how well a policy judges and how training went, in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.progress import progress_bar
from transcripts import compile_filter

if TYPE_CHECKING:
    from reports.document import Section
    from reports.figures.figure import Figure
    from reports.judgment import Judged

FILES: tuple[str, ...] = ("report.html", "report.md", "report.json")
EXAMPLE = "debate-example"
EXAMPLE_PROBLEMS, EXAMPLE_DEBATES = 60, 200
LEAST_DEBATES = 600
"""Debates simulated on a file's solutions; more where it has more problems."""
SHOWN = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "bias/position"),
    *("winner/correct", "winner/lift", "winner/correlation", "cascade/vulnerability", "cascade/recovery"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for beside the runs."""

    filter: str = ""
    out: str | None = None
    json_path: str | None = None
    inspector: str = ""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Debates to simulate: on the ``solutions`` of a file, or on made ones where it is None."""

    solutions: str | None
    accuracy: float = 0.7
    position: float = 0.0
    ties: float = 0.0
    agents: int = 3
    seed: int = 0


def run_report(names: Sequence[str], asked: Asked, simulated: Simulated | None = None) -> None:
    """Write the report of the runs, or of simulated debates that are made first."""
    from reports.rendering import Links, as_html, as_json, as_markdown, refuse_missing
    from reports.whole import whole_report

    refuse_missing()
    compile_filter(asked.filter)  # says what is wrong before anything is read or written
    links = Links(asked.inspector)
    if simulated is not None:
        names, asked = [str(_simulate(names, asked, simulated))], replace(asked, out=None)
    if not names:
        raise ValueError("name the folder of a run, or say --example")
    folder = Path(asked.out or (Path(names[0]) / "report" if len(names) == 1 else "report"))
    refuse_foreign(folder)
    _refuse_no_folder(asked.json_path)
    runs = [_judge(name, asked.filter) for name in names]
    training = _training(names)
    document = whole_report(runs, more=training)
    facts = as_json(document, runs)
    texts = as_html(document, links), as_markdown(document, links), facts
    write_files(folder, dict(zip(FILES, texts, strict=True)))
    if asked.json_path is not None:
        Path(asked.json_path).write_text(facts, encoding="utf-8")
    _show(runs, training[:1], Console())
    print(f"Report: {folder / FILES[0]} ({', '.join(FILES[1:])} beside it)")


def _simulate(names: Sequence[str], asked: Asked, simulated: Simulated) -> Path:
    """Make the run folder of simulated debates, and return it."""
    from reports.simulation import Judges, Setting, made_solutions, read_solutions, simulate_run

    if names:
        raise ValueError(f"{names[0]}: --example and --solutions make a run of their own; name none")
    judges = Judges(simulated.accuracy, simulated.position, simulated.ties)
    if simulated.solutions is None:
        folder, origin, debates = Path(asked.out or EXAMPLE), "made", EXAMPLE_DEBATES
        solved = made_solutions(EXAMPLE_PROBLEMS, seed=simulated.seed)
    else:
        path = Path(simulated.solutions)
        solved = read_solutions(path)
        folder = Path(asked.out or f"debate-{path.stem}")
        origin = f"{path.name} {sha256(path.read_bytes()).hexdigest()[:12]}"
        debates = max(LEAST_DEBATES, len(solved))
    setting = Setting(origin, judges, simulated.agents, debates=debates, seed=simulated.seed)
    simulate_run(folder, solved, setting)
    return folder


def _judge(name: str, filter: str) -> Judged:
    from reports.reading import judge_run

    with progress_bar() as progress:
        task = progress.add_task(Text(name).plain, total=None)
        return judge_run(name, filter, tell=lambda total: progress.update(task, total=total, advance=1))


def _training(names: Sequence[str]) -> Sequence[Section]:
    """Return how training went in the runs that were trained, simulated ones left out."""
    from reports.simulation import read_setting
    from reports.training import training_sections

    trained = [Path(name) for name in names if read_setting(Path(name)) is None]
    return training_sections(trained) if trained else ()


def refuse_foreign(folder: Path) -> None:
    """Raise ValueError where a file that a report would replace was not written by one."""
    from reports.rendering.json import MARK

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


def write_files(folder: Path, written: dict[str, str]) -> None:
    """Write each file beside its place, then put it there at once."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        fresh = folder / f".{name}.{os.getpid()}.new"
        try:
            fresh.write_text(text, encoding="utf-8", errors="replace")
            fresh.replace(folder / name)
        finally:
            fresh.unlink(missing_ok=True)


def _refuse_no_folder(path: str | None) -> None:
    if path is not None and (not Path(path).parent.is_dir() or Path(path).is_dir()):
        raise ValueError(f"--json {path}: cannot be written; name a file in a folder that exists")


def _show(runs: Sequence[Judged], verdicts: Sequence[Section], console: Console) -> None:
    """Print the main figures, a column for each run, what to be warned of, and how training went."""
    from learner.formatting import printable
    from reports.document import Paragraph
    from reports.judgment import judgment_lead

    if not console.is_terminal:
        console = Console(file=console.file, width=max(80, 30 + 40 * len(runs)))
    table = Table(caption="with 95% intervals clustered by problem", caption_justify="left")
    table.add_column("figure")
    for judged in runs:
        table.add_column(Text(printable(judged.run)), justify="right")
    found = [{figure.name: figure for figure in judged.figures} for judged in runs]
    for name in SHOWN:
        table.add_row(name, *(Text(_told(figures[name])) for figures in found))
    console.print(table)
    plain = Console(markup=False, highlight=False, soft_wrap=True)
    for judged in runs:
        of = f"{judged.run}: " if len(runs) > 1 else ""
        for paragraph in judgment_lead(judged):
            if paragraph.tone in ("warn", "bad"):
                plain.print(printable(f"Note: {of}{paragraph.text}"))
    for part in (part for section in verdicts for part in section.parts):
        if isinstance(part, Paragraph):
            plain.print(printable(f"Training: {part.text}"))


def _told(figure: Figure) -> str:
    from learner.formatting import number
    from reports.judgment.told import bounds_of, interval_of

    if figure.estimate is None:
        return "none"
    text = number(figure.estimate.value, signed=bounds_of(figure.name)[0] < 0)
    return f"{text} ({interval_of(figure.name, figure.estimate)})"
