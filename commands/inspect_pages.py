"""``debate inspect RUN --web`` and ``--export FILE``: a run's debates as pages."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from transcripts import RunStore, compile_filter


@dataclass(frozen=True, slots=True)
class Pages:
    """What the command line asks for of pages. ``limit``: the most debates of a file."""

    web: bool = False
    host: str | None = None
    port: int | None = None
    open: bool = False
    export: str | None = None

    @property
    def asked(self) -> bool:
        """Whether any page is asked for."""
        return self.web or self.export is not None


NO_PAGES = Pages()


def refuse_stray(pages: Pages) -> None:
    """Raise ValueError for options that go together with --web only, or exclude each other."""
    given = {"--host": pages.host is not None, "--port": pages.port is not None, "--open": pages.open}
    for name in (name for name, there in given.items() if there and not pages.web):
        raise ValueError(f"{name}: says how --web serves; give --web as well")
    if pages.web and pages.export is not None:
        raise ValueError("--web and --export: give one of them")


def serve_pages(run: str, pages: Pages, filter: str) -> None:
    """Serve a run, or a folder of runs, until the command is interrupted."""
    from inspector.web import serve

    compile_filter(filter)  # says what is wrong before a port is taken
    host, port = pages.host or "127.0.0.1", 8123 if pages.port is None else pages.port
    with suppress(KeyboardInterrupt):  # how it is ended
        serve(run, host=host, port=port, filter=filter, open_browser=pages.open)


def write_pages(store: RunStore, file: str, filter: str, *, limit: int | None, newest: bool) -> None:
    """Write the debates of a filter to one file and say how many it has."""
    from inspector.web.serving import need_packages

    need_packages()
    from inspector.web.export import LIMIT, export_html

    if not Path(file).parent.is_dir():
        raise ValueError(f"--export {file}: cannot be written; name a file in a folder that exists")
    done = export_html(store, filter, file, limit=limit or LIMIT, newest=newest)
    left = done.found - done.written
    rest = f"; {left} more match, and --limit {done.found} would take them all" if left else ""
    print(f"{file}: {done.written} debates{rest}")
