"""Reports as files: a self-contained HTML page, and JSON.

The page has no script, loads nothing, and is readable in light, dark and print. jinja2 and matplotlib (extra
``report``) are imported when a page is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from debate_rl.formatting import json_number, printable
from debate_rl.reports.document import (
    Answer,
    Chart,
    Document,
    Judged,
    Paragraph,
    Part,
    Table,
    combined_filter,
)
from debate_rl.reports.drawing import draw

TEMPLATES = Path(__file__).parent / "templates"
SCHEMA = 1
MARK = "debate report"
"""Part of the first line of every report file. Only files with this line are replaced."""


def refuse_missing() -> None:
    """Raise ImportError if a package that a page needs is not installed."""
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401  # first: only the extra `report` has it


def check_inspector(address: str) -> None:
    """Raise ValueError for an address to which pages must not link."""
    if address and not address.startswith(("http://", "https://")):
        raise ValueError(f"--inspector {address}: must begin with http:// or https://")


def as_html(document: Document, inspector: str = "") -> str:
    """Return the page with all texts escaped, and links to a running browser inspector, if any."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    check_inspector(inspector)

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,  # Markup is left unchanged
    )
    anchors: list[str] = []  # single words, unique among sections
    for index, section in enumerate(document.sections):
        name = re.sub(r"[^a-zA-Z0-9_-]+", "-", section.name) or "section"
        anchors.append(name if name not in anchors else f"{name}-{index}")
    return environment.get_template("report.html").render(
        mark=MARK,
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        document=document,
        sections=list(zip(anchors, document.sections, strict=True)),
        inspector=inspector,
        kind=lambda part: type(part).__name__.lower(),
        draw=lambda chart: Markup(draw(chart)),
        looks=_looks,
    )


def _looks(table: Table) -> list[str]:
    """Return a class for each column: "num" for numbers, "long" for sentences."""
    looks: list[str] = []
    for index in range(len(table.columns)):
        texts = [row[index].text for row in table.rows]
        numbers = (text in ("", "none", "-") or text.lstrip("+-.")[:1].isdigit() for text in texts)
        long = index > 0 and max(map(len, texts), default=0) > 40
        looks.append(("num" if texts and all(numbers) else "") + ("long" if long else ""))
    return looks


def as_json(document: Document, runs: Sequence[Judged] = ()) -> str:
    """Return the report as JSON.

    Keys: ``made_by``, ``schema``, ``title``, ``lead``, ``answers``, ``findings``, ``figures`` of all runs,
    ``sections``. Infinite bounds and missing values are null. Texts are unchanged, with control characters
    escaped.
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


def _figures(judged: Judged) -> list[dict[str, object]]:
    return [
        {
            "run": judged.run,
            "name": figure.name,
            "estimate": json_number(figure.estimate.value) if figure.estimate else None,
            **{name: json_number(getattr(figure.estimate, name, None)) for name in ("low", "high", "p")},
            "n": figure.estimate.n if figure.estimate else 0,
            "problems": figure.estimate.clusters if figure.estimate else 0,
            "filter": combined_filter(judged.filter, figure.filter),
            "why": figure.why,
            "flag": figure.flag,
            "meaning": figure.about["text"],
            "source": figure.about["source"],
        }
        for figure in judged.figures
    ]


def _answer(answer: Answer) -> dict[str, object]:
    facts = {"question": answer.question, "word": answer.word, "tone": answer.tone}
    facts |= {"text": [part.text for part in answer.text]}
    facts |= {"commands": [part.command for part in answer.text if part.command]}
    return _plain(facts) | {"picture": _part(answer.picture) if answer.picture else None}


def _part(part: Part) -> dict[str, object]:
    kind = type(part).__name__.lower()
    if isinstance(part, Paragraph | Chart):
        return {"type": kind, **_plain(asdict(part))}
    cells = ([_plain(asdict(cell)).items() for cell in row] for row in part.rows)
    rows = [[{n: v for n, v in cell if v not in (None, "") or n == "text"} for cell in row] for row in cells]
    about = {"name": part.name, "title": part.title, "columns": list(part.columns), "note": part.note}
    return {"type": kind, **about, "rows": rows}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {printable(str(name)): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else json_number(value)
