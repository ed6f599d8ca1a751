"""Blocks as HTML, with escaped texts, marked unseen characters and mathematics; and debates as one file."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from debate.files import naming
from debate_rl.formatting import shorten, with_codes
from debate_rl.inspector.blocks import Block, Line, Link, Marks, Section, Span, Text, Words, spans
from debate_rl.inspector.lists import DEBATES, table_of
from debate_rl.inspector.views import debate_view, vote_graphs
from debate_rl.inspector.views.debate_blocks import debate_blocks
from debate_rl.inspector.views.group import Group, group_blocks, group_view
from debate_rl.inspector.views.marks import Marker
from debate_rl.inspector.views.votes import votes_blocks
from debate_rl.inspector.web.drawing import draw_votes
from debate_rl.mathematics import with_mathematics
from transcripts import DebateRow, RunStore, TranscriptError

HERE = Path(__file__).parent
UNSEEN, MARKED = "⟨{}⟩", '<b class="unseen">{}</b>'
"""Formats of unseen characters in an attribute, and in a text."""
PAGE_CHARACTERS, MOST_OF_A_PIECE, LEAST_OF_A_PIECE = 90_000, 4_000, 200
MOST_OF_A_TEXT, MOST_OF_A_LINE = 60_000, 600
MOST_MATHEMATICS, MOST_MARKUP = 6, 400_000
"""Maximum number of characters of MathML per character of a text, and per text. MathML is about twelve times
as long as its formula."""
COLOURS = 6
"""Number of colours of personas in style.css; further personas begin again."""
TAGS = {"strong": "b", "code": "code", "mark": "mark", "gone": "del", "new": "ins"}


class Clip(NamedTuple):
    """The beginning of a text as markup, the text's length, and the number of omitted characters."""

    text: Markup
    length: int
    left: int


@dataclass(frozen=True, slots=True)
class Face:
    """How a page draws blocks. ``href``: returns the address of a link, or "" for no link.

    ``piece``: number of characters shown of a text that has its own page. ``written``: show mathematics as
    written. ``anchor``: a prefix of each id. ``marking``: draw marks as forms. ``personas``: the number of
    each persona's colour.
    """

    href: Callable[[Link], str]
    piece: int = MOST_OF_A_PIECE
    written: bool = False
    anchor: str = ""
    marking: bool = False
    personas: Mapping[str, int] = field(default_factory=dict[str, int])

    def colour(self, persona: str) -> Markup:
        """Return a mark in the colour of a persona, whose name stands next to it."""
        at = self.personas.get(persona)
        return Markup() if at is None else Markup('<span class="persona p{}"></span>').format(at % COLOURS)

    def words(self, words: Words, *, item: bool = False) -> Markup:
        """Return words as markup. ``item``: keys can move between the links."""
        if isinstance(words, Marks) and self.marking:
            return macros().marks(words, self)
        if isinstance(words, str) and len(words) <= MOST_OF_A_LINE:
            return seen(words)
        return Markup().join(self._span(span, item=item) for span in spans(words))

    def _span(self, span: Span, *, item: bool) -> Markup:
        text = shorten(span.text, MOST_OF_A_LINE) if len(span.text) > MOST_OF_A_LINE else span.text
        inside = seen(text)
        if span.style == "answer":
            inside = typeset_answer(text, written=self.written)
        named = Markup(' data-testid="{}"').format(span.name) if span.name else ""
        url = self.href(span.link) if span.link else ""
        if span.style == "page" and not url:
            return Markup()
        if url:
            walked = " data-item" if item else ""
            inside = Markup('<a href="{}"{}{}>{}</a>').format(url, walked, named, inside)
            named = ""
        if span.persona:
            inside = self.colour(span.persona) + inside
        if span.bar is not None:
            inside = bar_of(span.bar) + inside
        if not span.style and not named:
            return inside
        tag = TAGS.get(span.style, "span")
        return Markup('<{0} class="{1}"{2}>{3}</{0}>').format(tag, span.style, named, inside)

    def clip(self, block: Text) -> Clip:
        """Return a text as markup, or its beginning if it is long."""
        whole, limit = block.plain, self.piece if block.whole else MOST_OF_A_TEXT
        limit = len(whole) if block.kind == "raw" else limit
        if not isinstance(block.text, str):
            shown = list(_beginning(block.text, limit))
            length = sum(len(span.text) for span in shown)
            return Clip(Markup().join(map(_marked, shown)), len(whole), len(whole) - length)
        text = head(whole, limit) if len(whole) > limit else whole
        markup = seen(text)
        if block.typeset and not self.written:
            most = min(MOST_MARKUP, MOST_MATHEMATICS * max(len(text), 1000))
            markup = Markup(with_mathematics(text, seen, most))
        return Clip(markup, len(whole), len(whole) - len(text))


def _beginning(text: Iterable[Span], most: int) -> Iterable[Span]:
    """Yield the first characters of some spans."""
    for span in text:
        if most > 0:
            yield span._replace(text=span.text[:most])
        most -= len(span.text)


def _marked(span: Span) -> Markup:
    kind = span.style if span.style in TAGS else f"tok {span.style}"
    return Markup('<{0} class="{1}">{2}</{0}>').format(TAGS.get(span.style, "span"), kind, seen(span.text))


def numbered(personas: Iterable[str]) -> dict[str, int]:
    """Return the number of each persona."""
    return {name: at for at, name in enumerate(personas)}


def piece_limit(blocks: Iterable[Block]) -> int:
    """Return the number of characters of each piece that a page with these blocks shows.

    >>> piece_limit([]), piece_limit([Text("", whole=Link(()))] * 45)
    (4000, 2000)
    """
    pieces = _pieces(blocks)
    return max(LEAST_OF_A_PIECE, min(MOST_OF_A_PIECE, PAGE_CHARACTERS // max(1, pieces)))


def _pieces(blocks: Iterable[Block]) -> int:
    return sum(
        _pieces(block.blocks) if isinstance(block, Section) else isinstance(block, Text) and bool(block.whole)
        for block in blocks
    )


def typeset_answer(text: str, *, written: bool = False) -> Markup:
    """Return an answer as mathematics if it contains a LaTeX command, else as written."""
    if not written and "\\" in text and with_codes(text, UNSEEN) == text:
        for shown in (text, rf"\({text}\)"):
            formula = with_mathematics(shown, seen)
            if "<math" in formula:
                return Markup(formula)
    return Markup("<code>{}</code>").format(with_codes(shorten(text, 200), UNSEEN))


BAR = (
    '<svg class="bar {}" viewBox="-1 0 2 1" preserveAspectRatio="none" aria-hidden="true"><path d="M0 0V1"/>'
    '<path d="M0 .2H{:.2f}V.8H0z"/></svg>'
)


def bar_of(length: float) -> Markup:
    """Return a bar to the right of a line for a positive length, to the left for a negative one."""
    return Markup(BAR).format("down" if length < 0 else "up", max(-1.0, min(1.0, length)))


def seen(text: str) -> Markup:
    r"""Return a text as escaped markup, with its unseen characters named and marked.

    >>> seen("<b>\x00")
    Markup('&lt;b&gt;<b class="unseen">U+0000</b>')
    """
    return Markup(with_codes(str(escape(text)), MARKED))


def head(text: str, limit: int) -> str:
    """Return the beginning of a text: at most ``limit`` characters, and at most twice as many as markup."""
    cut = text[:limit]
    while len(cut) > 1 and len(seen(cut)) > 2 * limit:
        cut = cut[: len(cut) // 2]
    return cut


@cache
def environment() -> Environment:
    """Return the environment of the templates."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "count": lambda value: f"{value:,}",
        "kind": lambda block: type(block).__name__,
        "shorten": lambda text, most: shorten(text or "", most),
        "votes": draw_votes,
    }
    templates.globals |= {"asset": asset}
    return templates


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


def render_blocks(blocks: Iterable[Block], face: Face) -> Markup:
    """Return blocks as markup."""
    return macros().draw(list(blocks), face)


def macros() -> Any:
    """Return the macros of blocks.html."""
    return environment().get_template("blocks.html").module


def _shown(value: object) -> object:
    """Return a template's value. Unseen characters are made visible, except in markup."""
    if value is None:
        return ""
    return with_codes(value, UNSEEN) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def asset(name: str) -> str:
    """Return the address of a static file. The address changes with the content."""
    mark = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={mark}"


LIMIT, PIECE_CHARACTERS = 200, 20_000
MARK = '<meta name="generator" content="debate inspect">'
"""Marks a file as an export, which may be replaced."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The number of debates in a file, and the number of debates that match the filter."""

    written: int
    matching: int


def export_html(
    store: RunStore, filter: str, path: Path | str, *, limit: int = LIMIT, newest: bool = False
) -> Exported:
    """Write the first debates that match a filter to one file, atomically.

    The file says which debates and parts of very long texts it leaves out. ValueError if ``path`` is a file
    that is not an export, FilterError for an invalid filter, OSError if the file cannot be written.
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
    """Raise ValueError if the file exists and was not written by this function."""
    if path.exists() and not path.is_file():  # opening a pipe would block
        raise ValueError(f"{path}: is not a regular file; name another path")
    try:
        with path.open("rb") as file:
            ours = MARK.encode() in file.read(4096)
    except FileNotFoundError:
        return
    if not ours:
        raise ValueError(f"{path}: exists and is not an export of debates; name another file")


def _face(held: Collection[str], anchor: str = "", personas: Sequence[str] = ()) -> Face:
    """Return how the file draws blocks: with links only to content of the file."""

    def href(link: Link) -> str:
        page, *rest = link.path
        if page != "debate" or len(rest) != 1 or rest[0] not in held or link.query:
            return ""
        return f"#d{rest[0]}-{link.anchor}" if link.anchor else f"#d{rest[0]}"

    return Face(href, PIECE_CHARACTERS, anchor=anchor, personas=numbered(personas))


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
        list=render_blocks([*_grid(store, rows), *([table] if rows else [])], _face(held)),
    )
    for row in rows:
        face = _face(held, f"d{row.id}-", store.personas())
        head = Markup('<article class="exported" id="d{0}" data-testid="exported"><h1>Debate {0} {1}</h1>')
        up = Markup('<a class="faint top-link" href="#main">↑ list</a>')
        yield head.format(row.id, up) + render_blocks(_debate(store, row.id), face) + Markup("</article>\n")
    yield "</main>\n</body>\n</html>\n"


def _grid(store: RunStore, rows: list[DebateRow]) -> list[Block]:
    """Return the grid of turns, as on the page of a group, if all debates are of one group."""
    if len(rows) < 2 or len({(row.step, row.problem.id) for row in rows}) > 1:
        return []
    with suppress(TranscriptError):  # the debate that cannot be read says so itself
        return group_blocks(group_view(store, Group(rows[0].step, rows)))
    return []


def _debate(store: RunStore, id: str) -> list[Block]:
    try:
        record = store.debate(id)
    except TranscriptError as error:
        return [Line(str(error), "notice")]
    view, graphs = debate_view(id, record), vote_graphs(record)
    marks = Marker.of(store, id, record)
    blocks = list(debate_blocks(view, range(len(view.turns[0]) if view.turns else 0), marks=marks))
    votes = [Section("Votes", votes_blocks(view, graphs, marks), folded=True)] if graphs else []
    return [*blocks, *votes]
