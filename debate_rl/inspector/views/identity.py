"""What a run is: its model, problems, seed, time and code; its settings, evaluations and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from debate.files import read_json, read_toml
from debate_rl.formatting import counted, duration, share, shorten
from debate_rl.inspector.blocks import Block, Line, Link, Section, Span, Table, Words
from debate_rl.inspector.views.across import evaluation_parts, evaluations
from debate_rl.inspector.views.branches import branches_of
from debate_rl.runs.checkpoint import MANIFEST, best_checkpoint, checkpoints, step_of
from debate_rl.runs.folder import starts_of, wall_seconds

Settings = dict[str, object]


def settings_of(run: Path) -> Settings:
    """Return the settings in a run's config.toml by dotted key, or {} if it cannot be read."""
    from debate_rl.alarms.settings import flat  # loads scipy

    with suppress(OSError, ValueError):
        return flat(read_toml(run / "config.toml"))
    return {}


def identity_line(run: Path) -> Line:
    """Return a run's model, problems, seed, launch and code in one line."""
    own, facts = settings_of(run), dict[str, Any]()
    with suppress(OSError, ValueError):
        facts = read_json(run / "run.json")
    starts = starts_of(facts)
    first, spent = starts[0] if starts else {}, wall_seconds(starts)
    tiny = own.get("model.name_or_path") is None and any(key.startswith("model.tiny") for key in own)
    parts = (
        "a tiny model" if tiny else _name(own.get("model.name_or_path")),
        own.get("env.kind"),
        f"seed {own.get('seed', 0)}",
        f"started {str(first['time'])[:16].replace('T', ' ')}" if "time" in first else "",
        f"{duration(spent)} in {counted(len(starts), 'start')}" if spent else "",
        f"commit {str(first['commit'])[:8]}" if first.get("commit") else "",
    )
    words = " · ".join(shorten(str(part), 60) for part in parts if part)
    report = Span("Report", "page", Link(("report",)) if report_of(run) else None, "report-link")
    return Line((words, Span("  ", "drawn"), report), name="identity")


def report_of(run: Path) -> Path | None:
    """Return the page that ``debate report RUN`` wrote, or None if there is none."""
    path = run / "report" / "report.html"
    return path if path.is_file() and not path.is_symlink() else None


def _name(model: object) -> str:
    """Return the last part of a model's path, or its name on the hub."""
    text = str(model or "")
    return Path(text).name if text.startswith(("/", ".", "~")) else text


def settings_blocks(run: Path, other: tuple[str, Path] | None, others: list[str]) -> list[Block]:
    """Return the settings that a run's recipe gives, or those in which it differs from another run."""
    own = settings_of(run)
    choices: list[Words] = [Span(name, link=Link(("settings",), (("other", name),))) for name in others]
    ways = [Line(["Compare with: ", *_between(choices)], name="others")] if choices else []
    if other is None:
        rows = [(key, _shown(value)) for key, value in own.items()]
        return [*ways, Table(("key", "value"), rows, name="settings", row_name="setting")]
    theirs = settings_of(other[1])
    keys = [key for key in dict.fromkeys((*own, *theirs)) if own.get(key) != theirs.get(key)]
    rows = [(key, _shown(own.get(key, "–")), _shown(theirs.get(key, "–"))) for key in keys]
    table = Table(("key", "this run", other[0]), rows, name="settings", row_name="setting")
    return [*ways, table if rows else Line("The settings are the same.", name="same")]


def _between(words: list[Words]) -> list[Any]:
    return [part for word in words for part in (word, "  ")][:-1]


def _shown(value: object) -> str:
    return shorten(str(value), 300)


def parts_blocks(run: Path, name: str) -> list[Block]:
    """Return a run's evaluations with links to their debates, and its checkpoints."""
    notes: list[str] = []
    rows: list[tuple[Words, Words, Words, Words]] = []
    for evaluation in evaluations(run, notes):
        for part in evaluation_parts(evaluation, notes):
            link = Link(("/run", f"{name}:{evaluation.name}:{part.name}"))
            rows.append(
                (Span(evaluation.name, link=link), str(evaluation.step), part.name, f"{part.debates:,}")
            )
    heads = ("evaluation", ">after steps", "part", ">debates")
    blocks: list[Block] = [Line(note, "notice") for note in notes]
    blocks.append(Table(heads, rows, name="evaluations") if rows else Line("No evaluation yet.", name="none"))
    return [*blocks, Section("Checkpoints", [_checkpoints(run)]), *branches_of(run)]


def _checkpoints(run: Path) -> Block:
    """Return the checkpoints of a run with their held-out figures and sizes."""
    from debate_rl.metrics.held_out import DIRECT, WINNER, read_held_out  # loads scipy

    home = run / "checkpoints"
    figures = {one.step: one for one in read_held_out(run)}
    best, rows = best_checkpoint(home), list[Sequence[Words]]()
    for path in checkpoints(home):
        found = figures.get(step_of(path))
        shares = (found.estimate(name) if found else None for name in (DIRECT, WINNER))
        mark = Span(" ★ best", "lit") if path == best else ""
        cells = (share(one.value if one else None) for one in shares)
        rows.append(((path.name, mark), f"{step_of(path):,}", *cells, _size(path)))
    heads = ("checkpoint", ">after steps", ">held-out, one agent alone", ">held-out, winner", ">size")
    return (
        Table(heads, rows, name="checkpoints") if rows else Line("No checkpoint yet.", name="no-checkpoint")
    )


def _size(path: Path) -> str:
    """Return the size of a checkpoint's files by its manifest, or "–" if it cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        total = sum(int(file["bytes"]) for file in read_json(path / MANIFEST)["files"].values())
        return f"{total / 1e9:.2f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
    return "–"
