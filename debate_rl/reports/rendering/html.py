"""A report as one HTML file: no script, nothing loaded from anywhere, readable in light, dark and print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.formatting import printable
from debate_rl.reports.document import Chart, Document, Links, Part, Section, Table, data_of, numeric, wordy
from debate_rl.reports.rendering.charts import draw
from debate_rl.reports.rendering.json import MARK

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def refuse_missing() -> None:
    """ImportError where a package that a page needs is not installed."""
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401  # first: no other extra has it, so that the error can name this one


def as_html(document: Document, links: Links | None = None) -> str:
    """Return the page. Every text of the document is escaped; charts are drawn here."""
    environment = _environment()
    from markupsafe import Markup

    return environment.get_template("report.html").render(
        mark=MARK,
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        document=document,
        sections=list(zip(_anchors(document.sections), document.sections, strict=True)),
        links=links or Links(),
        kind=kind_of,
        draw=lambda chart: Markup(draw(chart)),
        data_of=data_of,
        numeric=numeric,
        wordy=wordy,
    )


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )


def _printable(value: object) -> object:
    """Return a text without characters that cannot be seen; what the page itself is made of stays."""
    return printable(value) if type(value) is str else value


def kind_of(part: Part) -> str:
    """Return "chart", "table" or "paragraph"."""
    if isinstance(part, Chart):
        return "chart"
    return "table" if isinstance(part, Table) else "paragraph"


def _anchors(sections: tuple[Section, ...]) -> list[str]:
    """Return a name for each section that is one word and no other section's."""
    anchors: list[str] = []
    for index, section in enumerate(sections):
        name = re.sub(r"[^a-zA-Z0-9_-]+", "-", section.name) or "section"
        anchors.append(name if name not in anchors else f"{name}-{index}")
    return anchors
