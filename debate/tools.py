"""The interface of a sandbox that runs the programs of a reply, and the result of each program.

``envs.sandbox`` implements it, and ``debate_rl.inference.tools`` uses it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

FENCE = "```\n"
"""Ends a program in a reply. No opening fence contains it."""
RunStatus: TypeAlias = Literal["ok", "error", "timeout", "memory", "died"]
"""How a program ended: "error" by an exception or its own exit, "died" by a signal or with its process."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one program.

    ``output``: its standard output and error, in order, as text. If the sandbox's limit cut it, the text says
    so. ``error``: the last line of its traceback, or what ended it; "" for status "ok". ``seconds``: wall
    time; no result depends on it.
    """

    status: RunStatus
    output: str
    error: str = ""
    seconds: float = 0.0


class Session(Protocol):
    """A process that runs one program after another and keeps the variables that they define."""

    async def run(self, code: str) -> Ran:
        """Run a program.

        Errors of the program never raise here. A process that died restarts without its state.
        """
        ...


class Programs(Protocol):
    """A sandbox that runs programs and keeps sessions ready.

    A turn keeps its session while the model continues the reply. So taking a session never waits until
    another is returned; only programs running at the same time may wait for one another. Time is measured
    where a program runs, because the event loop may be blocked while a model computes.
    """

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Take a fresh session. At the end of the block it is discarded with its state."""
        ...
