"""``debate inspect RUN``: show debates in the terminal, as lines, in a browser or in an HTML file."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from debate.settings import did_you_mean
from debate_rl.commands.console import plain_console
from debate_rl.commands.inspect_actions import ACTIONS, index_text, one_run, opened, print_lines
from debate_rl.commands.options import Command, FilterOption, example_lines, writable
from debate_rl.inspector.actions import LineOptions
from transcripts import compile_filter


def inspect(
    ctx: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run, a folder of runs, or a file of rollouts (docs/solve.md).",
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ACTION] [ARGS]",
            help=escape(", ".join(f"{name} {one.arguments}".strip() for name, one in ACTIONS.items()))
            + ". Default: the terminal application, or ls if there is no terminal. Each action "
            "has a help page: debate inspect ls --help.",
        ),
    ] = None,
    filter: FilterOption = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Show at most this many debates; default: 50 for ls, all for grep, 50 training and 50 "
            "evaluation debates for same.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="ls: start the list after this debate.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="ls: show the newest debates first.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="show: print unchanged replies, including thinking.")
    ] = False,
    prompts: Annotated[bool, typer.Option("--prompts", help="show: print the prompt of each turn.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/transcripts.md).")] = False,
    turn: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT.ROUND",
            help="why, branch: the turn, AGENT.ROUND, both counted from 0; default for why: 0.0.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="branch: replace the turn's reply with the text of this file; - reads stdin."
        ),
    ] = None,
    vote: Annotated[
        str | None,
        typer.Option(
            metavar="'K7>M4'", help="branch: replace the turn's vote on these two handles; K7=M4 is a tie."
        ),
    ] = None,
    persona: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="branch: give the agent this persona from the turn on."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="branch: the checkpoint for later turns: newest (default), best, start, or a step."
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the debates in a browser.")] = False,
    host: Annotated[
        str | None,
        typer.Option(
            help="--web: the address to listen on; default: 127.0.0.1. Any other address requires a token."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="--web: use this port; default: 8123; 0: any free port."),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="--web: open the browser.")] = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Write up to 200 debates, or --limit, to one HTML file.",
        ),
    ] = None,
) -> None:
    """Show a run's debates: in the terminal, as lines (ls, show, ...), or with --web in a browser."""
    _refuse_unknown([run, *(words or ())], ctx.command)
    action, *rest = words or [""]
    if action and action not in ACTIONS:
        raise ValueError(f"ACTION is one of {', '.join(ACTIONS)}; got {action!r}")
    for name, given in {"--host": host is not None, "--port": port is not None, "--open": open}.items():
        if given and not web:
            raise ValueError(f"{name}: only has an effect with --web; add --web")
    if web and export:
        raise ValueError("--web and --export: give only one of them")
    of_branch = {"text": text, "vote": vote, "persona": persona, "weights": weights}
    others = (after, turn, *of_branch.values())
    if (web or export) and (words or json or raw or prompts or any(one is not None for one in others)):
        raise ValueError(
            "--web and --export allow --filter but no ACTION; --export also allows --limit and --newest"
        )
    compile_filter(filter)  # raises before a screen or a port is opened
    if Path(run).is_file():
        from debate_rl.judging.voting import stored_rollouts  # loads the evaluation

        run = str(stored_rollouts(Path(run)))
    if export is not None:
        _write_page(run, filter, export, limit, newest=newest)
    elif web:
        from debate_rl.inspector.web import PORT, serve

        address = {"host": host or "127.0.0.1", "port": PORT if port is None else port}
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the server
            serve(run, filter=filter, open_browser=open, **address)
    elif not action and not json and sys.stdin.isatty() and sys.stdout.isatty():
        from debate_rl.inspector.terminal import run_terminal

        run_terminal(run, filter)
    else:
        options = LineOptions(run, filter, limit, after, newest, raw, json, turn, prompts, **of_branch)
        print_lines(action, rest, options)


def _write_page(run: str, filter: str, file: str, limit: int | None, *, newest: bool) -> None:
    """Write the debates that match a filter to one HTML file and print their number."""
    from debate_rl.inspector.web import need_packages

    need_packages()
    from debate_rl.inspector.web.rendering import LIMIT, export_html

    with opened(one_run(run)) as store:
        index_text(store, filter)
        done = export_html(store, filter, file, limit=limit or LIMIT, newest=newest)
    left = done.matching - done.written
    rest = f"; {left} more match, and --limit {done.matching} writes all" if left else ""
    plain_console().print(f"{file}: {done.written} debates{rest}")


def _refuse_unknown(words: Sequence[str], command: Any) -> None:
    """Raise ValueError for an unknown option. Words with a single dash may belong to a filter."""
    known = [name for param in command.params for name in param.opts if name.startswith("--")]
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            raise ValueError(f"unknown option {name}; {did_you_mean(name, known, 'see --help')}")


class InspectCommand(Command):
    """``debate inspect``, which has a help page for each action: ``debate inspect ls --help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the action for the help page, which is printed during parsing."""
        ctx.meta[__name__] = next((word for word in args if word in ACTIONS), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page of the named action with its options, or the page of all actions."""
        name, page = ctx.meta[__name__], copy.copy(self)
        if name is not None:
            action = ACTIONS[name]
            taken = {"run", "words", "json", *action.options}
            page.params = [copy.copy(param) for param in self.params if param.name in taken]
            words: Any = next(param for param in page.params if param.name == "words")
            words.metavar, words.help = f"{name} {action.arguments}", None
            page.help, page.epilog = action.text, example_lines(action.examples)
        super(InspectCommand, page).format_help(ctx, formatter)


COMMAND = InspectCommand
