"""Tools of a turn: what runs the programs of a reply, and what came of each.

The protocol that a sandbox keeps (``envs.sandbox`` has ours) and that ``debate.policies`` speaks to.
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from debate.types import Span

RunStatus: TypeAlias = Literal["ok", "error", "timeout", "memory", "died"]
"""How a program ended: "error" by an exception or its own exit, "died" by a signal or with its process."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one program.

    ``output``: what it wrote, standard output and error in order, as text that is cut at the sandbox's limit
    and says so. ``error``: the last line of its traceback, or what ended it; "" where it is "ok".
    ``seconds``: wall time, which no result depends on.
    """

    status: RunStatus
    output: str
    error: str = ""
    seconds: float = 0.0


class Session(Protocol):
    """A process that runs one program after another and keeps what they define."""

    async def run(self, code: str) -> Ran:
        """Run a program; never raises on what it does. A process that has died begins anew, and empty."""
        ...


class Programs(Protocol):
    """Where programs run: a sandbox, which keeps sessions ready.

    A turn keeps its session while the model goes on with the reply. So taking one never waits until another
    is given back; only programs that run at a moment may wait for one another. Time is measured where a
    program runs: the event loop here may stand still while a model computes.
    """

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Take a fresh session; at the end of the block nothing is left of it."""
        ...


_FENCE = re.compile(r"^```[ \t]*(\w*)[ \t]*$\n?", re.MULTILINE)


def output_spans(text: str) -> tuple[Span, ...]:
    r"""Return where a text has the output of its programs: ```output blocks right behind ```python blocks.

    A block goes from its opening fence to the line break behind its closing one, or to the end of the text.
    Of a supervised reply, which no sandbox ran, that is what a tool wrote [NuminaMath-TIR's form].

    >>> text = "```python\nprint(2)\n```\n```output\n2\n```\nSo 2."
    >>> [span.of(text) for span in output_spans(text)]
    ['```output\n2\n```\n']
    >>> output_spans("```output\n2\n```\nNobody ran anything.")
    ()
    """
    spans: list[Span] = []
    inside, began, code_ended = "", 0, -1
    for fence in _FENCE.finditer(text):
        name = fence[1]
        if not inside:
            behind = code_ended >= 0 and not text[code_ended : fence.start()].strip()
            inside = "output" if name == "output" and behind else "python" if name == "python" else "other"
            began, code_ended = fence.start(), -1
        elif not name:
            if inside == "output":
                spans.append(Span(began, fence.end()))
            code_ended = fence.end() if inside in ("python", "output") else -1
            inside = ""
    return (*spans, Span(began, len(text))) if inside == "output" else tuple(spans)
