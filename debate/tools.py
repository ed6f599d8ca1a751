"""Tools of a turn: what runs the programs of a reply, and the result of each.

The protocol that a sandbox keeps (``envs.sandbox`` has ours) and that ``debate.policies`` speaks to.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

FENCE = "```\n"
"""What ends a program in a reply; no opening of one contains it."""
RunStatus: TypeAlias = Literal["ok", "error", "timeout", "memory", "died"]
"""How a program ended: "error" by an exception or its own exit, "died" by a signal or with its process."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one program.

    ``output``: what it wrote, standard output and error in order, as text that is cut at the sandbox's limit
    and says so. ``error``: the last line of its traceback, or what ended it; "" if it is "ok".
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

    A turn keeps its session while the model continues the reply. So taking one never waits until another
    is given back; only programs that run at a moment may wait for one another. Time is measured where a
    program runs: the event loop here may stand still while a model computes.
    """

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Take a fresh session; at the end of the block nothing is left of it."""
        ...
