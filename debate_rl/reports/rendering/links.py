"""How a reader gets from a number to its debates: a command to copy, and an address where one is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from urllib.parse import quote as in_address

from debate_rl.formatting import printable
from debate_rl.reports.document import Behind


@dataclass(frozen=True, slots=True)
class Links:
    """``inspector``: the address of a running browser inspector, "" where there is none."""

    inspector: str = ""

    def __post_init__(self) -> None:
        if self.inspector and not self.inspector.startswith(("http://", "https://")):
            raise ValueError(f"--inspector {self.inspector}: must begin with http:// or https://")

    def command(self, behind: Behind) -> str:
        """Return the command that lists the debates.

        >>> Links().command(Behind("runs/a", "winner:wrong step:>3"))
        "debate inspect runs/a ls 'winner:wrong step:>3'"
        """
        words = ["debate", "inspect", quote(printable(behind.run)), "ls"]
        return " ".join([*words, quote(printable(behind.filter))] if behind.filter else words)

    def address(self, behind: Behind) -> str | None:
        """Return where the inspector shows the debates.

        >>> Links("http://127.0.0.1:8000/").address(Behind("runs/a b", "flip:CW"))
        'http://127.0.0.1:8000/run/a%20b/debates?filter=flip%3ACW'
        """
        if not self.inspector:
            return None
        name = in_address(printable(Path(behind.run).resolve().name), safe="")
        found = in_address(printable(behind.filter), safe="")
        return f"{self.inspector.rstrip('/')}/run/{name}/debates" + (f"?filter={found}" if found else "")
