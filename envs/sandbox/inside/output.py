"""What a program wrote, as text of a bounded length."""

from __future__ import annotations

import os
import tempfile

_BYTES = 4
"""Bytes of a character of UTF-8, at most."""


def open_output() -> int:
    """Return a file in memory, or without a name, that a program writes to."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_output(file: int, longest: int) -> str:
    r"""Return what lies in a file, as text: U+FFFD for what is no UTF-8; of a long one its two ends.

    >>> file = open_output()
    >>> os.write(file, "1 ≤ 2".encode() + b"\xff")
    8
    >>> read_output(file, 100)
    '1 ≤ 2�'
    >>> read_output(file, 4)
    '1 \n[2 of 6 characters left out]\n2�'
    """
    size, most = os.fstat(file).st_size, _BYTES * longest
    if size <= 2 * most:
        text = os.pread(file, size, 0).decode("utf-8", "replace")
        return text if len(text) <= longest else _shorten(text, text, longest, f"of {len(text):,} characters")
    head = os.pread(file, most, 0).decode("utf-8", "replace")
    tail = os.pread(file, most, size - most).decode("utf-8", "replace")
    return _shorten(head, tail, longest, f"of {size:,} bytes")


def _shorten(head: str, tail: str, longest: int, whole: str) -> str:
    half = longest // 2
    left = f"{len(head) - 2 * half:,} " if head is tail else "the middle "
    return f"{head[:half]}\n[{left}{whole} left out]\n{tail[-half:] if half else ''}"
