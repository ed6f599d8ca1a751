"""Every key, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget

from inspector.terminal.face import Face
from inspector.terminal.lines import Lines
from inspector.terminal.style import FAINT, STRONG, heading, line

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "everywhere",
        (
            ("Enter, →", "go in"),
            ("Esc, Backspace, ←", "go out"),
            ("↑ ↓", "move by a row (in lists also j k); PgUp PgDn or b Space by a page; Home End"),
            ("?", "these keys"),
            ("q", "quit"),
        ),
    ),
    (
        "steps and debates",
        (
            ("/", 'filter: winner:wrong flip:CW text:"\\boxed" (docs/transcripts.md has all fields)'),
            ("d", "steps: all debates"),
            ("o", "debates: newest first, or in the order of the run"),
            ("r", "replays: what other schemes would have paid"),
        ),
    ),
    (
        "one debate",
        (
            ("arrows", "choose a turn: agents down, rounds across"),
            ("Enter, Tab", "to the text under the grid, and back"),
            ("n N", "next and previous debate of the list"),
            ("m", "the message, by sections; t unfolds its thinking; o shows it whole, as written"),
            ("v", "votes: the matrix of each round, and every vote with what truth says of it"),
            ("w", "why this reward: from the votes to the advantage"),
            ("p", "parsing: what could not be read, where, and what today's parser reads"),
            ("a", "adopted answers: who took an answer over from whom"),
            ("k", "tokens with advantages, and their sums by section"),
            ("x", "the same problem in other steps, and what differs"),
            ("r", "what other schemes would have paid this debate"),
            ("i", "the problem in full, the agents, seed and version"),
            ("f", "save the debate as a fixture for tests"),
        ),
    ),
    (
        "signs",
        (
            ("C W M ?", "correct, wrong, missing, not graded"),
            ("★ !", "the voted winner; a turn that was cut off or not wholly read"),
            ("✓ ✗ ? – = ↻", "a vote: right, wrong, truth does not decide, does not count, tie, in a cycle"),
            ("CW WC", "an agent went from correct to wrong, or from wrong to correct"),
            ("•", "a debate that came while the list was open"),
        ),
    ),
)


class Help(Face):
    """The keys; any of ``?``, Escape or Enter leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,enter", "back", show=False)]
    keys = "Esc back  Space scroll"

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield Lines(id="keys")

    def place(self) -> str:
        """Return the title."""
        return "keys"

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
            *(line((f"{key:<18}", STRONG), (about, FAINT)) for key, about in keys),
            line(""),
        ]
    return lines
