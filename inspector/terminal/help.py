"""Every key, sign, column and field of filters, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget

from inspector.meanings import COLUMNS, filter_fields
from inspector.terminal.face import Face
from inspector.terminal.lines import Lines
from inspector.terminal.style import FAINT, STRONG, heading, line

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "everywhere",
        (
            ("Enter →", "go in"),
            ("Esc Backspace ←", "go out"),
            ("↑ ↓", "by a row, in lists also j k"),
            ("PgUp PgDn b Space", "by a page; Home End (in lists also g G) to the ends"),
            ("? F1", "this help"),
            ("q", "quit"),
        ),
    ),
    (
        "steps and debates",
        (
            ("/", 'filter, as winner:wrong flip:CW text:"\\boxed"'),
            ("d", "in steps: all debates"),
            ("o", "in debates: newest first, or in the order of the run"),
            ("r", "replays: what other schemes would have paid"),
        ),
    ),
    (
        "one debate",
        (
            ("arrows", "choose a turn: agents down, rounds across"),
            ("Enter Tab", "to the text under the grid, and back"),
            ("n N", "next and previous debate of the list"),
            ("m", "message, by sections"),
            ("t", "unfold the thinking, or fold it"),
            ("o", "the whole message, as it was written"),
            ("v", "votes by round: who beat whom, and what truth says"),
            ("w", "why this reward: from the votes to the advantage"),
            ("p", "parsing: what could not be read, and why"),
            ("a", "answers by round, and who took one over from whom"),
            ("k", "tokens with advantages, and their sums by section"),
            ("x", "the same problem in other steps, and what differs"),
            ("r", "replays: what other schemes would have paid"),
            ("i", "the problem in full, the agents, seed and version"),
            ("f", "save the debate as a fixture for tests"),
        ),
    ),
    (
        "signs",
        (
            ("C W M ?", "correct, wrong, missing, not graded"),
            ("★", "the voted winner"),
            ("!", "cut off, or not wholly read"),
            ("✓ ✗ ?", "a vote: right, wrong, truth does not decide"),
            ("– = ↻", "a vote: does not count, a tie, in a cycle"),
            ("CW WC", "an agent went from correct to wrong, or back"),
            ("•", "a debate that came while the list was open"),
        ),
    ),
    ("columns", COLUMNS),
    ("fields of filters (OR, - and parentheses join them)", tuple(filter_fields())),
)
KEY, ABOUT = 18, 60
"""Cells of a key, and of a line of what it does, so that 80 columns hold both."""


class Help(Face):
    """The keys; any of ``?``, Escape or Enter leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,enter", "back", show=False)]
    keys = "Esc back  Space scroll"

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield Lines(id="keys")

    def place(self) -> str:
        """Return the title."""
        return "help"

    def on_mount(self) -> None:
        """Show the list."""
        super().on_mount()
        self.query_one(Lines).focus()
        self.query_one(Lines).show(help_lines())


def help_lines() -> Sequence[Text]:
    """Return the keys by where they work."""
    lines: list[Text] = []
    for place, keys in KEYS:
        lines += [
            heading(place),
            *(row for key, about in keys for row in _rows(key, about)),
            line(""),
        ]
    return lines


def _rows(key: str, about: str) -> Iterator[Text]:
    """Yield a key and what it does, which goes on under its own beginning."""
    for place, part in enumerate(wrap(about, ABOUT)):
        yield line((f"{'' if place else key:<{KEY - 1}} ", STRONG), (part, FAINT))
