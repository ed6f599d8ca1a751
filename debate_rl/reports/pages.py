"""Reports as files: one HTML file that needs nothing else, and JSON.

The page has no script, loads nothing, and is readable in light, dark and print. jinja2 and matplotlib (extra
``report``) are imported when it is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from debate_rl.formatting import json_number, printable
from debate_rl.reports.document import (
    Answer,
    Chart,
    Document,
    Judged,
    Links,
    Paragraph,
    Part,
    Section,
    Table,
    combined_filter,
    data_of,
)
from debate_rl.reports.drawing import draw

__all__ = ["Links", "as_html", "as_json", "refuse_missing"]

TEMPLATES = Path(__file__).parent / "templates"
SCHEMA = 1
MARK = "debate report"
"""Stands in the first line of every file that a report writes: those it may replace."""


def refuse_missing() -> None:
    """ImportError where a package that a page needs is not installed."""
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401  # first: no other extra has it, so that the error can name this one


def as_html(document: Document, links: Links | None = None) -> str:
    """Return the page. Every text of the document is escaped; charts are drawn here."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        """Texts have no characters that cannot be seen; what the page itself is made of stays."""
        return printable(value) if type(value) is str else value

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    return environment.get_template("report.html").render(
        mark=MARK,
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        document=document,
        sections=list(zip(_anchors(document.sections), document.sections, strict=True)),
        links=links or Links(),
        kind=lambda part: type(part).__name__.lower(),
        draw=lambda chart: Markup(draw(chart)),
        data_of=data_of,
        looks=_looks,
    )


def _looks(table: Table) -> list[str]:
    """Return for each column "num" where it holds numbers, and "long" where it holds sentences."""
    columns = [[row[index].text for row in table.rows] for index in range(len(table.columns))]
    right = [
        bool(texts) and all(t in ("", "none", "-") or t.lstrip("+-.")[:1].isdigit() for t in texts)
        for texts in columns
    ]
    long = [index > 0 and max(map(len, texts), default=0) > 40 for index, texts in enumerate(columns)]
    return [
        ("num" if number else "") + ("long" if words else "")
        for number, words in zip(right, long, strict=True)
    ]


def _anchors(sections: Sequence[Section]) -> list[str]:
    """Return a name for each section that is one word and no other section's."""
    anchors: list[str] = []
    for index, section in enumerate(sections):
        name = re.sub(r"[^a-zA-Z0-9_-]+", "-", section.name) or "section"
        anchors.append(name if name not in anchors else f"{name}-{index}")
    return anchors


def as_json(document: Document, runs: Sequence[Judged] = ()) -> str:
    """Return the report: ``made_by``, ``schema``, ``title``, ``lead``, ``answers``, ``findings``, ``figures``
    of all runs, ``sections``.

    Infinite bounds and missing values are null. Texts are as they were, control characters escaped.
    """
    facts = {
        "made_by": MARK,
        "schema": SCHEMA,
        "title": document.title,
        "lead": [_part(part) for part in document.lead],
        "answers": {answer.name: _answer(answer) for answer in document.answers},
        "findings": [_plain(finding) for finding in document.findings],
        "figures": [row for judged in runs for row in _figures(judged)],
        "sections": [
            {"name": one.name, "title": one.title, "about": one.about, "parts": list(map(_part, one.parts))}
            for one in document.sections
        ],
    }
    return json.dumps(facts, indent=1, allow_nan=False) + "\n"


def _figures(judged: Judged) -> Iterator[Mapping[str, object]]:
    for figure in judged.figures:
        estimate, about = figure.estimate, figure.about
        yield {
            "run": judged.run,
            "name": figure.name,
            "estimate": json_number(estimate.value) if estimate else None,
            **{name: json_number(getattr(estimate, name, None)) for name in ("low", "high", "p")},
            "n": estimate.n if estimate else 0,
            "problems": estimate.clusters if estimate else 0,
            "filter": combined_filter(judged.filter, figure.filter),
            "why": figure.why,
            "flag": figure.flag,
            "meaning": about["text"],
            "source": about["source"],
        }


def _answer(answer: Answer) -> dict[str, object]:
    """Return the answer in a word and in sentences, with the commands to type and the picture."""
    texts = [part.text for part in answer.text]
    commands = [part.command for part in answer.text if part.command]
    facts = {"question": answer.question, "word": answer.word, "tone": answer.tone, "text": texts}
    picture = _part(answer.picture) if answer.picture else None
    return _plain(facts | {"commands": commands}) | {"picture": picture}


def _part(part: Part) -> dict[str, object]:
    kind = type(part).__name__.lower()
    if isinstance(part, Paragraph | Chart):
        return {"type": kind, **_plain(asdict(part))}
    cells = ([_plain(asdict(cell)) for cell in row] for row in part.rows)
    rows = [
        [{n: v for n, v in cell.items() if v not in (None, "") or n == "text"} for cell in row]
        for row in cells
    ]
    about = {"name": part.name, "title": part.title, "columns": list(part.columns), "note": part.note}
    return {"type": kind, **about, "rows": rows}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, all the way down."""
    if isinstance(value, dict):
        return {printable(str(name)): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return json_number(value)
