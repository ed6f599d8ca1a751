r"""Programs in a reply: a block that opens with ```python, and the ```output block after it.

The format is that of NuminaMath-TIR. An opening fence ends its line, and a closing fence has a line of its
own. The output of a program is escaped before it enters a reply, so it can neither close its block nor form a
tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import dedent
from typing import NamedTuple

from debate.parsing.tags import without_private
from debate.prompting.escape import clean, escape
from debate.tools import FENCE, Ran
from debate.types import Call, Span
from debate.values import blanked

OUTPUT = "output"
CLAIMED = "claimed output"
"""The label shown to others for an output that no program wrote."""
REFUSED = "Not run: a turn may run {most}, and this one has. Go on without."
CUT = "\n[... output left out ...]\n"

_OPENING = re.compile(r"(?<!`)`{3,}[ \t]{0,4}(?:python3?|py)[ \t]{0,40}\n", re.I)
_CLOSING = re.compile(r"^[ \t]{0,40}`{3,}[ \t]{0,40}(?:\n|\Z)", re.MULTILINE)
_OUTPUT = re.compile(r"\s{0,40}(`{3,}[ \t]{0,4}output[ \t]{0,40}\n)", re.IGNORECASE)
_LABEL = re.compile(r"((?<!`)`{3,}[^\S\n]*)output", re.IGNORECASE)
_PRINTED = "\0"
"""Marks the label of a real output until claimed outputs are relabelled. Cleaned text never contains it."""
_FENCES = re.compile(r"`{3,}")


class Program(NamedTuple):
    """A program in a text: ``block`` includes both fences, ``code`` is the text between them."""

    block: Span
    code: Span

    def source(self, text: str) -> str:
        """Return the program without its common indentation."""
        return dedent(self.code.of(text))


def find_program(text: str, start: int = 0) -> Program | None:
    r"""Return the first complete program at or after an index.

    >>> text = "So:\n```python\nprint(4)\n```\n"
    >>> find_program(text).source(text), find_program(text[:-4])
    ('print(4)\n', None)
    """
    opening = _OPENING.search(text, start)
    closing = opening and _CLOSING.search(text, opening.end())
    if not opening or not closing:
        return None
    return Program(Span(opening.start(), closing.end()), Span(opening.end(), closing.start()))


def output_spans(text: str) -> tuple[Span, ...]:
    r"""Return the spans of output blocks directly after programs, for a text without results of a sandbox.

    Each span runs from the opening fence to the line break after the closing fence, or to the end of the
    text.

    >>> text = "```python\nprint(2)\n```\n```output\n2\n```\nSo 2."
    >>> [span.of(text) for span in output_spans(text)]
    ['```output\n2\n```\n']
    >>> output_spans("```output\n2\n```\nNobody ran anything.")
    ()
    """
    spans: list[Span] = []
    at = 0
    while program := find_program(text, at):
        at = program.block.end
        if opening := _OUTPUT.match(text, at):
            closing = _CLOSING.search(text, opening.end())
            at = closing.end() if closing else len(text)
            spans.append(Span(opening.start(1), at))
    return tuple(spans)


def output_block(output: str, *, most: int | None = None) -> str:
    r"""Return an output block for a reply. If the output exceeds ``most`` characters, its middle is left out.

    >>> output_block("4\n"), output_block("")
    ('```output\n4\n```\n', '```output\n```\n')
    >>> output_block("</solution>\n```")
    "```output\n&lt;/solution>\n'''\n```\n"
    """
    if most is not None and len(output) > most:
        output = output[: -(-most // 2)] + CUT + output[len(output) - most // 2 :]
    safe = _FENCES.sub(lambda fence: "'" * len(fence[0]), escape(output)).strip("\n")
    return f"```{OUTPUT}\n{safe}\n{FENCE}" if safe else f"```{OUTPUT}\n{FENCE}"


def shown_output(ran: Ran) -> str:
    """Return a program's output for its reply, followed by its error unless the output contains it."""
    told = ran.error and ran.error not in ran.output
    return f"{ran.output.rstrip()}\n{ran.error}".lstrip("\n") if told else ran.output


def claimed_outputs(text: str, calls: Iterable[Call]) -> list[int]:
    """Return the positions in a reply of apparent outputs that no program printed."""
    unprinted = blanked(text, (Span(call.code.end, call.block.end) for call in calls))
    return [match.start() for match in _LABEL.finditer(unprinted)]


def public_part(text: str, span: Span, calls: Iterable[Call]) -> str:
    r"""Return the public text of a part of a reply. Outputs that no program wrote are labelled as claimed.

    Claims are relabelled last because private text may be hidden inside a label.

    >>> public_part("```output\n4\n```", Span(0, 15), ())
    '```claimed output\n4\n```'
    >>> public_part("``<think>so</think>`output\n4", Span(0, 28), ())
    '```claimed output\n4'
    """
    parts: list[str] = []
    at = span.start
    for call in calls:
        start, end = max(at, call.code.end), min(span.end, call.block.end)
        if start < end:
            printed = _LABEL.sub(rf"\1{_PRINTED}{OUTPUT}", clean(text[start:end]))
            parts += [clean(text[at:start]), printed]
            at = end
    public = without_private("".join((*parts, clean(text[at : span.end]))))
    return _LABEL.sub(rf"\1{CLAIMED}", public).replace(_PRINTED, "")
