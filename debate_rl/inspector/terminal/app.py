"""The terminal application: a stack of screens, from the runs of a folder to one debate."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from debate_rl.inspector.runs import find_runs, run_at
from debate_rl.inspector.terminal.screens import (
    READING_ERRORS,
    Debates,
    Matches,
    OpenRun,
    Runs,
    RunScreen,
    Steps,
)

KEYS = {"enter": "Enter", "escape": "Esc", "backspace": "Backspace", "tab": "Tab", "space": "Space"}
KEYS |= {"pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End"}
"""The names of keys that Textual would show as signs or in lower case."""
EVERY_S = 3.0
"""Seconds between two checks for new debates."""


class Inspector(App[None]):
    """Shows the run at a path, or the runs in a folder, in the terminal's own colours.

    ``every_s``: seconds between checks for new debates; None: only ``look_again`` checks.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,left", "screen.back", "back", tooltip="leave this screen"),
        Binding("question_mark,f1", "screen.help", "help", tooltip="this help"),
        Binding("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "debate inspect"
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    RunScreen > #title { height: 1; text-style: reverse; padding: 0 1; }
    RunScreen > #message { height: auto; max-height: 4; padding: 0 1; display: none; }
    Footer { background: ansi_default; color: ansi_default; padding: 0 1; }
    Footer.-compact FooterKey { background: ansi_default; margin-right: 2; }
    Footer.-compact KeyGroup FooterKey { margin: 0; }
    Footer KeyGroup.-compact { padding-left: 0; }
    Footer FooterLabel { margin-right: 2; }
    Lines, Listing { scrollbar-size-vertical: 1; scrollbar-background: ansi_default; }
    Lines { padding: 0 1; }
    """

    def __init__(self, path: Path | str, *, filter: str = "", every_s: float | None = EVERY_S) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._path, self._filter, self._every_s = Path(path), filter, every_s
        self._runs, self._looking = find_runs(self._path), False
        self.open_run: OpenRun | None = None

    def get_key_display(self, binding: Binding) -> str:
        """Return a key's usual name."""
        return KEYS.get(binding.key) or super().get_key_display(binding)

    def on_mount(self) -> None:
        run = run_at(self._path, self._runs)
        if run is not None:
            self.enter(OpenRun(run.path, run.name))
        else:
            self.push_screen(Runs(self._path, self.enter))
        if self._every_s is not None:
            self.set_interval(self._every_s, lambda: self.run_worker(self.look_again(), group="look"))
        views = "debate_rl.inspector.terminal.debate"  # takes a second to import
        self.run_worker(asyncio.to_thread(import_module, views), group="views")

    def enter(self, run: OpenRun) -> None:
        """Show the debates of a run with a filter. The previous run is closed."""
        self.on_unmount()
        self.open_run = run
        self.push_screen(Steps(run))
        if self._filter:
            self.push_screen(Debates(run, Matches(self._filter)))

    async def look_again(self) -> None:
        """Index new debates of the run and refresh the screens, or refresh the list of runs."""
        if isinstance(self.screen, Runs):
            self.screen.refresh_run()
            return
        if self.open_run is None or self._looking:
            return
        self._looking = True
        try:
            added = await asyncio.to_thread(self.open_run.refresh)
        except READING_ERRORS:
            return  # for example a shard that is being sealed: the next call tries again
        finally:
            self._looking = False
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen) and added:
                screen.refresh_run()

    def on_unmount(self) -> None:
        if self.open_run is not None:
            self.open_run.close()
