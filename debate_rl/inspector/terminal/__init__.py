"""The inspector in the terminal: ``run_terminal``. It needs the extra ``inspect`` and a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from debate.settings import install_hint

PLAIN_TERMINALS = ("vt100", "vt102", "vt220", "vt320", "linux-m")
"""Terminals without colours."""


def run_terminal(path: Path | str, filter: str = "") -> None:
    """Show the runs at a path. ValueError without a suitable terminal; FilterError; TranscriptError."""
    from transcripts import compile_filter

    compile_filter(filter)
    drawn_on = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on stderr
    refusal = why_not(all(stream.isatty() for stream in drawn_on), os.environ.get("TERM", ""))
    if refusal:
        raise ValueError(f"{refusal}; debate inspect {path} ls prints the debates")
    if os.environ.get("TERM", "") in PLAIN_TERMINALS:
        os.environ.setdefault("NO_COLOR", "1")
    try:
        from debate_rl.inspector.terminal.app import Inspector
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "textual":
            refusal = f"the package 'textual' is not installed: {install_hint('inspect')}"
            raise ValueError(f"{refusal}; debate inspect {path} ls prints the debates") from error
        raise
    Inspector(path, filter=filter).run()


def why_not(terminal: bool, term: str) -> str:
    """Return why this terminal cannot be used, or "".

    >>> why_not(False, "xterm")
    'this is not a terminal'
    >>> why_not(True, "dumb")
    "this terminal (TERM='dumb') cannot move its cursor"
    >>> why_not(True, "vt100")
    ''
    """
    if not terminal:
        return "this is not a terminal"
    if term in ("", "dumb", "unknown"):
        return f"this terminal (TERM={term!r}) cannot move its cursor"
    return ""
