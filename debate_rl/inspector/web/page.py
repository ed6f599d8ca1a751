"""What every page has: the request that it answers, and the frame around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from debate.types import TurnId
from debate_rl.inspector.meanings import COLUMNS, filter_fields
from debate_rl.inspector.runs import FoundRun
from debate_rl.inspector.web.addresses import Links
from debate_rl.inspector.web.rendering import render
from debate_rl.inspector.web.site import NotFound, Result, Site
from transcripts import RunStore

SHORTCUTS = (
    (("j", "↓"), "next in a list"),
    (("k", "↑"), "the one before"),
    (("Enter",), "open"),
    (("n",), "next debate of the list"),
    (("p", "N"), "the one before"),
    (("o",), "newest first, or oldest first"),
    (("u",), "up"),
    (("/",), "filter"),
    (("g s",), "steps"),
    (("g l",), "debates"),
    (("r", "g r"), "replays"),
    (("g d",), "the debate itself, from one of its views"),
    (("v", "g v"), "votes"),
    (("w", "g w"), "why this reward"),
    (("a", "g a"), "answers"),
    (("g p",), "parsing: what is malformed"),
    (("g k",), "tokens"),
    (("g i",), "prompts: what a turn read"),
    (("x", "g x"), "the same problem in other steps"),
    (("?",), "this help"),
)

TITLES = {"graph": "Votes", "adoption": "Answers", "parse": "Parsing", "across": "Same problem"}
"""What kinds of pages are called where it is not the kind's own name."""


@dataclass(frozen=True, slots=True)
class Live:
    """How a page asks for what is new. ``insert``: new rows belong on top of those it shows."""

    url: str
    cursor: str
    insert: bool


class PageRequest:
    """A request for a page: the site and the query, and "" or the name of a run, a replay, a debate's id."""

    def __init__(self, site: Site, request: Request) -> None:
        self.site, self.query = site, dict(request.query_params)
        self.name, self.replay, self.id = (
            str(request.path_params.get(key, "")) for key in ("name", "replay", "id")
        )

    @property
    def links(self) -> Links:
        """The addresses of the run's pages."""
        return Links.of(self.name, self.query)

    @property
    def run(self) -> FoundRun:
        """The run as it is now; ``writing`` says whether its pages are live."""
        return self.site.run(self.name)

    @property
    def store(self) -> RunStore:
        """The store of the run, up to date."""
        return self.site.store(self.name)

    def look(self, key: object, work: Callable[[RunStore], Result]) -> Result:
        """Return what some work with the store gives for the filter of the address; see ``Site.look``."""
        return self.site.look(self.name, self.links.filter, key, work)

    def whole_number(self, key: str) -> int | None:
        """Return a number of the query; None where it is not there or not a number."""
        text = self.query.get(key, "")
        return int(text) if text.isdecimal() and len(text) < 12 else None

    def turn(self, key: str = "turn") -> TurnId | None:
        """Return the turn of the query as AGENT.ROUND, None without; NotFound where it is not a turn."""
        text = self.query.get(key, "")
        if not text:
            return None
        agent, _, round_ = text.partition(".")
        if not (agent.isdecimal() and round_.isdecimal() and len(text) < 9):
            raise NotFound(f"{text!r} is not a turn: write AGENT.ROUND, both from 0, as in 1.2")
        return TurnId(int(agent), int(round_))


def show(request: PageRequest, kind: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page in its frame; ``kind`` is its template."""
    links = request.links if request.name else None
    values = {
        "kind": kind,
        "links": links,
        "breadcrumb": _breadcrumb(request, kind),
        "run_nav": _run_nav(links, kind) if links else (),
        "shortcuts": SHORTCUTS,
        "meanings": (("Columns", COLUMNS), ("Fields of filters", filter_fields())),
        "live": None,
        "anchor": "",
    } | values
    return HTMLResponse(render(f"{kind}.html", **values), status)


def _breadcrumb(request: PageRequest, kind: str) -> list[tuple[str, str]]:
    """Return the way to the page: its words and addresses, from the top."""
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


def _run_nav(links: Links, kind: str) -> tuple[tuple[str, str, str, bool], ...]:
    return (
        ("Steps", links(""), "s", kind == "steps"),
        ("Debates", links.debates(), "l", kind == "debates"),
        ("Replays", links("replays"), "r", kind in ("replays", "replay")),
    )
