"""The addresses of the pages: what a page shows depends on its address alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode


def address(*parts: str, **query: object) -> str:
    """Return the address of a page; what is empty or None is left out of the query.

    >>> address("run", "a/b", "debates", filter='text:"x"', newest=None)
    '/run/a%2Fb/debates?filter=text%3A%22x%22'
    """
    path = "/" + "/".join(quote(part, safe="", errors="surrogatepass") for part in parts)
    given = {
        key: "1" if value is True else str(value)
        for key, value in query.items()
        if value not in (None, "") and value is not False
    }
    return path + ("?" + urlencode(given, errors="surrogatepass") if given else "")


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of one run's pages, with the filter and the order of the list that is looked through."""

    run: str
    filter: str = ""
    newest: bool = False

    @classmethod
    def of(cls, run: str, query: Mapping[str, str]) -> Links:
        """Return the links of a page with this query."""
        return cls(run, query.get("filter", ""), query.get("newest", "") == "1")

    def __call__(self, *parts: str, **query: object) -> str:
        """Return the address of a page of the run, without filter and order."""
        return address("run", self.run, *parts, **query)

    def debates(
        self, *, after: str | None = None, filter: str | None = None, newest: bool | None = None
    ) -> str:
        """Return the address of a list."""
        wanted = self.filter if filter is None else filter
        order = self.newest if newest is None else newest
        return address("run", self.run, "debates", filter=wanted, newest=order, after=after)

    def within(self, term: str) -> str:
        """Return the filter with one more term.

        >>> Links("run").within("step:3"), Links("run", "winner:wrong OR votes:0").within("step:3")
        ('step:3', 'step:3 (winner:wrong OR votes:0)')
        """
        return f"{term} ({self.filter})" if self.filter.strip() else term

    def debate(self, id: str, *view: str, anchor: str = "", **query: object) -> str:
        """Return the address of a debate, or of a view of it, within the list of the filter."""
        url = address("run", self.run, "debate", id, *view, **query, filter=self.filter, newest=self.newest)
        return url + (f"#{anchor}" if anchor else "")

    def turn(self, id: str, agent: int, round_: int) -> str:
        """Return the address of a turn on the page of its debate."""
        return self.debate(id, anchor=f"turn-{agent}.{round_}")
