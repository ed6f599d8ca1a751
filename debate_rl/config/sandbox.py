"""The sandbox of a run: where the programs of replies run."""

from __future__ import annotations

from pydantic import Field

from debate.settings import Settings
from envs.sandbox import Limits


class SandboxConfig(Settings):
    """What a program may take, and whether it runs in a box (docs/sandbox.md)."""

    seconds: float = Field(default=10.0, ge=0.01, le=3600)
    """Wall time of one program; what it waits for a core does not count."""
    memory_mb: int = Field(default=1024, ge=64, le=1 << 24)
    """Memory of all processes of a session together, beyond the imported libraries."""
    processes: int = Field(default=32, ge=1, le=4096)
    """Processes and threads that a session may have in addition to its first."""
    file_mb: int = Field(default=64, ge=1, le=1 << 20)
    """All files of a session together, and what a program writes; they lie in memory."""
    output_chars: int = Field(default=8192, ge=16, le=1 << 20)
    """Characters of a program's output that are kept; of a longer one the middle is left out."""
    sessions: int = Field(default=4, ge=0, le=256)
    """Sessions kept warm in addition to those in use."""
    unsafe: bool = False
    """Whether programs run as plain processes of this user, with limits and in no box: they can read and
    change all that this user can. Never chosen by itself; a warning says so at every start."""

    def limits(self) -> Limits:
        """Return what bounds a program and a session.

        >>> SandboxConfig(seconds=2).limits().seconds
        2.0
        """
        return Limits(**self.model_dump(exclude={"sessions", "unsafe"}))
