"""``debate inspect RUN``: a run's debates in the terminal, in lines, in a browser or as one HTML file."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from debate_rl.commands.options import FilterOption, writable
from debate_rl.commands.helping import refuse_unknown


def inspect(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or a folder of runs.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ACTION] [ARGS]",
            help="ls [FILTER], show ID..., grep WORDS [FILTER], stats [FILTER], why ID, "
            "same PROBLEM [ID ID], fixture ID FILE, replays [NAME [ID]], evaluations, or pairs [N]. Without: "
            "the terminal application, or ls where there is no terminal. Each has a page: debate inspect ls "
            "--help.",
        ),
    ] = None,
    filter: FilterOption = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Show at most this many debates; default: ls 50, grep all, same 50 of training and 50 of "
            "evaluations.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="ls: start after this debate, for the next page.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="ls: show the newest debates first.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="show: print replies as written, with thinking.")
    ] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="show: print the prompt that each turn read.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/inspector.md).")] = False,
    turn: Annotated[
        str | None,
        typer.Option(metavar="AGENT.ROUND", help="why: explain this turn; both count from 0; default: 0.0."),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the debates in a browser.")] = False,
    host: Annotated[
        str | None,
        typer.Option(help="--web: the address to listen on; default: 127.0.0.1. Any other needs a token."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="--web: use this port; default: 8123; 0: a free one.")
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="--web: open the browser.")] = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Write debates to one HTML file: 200, or as many as --limit says.",
        ),
    ] = None,
) -> None:
    """Look at a run's debates: in the terminal, in lines (ls, show, ...), or with --web in a browser."""
    from debate_rl.commands.inspect_lines import ACTIONS, LineOptions, print_lines
    from transcripts import compile_filter

    refuse_unknown([run, *(words or ())], ctx.command)
    action, *rest = words or [""]
    if action and action not in ACTIONS:
        raise ValueError(f"ACTION is one of {', '.join(ACTIONS)}; got {action!r}")
    for_lines = bool(words or json or raw or prompts or after is not None or turn is not None)
    for_web = {"--host": host is not None, "--port": port is not None, "--open": open}
    _refuse_mixture(web, export is not None, for_web, for_lines=for_lines)
    compile_filter(filter)  # says what is wrong before a screen or a port is taken
    if export is not None:
        _write_page(run, filter, export, limit, newest=newest)
    elif web:
        from debate_rl.inspector.web import serve

        address = {"host": host or "127.0.0.1", "port": 8123 if port is None else port}
        with suppress(KeyboardInterrupt):  # how it is ended
            serve(run, filter=filter, open_browser=open, **address)
    elif not action and not json and sys.stdin.isatty() and sys.stdout.isatty():
        from debate_rl.inspector.terminal import run_terminal

        run_terminal(run, filter)
    else:
        options = LineOptions(run, filter, limit, after, newest, raw, json, turn, prompts)
        print_lines(action, rest, options)


def _refuse_mixture(web: bool, export: bool, for_web: dict[str, bool], *, for_lines: bool) -> None:
    """Raise ValueError for options that do not go together; ``for_web``: those of --web that are given."""
    for name in (name for name, given in for_web.items() if given and not web):
        raise ValueError(f"{name}: says how --web serves; give --web as well")
    if web and export:
        raise ValueError("--web and --export: give one of them")
    if (web or export) and for_lines:
        raise ValueError("--web and --export take --filter, and --export --limit and --newest; no ACTION")


def _write_page(run: str, filter: str, file: str, limit: int | None, *, newest: bool) -> None:
    """Write the debates of a filter to one file and print how many it holds."""
    from debate_rl.commands.inspect_lines import index_text, one_run, opened
    from debate_rl.inspector.web.serving import need_packages

    need_packages()
    from debate_rl.inspector.web.export import LIMIT, export_html

    with opened(one_run(run)) as store:
        index_text(store, filter)
        done = export_html(store, filter, file, limit=limit or LIMIT, newest=newest)
    left = done.matching - done.written
    rest = f"; {left} more match, and --limit {done.matching} would take them all" if left else ""
    from debate_rl.commands.console import plain_console

    plain_console().print(f"{file}: {done.written} debates{rest}")
