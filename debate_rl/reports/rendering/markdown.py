"""A report as Markdown, as code hosts and notebooks show it; charts become tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from debate_rl.formatting import printable
from debate_rl.reports.document import (
    Answer,
    Behind,
    Chart,
    Document,
    Links,
    Paragraph,
    Part,
    Table,
    data_of,
    numeric,
)
from debate_rl.reports.rendering.json import MARK

MOST_ROWS = 40
"""Rows of a chart's data; the others are in the JSON."""
_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~!$&#@^]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.|\A[-+=](?=[-+=\s]|\Z)"
)
"""What could begin markup: emphasis, links, code, HTML, tables, mathematics, mentions, lists and headings."""
_NUMBERED = re.compile(r"\A(\d+)(?=[.)](?:\s|\Z))")


def as_markdown(document: Document, links: Links | None = None) -> str:
    """Return the report; the debates behind a number are in a footnote, as a command or an address."""
    return "\n".join(_Pages(links or Links()).lines(document)).rstrip() + "\n"


class _Pages:
    """Lines of one report, and the footnotes met so far."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._notes: dict[Behind, int] = {}

    def lines(self, document: Document) -> Iterator[str]:
        yield f"<!-- {MARK} -->"
        yield from (f"# {escaped(document.title)}", "")
        for paragraph in document.lead:
            yield from (f"- {self._text(paragraph)}",)
        for answer in document.answers:
            yield from self._answer(answer)
        for section in document.sections:
            yield from ("", f"## {escaped(section.title)}", "")
            if section.about:
                yield from (f"{escaped(section.about[:1].upper() + section.about[1:])}.", "")
            for part in section.parts:
                lines = [*self._part(part)]
                yield from (*lines, "") if lines else ()
        yield from (self._note(behind, number) for behind, number in self._notes.items())

    def _answer(self, answer: Answer) -> Iterator[str]:
        word = f" {answer.word[:1].upper()}{answer.word[1:]}." if answer.word else ""
        yield from ("", f"**{escaped(answer.question + word)}**", "")
        for part in answer.text:
            yield f"- {self._text(part)}"
            yield from ("", f"      {printable(part.command)}", "") if part.command else ()
        if isinstance(answer.picture, Table):  # the numbers of a chart stand further below
            yield from ("", *self._table(answer.picture))

    def _part(self, part: Part) -> Iterator[str]:
        if isinstance(part, Paragraph):
            yield self._text(part)
        elif isinstance(part, Table):
            yield from self._table(part)
        else:
            yield from self._chart(part)

    def _text(self, part: Paragraph) -> str:
        text = escaped(part.text) + self._mark(part.behind)
        return f"**Note:** {text}" if part.tone in ("warn", "bad") else text

    def _table(self, table: Table) -> Iterator[str]:
        yield from (f"### {escaped(table.title)}", "")
        if not table.rows:
            yield "Nothing to show."
            return
        yield _row(escaped(column) for column in table.columns)
        yield _row("---:" if right else "---" for right in numeric(table))
        for row in table.rows:
            yield _row(escaped(cell.text) + self._mark(cell.behind) for cell in row)
        if table.note:
            yield from ("", escaped(table.note))

    def _chart(self, chart: Chart) -> Iterator[str]:
        if chart.table:
            return
        data = data_of(chart)
        rows = data.rows if len(data.rows) <= MOST_ROWS else ()
        yield from self._table(Table(data.name, data.title, data.columns, rows, chart.note))
        if not rows and data.rows:
            yield f"{len(data.rows):,} rows: see the JSON file."
        if chart.behind is not None:
            yield f"The debates behind it{self._mark(chart.behind)}."

    def _mark(self, behind: Behind | None) -> str:
        if behind is None:
            return ""
        return f"[^{self._notes.setdefault(behind, len(self._notes) + 1)}]"

    def _note(self, behind: Behind, number: int) -> str:
        address = self._links.address(behind)
        shown = f" <{address}>" if address else ""
        return f"[^{number}]: {code(self._links.command(behind))}{shown}"


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    r"""Return a text that Markdown shows as it is, in one line: no markup, no link, no HTML of it counts.

    >>> escaped("a|b <img src=x> [x](y) `c` _d_")
    'a\\|b \\<img src=x\\> \\[x\\](y) \\`c\\` \\_d\\_'
    >>> escaped("0.5 to +0.7 (strict_accuracy)"), escaped("http://x"), escaped("1. x")
    ('0.5 to +0.7 (strict_accuracy)', 'http\\://x', '1\\. x')
    """
    marked = _SPECIAL.sub(lambda match: "\\" + match[0], printable(text))
    return _NUMBERED.sub(r"\1\\", marked)


def code(text: str) -> str:
    """Return a text as inline code, between more backticks than it has in a row.

    >>> code("ls 'a`b'")
    "``ls 'a`b'``"
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
