"""What could not be read of a turn: where, by which rule, and what today's parser makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from inspector.terminal.panels.names import spelled
from inspector.terminal.style import DOUBT, FAINT, STRONG, heading, line
from inspector.views.parsing import Excerpt, FailureView, FieldChange, TurnForensics
from learner.formatting import one_line, safe_lines


def parse_lines(
    found: TurnForensics | None, changes: Sequence[FieldChange], others: Sequence[TurnForensics]
) -> list[Text | str]:
    """Return the failures of the chosen turn, what parsing it again changes, and where else there are any."""
    lines: list[Text | str] = [
        heading("what could not be read", "" if found else "all of this turn was read")
    ]
    for failure in found.failures if found else ():
        lines += _failure(failure)
    note = f"{len(changes)} fields change" if changes else "the same as is stored"
    lines += ["", heading("parsed again today", note)]
    for change in changes:
        lines.append(line((change.field, STRONG)))
        lines += [
            line(f"  {name} {one_line(value)}")
            for name, value in (("stored", change.stored), ("now   ", change.now))
        ]
    lines += ["", heading("other turns", "" if others else "every other turn was read in full")]
    for one in others:
        reasons = ", ".join(failure.reason.value.replace("_", " ") for failure in one.failures)
        lines.append(line(f"{spelled(one.id)}: {reasons}"))
    return lines


def _failure(failure: FailureView) -> list[Text | str]:
    place = (
        ""
        if failure.line is None
        else f"line {failure.line}, column {failure.column}, character {failure.offset}"
    )
    lines: list[Text | str] = [
        line(
            (failure.reason.value.replace("_", " "), DOUBT),
            f"  {one_line(failure.detail, 200)}",
            (f"  {place}", FAINT),
        ),
        line((failure.rule, FAINT)),
    ]
    return [*lines, *(_excerpt(failure.excerpt) if failure.excerpt else ()), ""]


def _excerpt(excerpt: Excerpt) -> list[Text]:
    left_out = f" … {excerpt.left_out:,} characters … " if excerpt.left_out else ""
    marked = f"»{excerpt.piece}{left_out}{excerpt.rest}«"
    parts = ((excerpt.before, FAINT), (marked, "bold underline"), (excerpt.after, FAINT))
    whole = Text(end="")
    for text, style in parts:
        whole.append("\n".join(safe_lines(text)), style)
    return [line("  ") + row for row in whole.split("\n", allow_blank=True)]
