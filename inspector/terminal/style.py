"""How things look: by attribute and by the terminal's own colours, and never by colour alone."""

from __future__ import annotations

from typing import Final

from rich.text import Text

RIGHT: Final = "green"
WRONG: Final = "red"
DOUBT: Final = "yellow"
FAINT: Final = "dim"
STRONG: Final = "bold"
TITLE: Final = "bold cyan"
JUDGE: Final = "magenta"
CHOSEN: Final = "reverse"

LETTERS: Final = {"right": "C", "wrong": "W", "missing": "M", "ungraded": "?", "": "·"}
"""The letter of each grade."""
GRADES: Final = {"right": RIGHT, "wrong": WRONG, "missing": DOUBT, "ungraded": FAINT, "": FAINT}
"""The style of each grade."""
TRUTHS: Final = {"right": ("✓", RIGHT), "wrong": ("✗", WRONG), "undecidable": ("?", FAINT)}
"""The sign and style of a vote, by what truth says of it."""


def letter(grade: str) -> tuple[str, str]:
    """Return a grade's letter and its style.

    >>> letter("right")
    ('C', 'green')
    """
    return LETTERS.get(grade, "?"), GRADES.get(grade, FAINT)


def line(*pieces: str | tuple[str, str]) -> Text:
    """Return one line of pieces, each a text or a text with a style; nothing in them is read as markup."""
    return Text.assemble(*pieces, no_wrap=True, end="")


def heading(words: str, note: str = "") -> Text:
    """Return the line over a part, with a note behind it."""
    return line((words, TITLE), (f"  {note}" if note else "", FAINT))
