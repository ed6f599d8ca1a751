"""What the command line prints to: any encoding will do, and nobody need read it to the end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

STDOUT = "standard output"
PIPE_CLOSED = 141
"""The exit code of a command whose reader went away: 128 and SIGPIPE."""


def take_any_encoding() -> None:
    """Have what an encoding lacks printed as its escape, and nothing where a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def quiet_pipe() -> Generator[None]:
    """End the command without a word where its reader went away, as ``| head`` does.

    What could not be printed for another reason, such as a full disk, is an OSError of standard output.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _end_if_unread()
        raise
    except OSError as error:
        from debate.files import name_error  # loads pydantic, which a page of help has no use for

        name_error(error, STDOUT)  # whatever else is written to has a name
        if error.filename == STDOUT:
            _to_nowhere(sys.stdout)
        raise
    except SystemExit as ended:  # so typer and rich end a command that met a broken pipe
        if isinstance(ended.__context__, BrokenPipeError):
            _end_if_unread()
        raise


def _end_if_unread() -> None:
    if unread := [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]:
        _to_nowhere(*unread)
        raise SystemExit(PIPE_CLOSED) from None


def _is_unread(stream: TextIO) -> bool:
    """Return whether nobody reads what is written; rich has led it nowhere then."""
    try:
        fd = stream.fileno()
    except OSError:  # it is no file, as in a notebook
        return False
    watch = select.poll()
    watch.register(fd, 0)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    return gone or os.path.samestat(os.fstat(fd), os.stat(os.devnull))


def _to_nowhere(*streams: TextIO) -> None:
    """Let nothing be said of what cannot be printed, when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
