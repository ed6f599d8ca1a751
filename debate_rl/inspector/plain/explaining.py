"""Why a turn was paid what it was paid, as lines."""

from __future__ import annotations

from debate_rl.formatting import safe
from debate_rl.inspector.plain.forms import as_json as json_of
from debate_rl.inspector.plain.printer import Printer
from debate_rl.inspector.views.checked import named
from debate_rl.inspector.views.reward import numbers_in, outline
from debate_rl.inspector.views.reward_types import Why


def print_why(found: Why, printer: Printer, *, as_json: bool = False) -> None:
    """Print the explanation; turns are AGENT.ROUND, both from 0, as ids everywhere."""
    if as_json:
        printer.json({"schema": 1, **json_of(found)})
        return
    who = safe(f"debate {found.id}, turn {named(found.turn)} ({found.persona}), problem {found.problem}")
    printer.line(printer.paint(who, "bold"))
    for line in outline(found):
        quote = f': "{safe(line.quote)}"' if line.quote else ""
        text = "  " * line.depth + safe(line.text) + quote
        heading = line.depth == 0 and not line.text.startswith("note: ")
        printer.line((printer.paint(text, "bold") if heading else text) + _badge(line.matches, printer))
    printer.line(_verdict(found))


def _badge(matches: bool | None, printer: Printer) -> str:
    if matches is None:
        return ""
    return printer.paint("  [as stored]", "green") if matches else printer.paint("  [not as stored]", "red")


def _verdict(found: Why) -> str:
    badges = [one.matches for one in numbers_in(found) if one.matches is not None]
    if not badges:
        return "nothing was recomputed that could be compared with what is stored"
    wrong = badges.count(False)
    return f"{wrong} of {len(badges)} numbers are not as stored" if wrong else "all numbers are as stored"
