"""What every page has: what was asked for, where it stands, and the frame around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from debate.types import TurnId
from debate_rl.inspector.meanings import COLUMNS, filter_fields
from debate_rl.inspector.web.addresses import Links
from debate_rl.inspector.web.rendering import render
from debate_rl.inspector.web.site import Found, Site, Unknown
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


class Asked:
    """One request: the site, the run's name if it is about one, and the query."""

    def __init__(self, site: Site, request: Request) -> None:
        self.site, self.request = site, request
        self.query = dict(request.query_params)
        self.name: str | None = request.path_params.get("name")
        self.id: str = request.path_params.get("id", "")

    @property
    def links(self) -> Links:
        """The addresses of the run's pages."""
        return Links.of(self.name or "", self.query)

    @property
    def store(self) -> RunStore:
        """The store of the run, up to date."""
        return self.site.store(self.name or "")

    def look(self, key: object, work: Callable[[RunStore], Found]) -> Found:
        """Return what some work with the store gives for the filter of the address; see ``Site.look``."""
        return self.site.look(self.name or "", self.links.filter, key, work)

    @property
    def is_live(self) -> bool:
        """Whether the run is being written."""
        return self.site.run(self.name or "").writing

    def whole_number(self, key: str) -> int | None:
        """Return a number of the query; None where it is not there or none."""
        text = self.query.get(key, "")
        return int(text) if text.isdecimal() and len(text) < 12 else None

    def turn(self, key: str = "turn") -> TurnId | None:
        """Return the turn of the query as AGENT.ROUND, None where none is given; Unknown where it is none."""
        text = self.query.get(key, "")
        if not text:
            return None
        agent, _, round_ = text.partition(".")
        if not (agent.isdecimal() and round_.isdecimal() and len(text) < 9):
            raise Unknown(f"{text!r} is not a turn: write AGENT.ROUND, both from 0, as in 1.2")
        return TurnId(int(agent), int(round_))


def show(asked: Asked, kind: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page in its frame; ``kind`` is its template."""
    name = asked.name
    links = asked.links if name else None
    values = {
        "kind": kind,
        "links": links,
        "place": _place(asked, kind),
        "run_nav": _run_nav(links, kind) if links else (),
        "shortcuts": SHORTCUTS,
        "meanings": (("Columns", COLUMNS), ("Fields of filters", filter_fields())),
        "live": None,
        "anchor": "",
    } | values
    return HTMLResponse(render(f"{kind}.html", **values), status)


def _place(asked: Asked, kind: str) -> list[tuple[str, str]]:
    """Return the way to the page: its words and addresses, from the top."""
    place: list[tuple[str, str]] = [] if asked.site.is_one_run and asked.name else [("Runs", "/")]
    if asked.name:
        links = asked.links
        place.append((asked.name, links("")))
        if asked.id:
            place.append(("Debates", links.debates()))
            place.append((asked.id, links.debate(asked.id)))
            if kind not in ("debate", "error", "busy"):
                place.append((TITLES.get(kind, kind.capitalize()), ""))
        elif kind == "replay":
            place += [("Replays", links("replays")), (asked.request.path_params["replay"], "")]
        elif kind not in ("steps", "error", "busy"):
            place.append((TITLES.get(kind, kind.capitalize()), ""))
    return place


def _run_nav(links: Links, kind: str) -> tuple[tuple[str, str, str, bool], ...]:
    return (
        ("Steps", links(""), "s", kind == "steps"),
        ("Debates", links.debates(), "l", kind == "debates"),
        ("Replays", links("replays"), "r", kind in ("replays", "replay")),
    )
