"""Why this reward? The outline of ``inspector.views.reward``, a line each."""

from __future__ import annotations

from rich.text import Text

from inspector.terminal.style import FAINT, RIGHT, TITLE, WRONG, line
from inspector.views.reward import outline
from inspector.views.reward_types import Line, Why
from learner.formatting import one_line

MATCHES = {True: ("  = stored", RIGHT), False: ("  ≠ stored", WRONG), None: ("", "")}


def why_lines(found: Why) -> list[Text | str]:
    """Return the chain from the votes to the advantage."""
    lines: list[Text | str] = []
    for one in outline(found):
        if one.depth == 0 and lines:
            lines.append("")
        lines.append(_line(one))
    return lines


def _line(one: Line) -> Text:
    quote = f"  “{one_line(one.quote, 200)}”" if one.quote else ""
    indent = "  " * max(0, one.depth - 1)
    return line(
        indent, (one_line(one.text), TITLE if one.depth == 0 else ""), (quote, FAINT), MATCHES[one.matches]
    )
