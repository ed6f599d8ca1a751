"""What a filter finds as one HTML file: it needs no server, no script and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from debate.files import naming
from debate_rl.inspector.blocks import Block, Line, Link, Section
from debate_rl.inspector.lists import DEBATES, table_of
from debate_rl.inspector.views import debate_view, vote_graphs
from debate_rl.inspector.views.debate_blocks import debate_blocks
from debate_rl.inspector.views.votes import votes_blocks
from debate_rl.inspector.web.rendering import HERE, Face, render, render_blocks
from transcripts import DebateRow, RunStore, TranscriptError

LIMIT, PIECE_CHARACTERS = 200, 20_000
MARK = '<meta name="generator" content="debate inspect">'
"""By this a file is known as one of ours, which may be replaced."""


@dataclass(frozen=True, slots=True)
class Exported:
    """How many debates a file has, and how many match the filter."""

    written: int
    matching: int


def export_html(
    store: RunStore, filter: str, path: Path | str, *, limit: int = LIMIT, newest: bool = False
) -> Exported:
    """Write the first debates of a filter to one file, which is there as a whole or not at all.

    What is left out, of debates and of very long texts, is said in it. ValueError where there is a file that
    is not one of ours, FilterError for a filter that cannot be read, OSError where it cannot be written.
    """
    path = Path(path)
    _refuse_another(path)
    rows, matching = store.debates(filter, newest=newest, limit=limit), store.count(filter)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with naming(path), fresh.open("x", encoding="utf-8") as file:
            for part in _parts(store, filter, rows, matching):
                file.write(part)
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    return Exported(len(rows), matching)


def _refuse_another(path: Path) -> None:
    """Raise ValueError where a file is in the way that this did not write."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ValueError(f"{path}: is not a file; name another")
    try:
        with path.open("rb") as file:
            ours = MARK.encode() in file.read(4096)
    except FileNotFoundError:
        return
    if not ours:
        raise ValueError(f"{path}: is there and is not an export of debates; name another file")


def _face(held: Collection[str], anchor: str = "") -> Face:
    """Return how the file draws blocks: links lead to what it holds, the others nowhere."""

    def href(link: Link) -> str:
        page, *rest = link.path
        if page != "debate" or len(rest) != 1 or rest[0] not in held or link.query:
            return ""
        return f"#d{rest[0]}-{link.anchor}" if link.anchor else f"#d{rest[0]}"

    return Face(href, PIECE_CHARACTERS, anchor=anchor)


def _parts(store: RunStore, filter: str, rows: list[DebateRow], matching: int) -> Iterator[str]:
    held = {row.id for row in rows}
    sheet = (HERE / "static" / "style.css").read_text(encoding="utf-8")
    mark = b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    table = table_of(DEBATES, rows, name="debates", row_name="row")
    yield render(
        "export.html",
        sheet=sheet,
        sheet_mark=mark,
        mark=MARK,
        run=store.run.resolve().name,
        filter=filter,
        written=len(rows),
        matching=matching,
        list=render_blocks([table] if rows else [], _face(held)),
    )
    for row in rows:
        face = _face(held, f"d{row.id}-")
        head = Markup('<article class="exported" id="d{0}" data-testid="exported"><h1>Debate {0} {1}</h1>')
        up = Markup('<a class="faint top-link" href="#main">↑ list</a>')
        yield head.format(row.id, up) + render_blocks(_debate(store, row.id), face) + Markup("</article>\n")
    yield "</main>\n</body>\n</html>\n"


def _debate(store: RunStore, id: str) -> list[Block]:
    try:
        record = store.debate(id)
    except TranscriptError as error:
        return [Line(str(error), "notice")]
    view, graphs = debate_view(id, record), vote_graphs(record)
    blocks = list(debate_blocks(view, range(len(view.turns[0]) if view.turns else 0)))
    votes = [Section("Votes", votes_blocks(view, graphs), folded=True)] if graphs else []
    return [*blocks, *votes]
