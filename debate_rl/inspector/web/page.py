"""The common parts of all pages: addresses, the request, and the frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from debate.types import TurnId
from debate_rl.inspector.blocks import Block, Link
from debate_rl.inspector.lists import MEANINGS, filter_fields
from debate_rl.inspector.runs import FoundRun
from debate_rl.inspector.web.rendering import Face, numbered, piece_limit, render
from debate_rl.inspector.web.site import NotFound, Result, Site
from transcripts import RunStore

SHORTCUTS = (
    *(("j ↓", "next in a list"), ("k ↑", "previous in a list"), ("Enter", "open")),
    *(("n", "next debate"), ("p N", "previous debate"), ("o", "newest first, or oldest first")),
    *(("u", "up"), ("/", "filter"), ("g s", "steps"), ("g l", "debates"), ("r", "replays")),
    *(("g e", "evaluations and checkpoints"), ("g t", "settings")),
    ("g o", "the debate's group"),
    *(("g d", "the debate, from one of its views"), ("v", "votes"), ("w", "why this reward")),
    *(("a", "answers"), ("s", "star the debate"), ("g p", "what is malformed"), ("g k", "tokens")),
    ("g b", "branch: change a vote, text or persona"),
    *(("g i", "prompts"), ("x", "the same problem in other steps"), ("?", "this help")),
)
TABS = (
    ("Debate", "debate", "d"),
    ("Votes", "graph", "v"),
    ("Why this reward?", "why", "w"),
    ("Adopted answers", "adoption", "a"),
    ("Malformed", "parse", "p"),
)
"""The views of a debate: name, path, and key. A page shows those with content."""
TURN_TABS = (
    ("Reward", "why", "w"),
    ("Branch", "branch", "b"),
    ("Tokens", "tokens", "k"),
    ("Prompt", "prompt", "i"),
)
"""The views of a turn: name, path, and key."""
MARKED = ("debate", "graph")
"""The views in which stars, labels and notes can be given."""
TITLES = {path: name for name, path, _ in (*TURN_TABS, *TABS)} | {"across": "Same problem"}


def address(*parts: str, **query: object) -> str:
    """Return the address of a page. The query omits empty values and None.

    >>> address("run", "a/b", "debates", filter='text:"x"', newest=None)
    '/run/a%2Fb/debates?filter=text%3A%22x%22'
    """
    path = "/" + "/".join(quote(part, safe="", errors="surrogatepass") for part in parts)
    named = {key: value for key, value in query.items() if value not in (None, "") and value is not False}
    given = {key: "1" if value is True else str(value) for key, value in named.items()}
    return path + ("?" + urlencode(given, errors="surrogatepass") if given else "")


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of one run's pages, with the current filter and order."""

    run: str
    filter: str = ""
    newest: bool = False

    def __call__(self, *parts: str, **query: object) -> str:
        """Return the address of a page of the run, without filter and order."""
        return address("run", self.run, *parts, **query)

    def debates(self, **other: object) -> str:
        """Return the address of a list of debates. ``other``: filter, order, or a debate to start after."""
        return self("debates", **({"filter": self.filter, "newest": self.newest} | other))

    def within(self, term: str) -> str:
        """Return the filter with an additional term.

        >>> Links("run").within("step:3"), Links("run", "winner:wrong OR votes:0").within("step:3")
        ('step:3', 'step:3 (winner:wrong OR votes:0)')
        """
        return f"{term} ({self.filter})" if self.filter.strip() else term

    def debate(self, id: str, *view: str, **query: object) -> str:
        """Return the address of a debate or of one of its views, with the current filter."""
        return self("debate", id, *view, **query, filter=self.filter, newest=self.newest)

    def href(self, link: Link) -> str:
        """Return the address of a link in blocks."""
        path, query = link.path, dict(link.query)
        if path[0] == "/run":
            return address("run", path[1], "")
        if path == ("debates",):
            within = self.within(f"step:{query['step']}") if "step" in query else query.get("filter", "")
            return self.debates(filter=within)
        if link.of_list:
            query |= {"filter": self.filter, "newest": self.newest}
        return self(*path, **query) + (f"#{link.anchor}" if link.anchor else "")


class PageRequest:
    """A request for a page: the site, its address, and the names in its path, or "".

    ``query``: the last value of each key; ``items``: all. ``is_json``: the address ends with ".json".
    """

    def __init__(self, site: Site, request: Request) -> None:
        self.site, self.query = site, dict(request.query_params)
        self.items, self.is_json = request.query_params.multi_items(), request.url.path.endswith(".json")
        path = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        query = request.scope["query_string"].decode("latin-1")
        self.address = path + (f"?{query}" if query else "")
        names = (str(request.path_params.get(key, "")) for key in ("name", "replay", "id", "action"))
        self.name, self.replay, self.id, self.action = names

    @property
    def links(self) -> Links:
        """The addresses of the run's pages."""
        return Links(self.name, self.query.get("filter", ""), self.query.get("newest", "") == "1")

    @property
    def run(self) -> FoundRun:
        """The run. If it is being written, its pages update themselves."""
        return self.site.run(self.name)

    @property
    def store(self) -> RunStore:
        """The store of the run, up to date."""
        return self.site.store(self.name)

    def look(self, key: object, work: Callable[[RunStore], Result]) -> Result:
        """Return the result of ``work`` on the store for the query's filter; see ``Site.look``."""
        return self.site.look(self.name, self.links.filter, key, work)

    def whole_number(self, key: str) -> int | None:
        """Return an integer of the query, or None if it is missing or invalid."""
        text = self.query.get(key, "")
        return int(text) if text.isdecimal() and len(text) < 12 else None

    def turn(self, key: str = "turn") -> TurnId | None:
        """Return the query's turn AGENT.ROUND, or None without a turn. NotFound if it is invalid."""
        text = self.query.get(key, "")
        if not text:
            return None
        agent, _, round_ = text.partition(".")
        if not (agent.isdecimal() and round_.isdecimal() and len(text) < 9):
            raise NotFound(f"{text!r} is not a turn: write AGENT.ROUND, both from 0, as in 1.2")
        return TurnId(int(agent), int(round_))


def show(
    request: PageRequest,
    kind: str,
    title: str,
    blocks: Iterable[Block],
    *,
    status: int = 200,
    written: bool = False,
    **values: Any,
) -> HTMLResponse:
    """Return a page of blocks in its frame. ``values``: further values of ``page.html``."""
    links, shown = request.links if request.name else None, list(blocks)
    coloured = kind in TITLES or kind == "group"
    personas = numbered(request.store.personas()) if coloured else {}
    looks = {"marking": kind in MARKED and ":" not in request.id, "personas": personas}
    face = Face(links.href if links else Links("").href, piece_limit(shown), written, **looks)
    frame = {"kind": kind, "title": title, "blocks": shown, "face": face, "links": links, "id": request.id}
    frame |= {"written": written, "breadcrumb": _breadcrumb(request, kind)}
    empty = values.pop("empty", ())
    frame |= {"tabs": [tab for tab in TABS if tab[1] == kind or tab[1] not in empty]}
    frame |= {"turn_tabs": TURN_TABS, "shortcuts": SHORTCUTS}
    frame["meanings"] = (("Columns", MEANINGS), ("Fields of filters", filter_fields()))
    absent = ("live", "near", "counts", "picked", "pages", "shown", "progress", "problem", "order")
    return HTMLResponse(render("page.html", **(dict.fromkeys(absent) | frame | values)), status)


def _breadcrumb(request: PageRequest, kind: str) -> list[tuple[str, str]]:
    """Return the names and addresses of the page's ancestors, from the top."""
    parts: list[tuple[str, str]] = [] if request.site.is_one_run and request.name else [("Runs", "/")]
    if not request.name:
        return parts
    links = request.links
    parts.append((request.name, links("")))
    if request.id:
        parts += [("Debates", links.debates()), (request.id, links.debate(request.id))]
    if kind == "replay":
        parts += [("Replays", links("replays")), (request.replay, "")]
    elif kind == "pair":
        parts += [("Pairs", links("pairs")), (request.query.get("pair", ""), "")]
    elif kind not in ("steps", "debate", "error", "busy"):
        parts.append((TITLES.get(kind, kind.capitalize()), ""))
    return parts
