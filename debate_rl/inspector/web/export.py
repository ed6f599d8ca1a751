"""What a filter finds as one HTML file: it needs no server, no script and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from debate.files import naming
from debate_rl.inspector.views import debate_view, vote_graphs
from debate_rl.inspector.web.debate_page import rounds_of
from debate_rl.inspector.web.debate_views import MOST_LISTED, shown_round
from debate_rl.inspector.web.rendering import HERE, render, typeset, typeset_answer
from transcripts import DebateRow, RunStore, TranscriptError

LIMIT, PIECE_CHARACTERS, EVERY_TURN = 200, 20_000, 1 << 20
MARK = '<meta name="generator" content="debate inspect">'
"""By this a file is known as one of ours, which may be replaced."""


@dataclass(frozen=True, slots=True)
class FileLinks:
    """The addresses within the file; "" for what it does not hold."""

    run: str
    filter: str
    held: Collection[str]
    newest: bool = False

    def __call__(self, *parts: str, **query: object) -> str:
        """Return no address: a file has no other pages."""
        return ""

    def debate(self, id: str, *view: str, anchor: str = "", **query: object) -> str:
        """Return where a debate stands, "" for other views of it."""
        if id not in self.held or view or query:
            return ""
        return f"#d{id}-{anchor}" if anchor else f"#d{id}"

    def turn(self, id: str, agent: int, round_: int) -> str:
        """Return where a turn stands."""
        return self.debate(id, anchor=f"turn-{agent}.{round_}")


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
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with naming(path), beside.open("x", encoding="utf-8") as file:
            for part in _parts(store, filter, rows, matching):
                file.write(part)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
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


def _parts(store: RunStore, filter: str, rows: list[DebateRow], matching: int) -> Iterator[str]:
    links = FileLinks(store.run.resolve().name, filter, {row.id for row in rows})
    sheet = (HERE / "static" / "style.css").read_text(encoding="utf-8")
    mark = b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    facts = {"links": links, "rows": rows, "matching": matching}
    yield render("export_head.html", sheet=sheet, sheet_mark=mark, mark=MARK, **facts)
    for row in rows:
        yield _debate(store, row.id, links)
    yield "</main>\n</body>\n</html>\n"


def _debate(store: RunStore, id: str, links: FileLinks) -> str:
    try:
        record = store.debate(id)
    except TranscriptError as error:
        return render("export_damaged.html", id=id, problem=str(error))
    view = debate_view(id, record)
    return render(
        "export_debate.html",
        id=id,
        anchor=f"d{id}-",
        links=links,
        view=view,
        rounds=rounds_of(view, most_turns=EVERY_TURN, limit=PIECE_CHARACTERS),
        graphs=[shown_round(graph, view) for graph in vote_graphs(record)],
        graded={turn.id: turn.grade for turn in view.spoken()},
        listed=MOST_LISTED,
        write=typeset,
        answer=typeset_answer,
    )
