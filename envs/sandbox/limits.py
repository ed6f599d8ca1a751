"""What a program may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What each program, or each session, may take at most."""

    seconds: float = 10.0
    """Wall time of one program; what it waits for a core does not count."""
    memory_mb: int = 1024
    """Memory of all processes of a session together, files aside."""
    processes: int = 32
    """Processes and threads of a session beside its own."""
    file_mb: int = 64
    """All files of a session together, and the output of a program; they lie in memory."""
    output_chars: int = 8192
    """Characters of a program's output; of a longer one the middle is left out."""
