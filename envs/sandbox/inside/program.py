"""The runner: the process that runs the programs of one session, like the cells of a notebook."""

from __future__ import annotations

import ast
import builtins
import gc
import io
import json
import linecache
import os
import random
import socket
import sys
import tempfile
import traceback
import types
from importlib.machinery import PathFinder
from typing import Any

_BYTES = 4  # maximum number of bytes of a UTF-8 character


def open_output() -> int:
    """Return the descriptor of a file for a program's output, in memory or without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_output(file: int, longest: int) -> str:
    r"""Return the text in a file, with U+FFFD for invalid UTF-8; only the two ends of a long text are kept.

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


LONGEST_ERROR = 500  # maximum number of characters of an error's line
FRAMES = 10  # maximum number of a traceback's frames: the outermost and the innermost ones


def serve(work: socket.socket, output: int) -> None:
    """Run programs from a socket one after the other, and send a report on each; definitions persist."""
    _seed()
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    sys.argv = [""]
    me, number = os.getpid(), 0
    while (code := receive(work)) is not None:
        number += 1
        _open_streams(output)
        status, error = _run(code, module.__dict__, f"<program {number}>")
        if os.getpid() != me:  # a fork that the program started and did not end
            os._exit(0)
        work.sendall(json.dumps({"status": status, "error": error[:LONGEST_ERROR]}).encode() + b"\n")


def receive(work: socket.socket) -> str | None:
    """Return the next program; None if the socket was closed."""
    head = _exactly(work, 4)
    body = _exactly(work, int.from_bytes(head)) if head is not None else None
    return None if body is None else body.decode("utf-8", "replace")


def _exactly(work: socket.socket, size: int) -> bytes | None:
    whole = bytearray()
    while len(whole) < size:
        part = work.recv(size - len(whole))
        if not part:
            return None
        whole += part
    return bytes(whole)


def _seed() -> None:
    """Seed the random generators, so that all sessions get the same random numbers."""
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
    else:
        sys.meta_path.insert(0, _NumpySeeder())


class _NumpySeeder:
    """Seed numpy when a program is the first to import it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_seed(module: Any) -> None:
                execute(module)
                module.seed(0)

            spec.loader.exec_module = execute_and_seed
        return spec


def _open_streams(output: int) -> None:
    """Open new line-buffered output streams, because the previous program may have changed the old ones."""
    for name in ("stdout", "stderr"):
        raw = io.FileIO(output, "a", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(code: str, names: dict[str, object], file: str) -> tuple[str, str]:
    try:
        try:
            _execute(code, names, file)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except SystemExit as ended:
        if ended.code in (None, 0):
            return "ok", ""
        return "error", f"SystemExit: {ended.code}"
    except BaseException as error:
        return _failed(error, file)
    return "ok", ""


def _execute(code: str, names: dict[str, object], file: str) -> None:
    """Run a program, and print the value of its last statement if it is an expression."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    tree = ast.parse(code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec", dont_inherit=True), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), file, "eval", dont_inherit=True), names)
        if value is not None:
            print(repr(value))


def _failed(error: BaseException, file: str) -> tuple[str, str]:
    """Print the traceback with only the program's own lines; return the status and the last line."""
    status = "memory" if isinstance(error, MemoryError) else "error"
    try:
        lines = _traceback(error)
        print("".join(lines), end="", file=sys.stderr)
        sys.stderr.flush()
        return status, lines[-1].strip()
    except BaseException:  # formatting the exception fails, or there is no memory or stream left
        gc.collect()
        return status, type(error).__name__


def _traceback(error: BaseException) -> list[str]:
    found = traceback.TracebackException.from_exception(error, compact=True)
    whole: traceback.TracebackException | None = found
    while whole is not None:
        whole.stack = traceback.StackSummary.from_list(_own(whole.stack))
        whole = whole.__cause__ or whole.__context__
    return list(found.format())


def _own(frames: traceback.StackSummary) -> list[traceback.FrameSummary]:
    own = [frame for frame in frames if frame.filename.startswith("<program ")]
    return own if len(own) <= FRAMES else own[: FRAMES // 2] + own[-FRAMES // 2 :]
