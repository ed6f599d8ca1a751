"""Settings of the sandbox, which executes programs in replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from debate.settings import Settings

if TYPE_CHECKING:
    from envs.sandbox import Limits


class SandboxConfig(Settings):
    """Limits and isolation of programs (docs/tools.md)."""

    seconds: float = Field(default=10.0, ge=0.01, le=3600)
    """Maximum wall time of a program in seconds. Waiting for a CPU core does not count."""
    memory_mb: int = Field(default=1024, ge=64, le=1 << 24)
    """Maximum memory in MB of all processes of a session together, not counting imported libraries."""
    unsafe: bool = False
    """Run programs with limits but without isolation: they can read and change everything that the current
    user can. Every start prints a warning."""

    def limits(self) -> Limits:
        """Return the limits of a program and its session.

        >>> SandboxConfig(seconds=2).limits().seconds
        2.0
        """
        from envs.sandbox import Limits

        return Limits(**self.model_dump(exclude={"unsafe"}))
