"""The sandbox in which a run executes the programs of replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from debate.settings import Settings

if TYPE_CHECKING:
    from envs.sandbox import Limits


class SandboxConfig(Settings):
    """Limits of a program, and whether it is isolated (docs/tools.md)."""

    seconds: float = Field(default=10.0, ge=0.01, le=3600)
    """Wall time of one program in seconds, without time spent waiting for a core."""
    memory_mb: int = Field(default=1024, ge=64, le=1 << 24)
    """Memory in MB of all processes of a session together, beyond the imported libraries."""
    unsafe: bool = False
    """Run programs as plain processes of this user, with limits but without isolation: they can read and
    change everything that this user can. Never chosen automatically; every start warns of it."""

    def limits(self) -> Limits:
        """Return the limits of a program and its session.

        >>> SandboxConfig(seconds=2).limits().seconds
        2.0
        """
        from envs.sandbox import Limits

        return Limits(**self.model_dump(exclude={"unsafe"}))
