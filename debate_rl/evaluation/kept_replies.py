"""Replies on the disk as they come: a kill loses none that had come, and what is asked twice is said once."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from debate import Completion, Policy, SampleRequest
from debate.files import plain_lines
from debate.values import Value
from debate_rl.evaluation.folder import EvaluationError
from debate_rl.inference.wrapped import WrappedPolicy
from transcripts.append import LineFile

NAME = "open_replies.jsonl"
"""The file in the folder of an evaluation; it goes once the debates that it is of are kept."""


class Reply(Value, frozen=True):
    """One line. ``request``: a checksum of all that was asked, the seed too; ``seconds``: as ``Clock``."""

    request: str
    reply: Completion
    seconds: float | UnsetType = UNSET


class Clock:
    """The seconds of an engine, shared equally by the requests that are open: those of all add up to its own.

    >>> times = iter([0.0, 2.0, 3.0, 5.0])
    >>> clock = Clock(lambda: next(times))
    >>> one, other = clock.begin(), clock.begin()  # at 0 and at 2 seconds; they end at 3 and at 5
    >>> clock.end(one), clock.end(other)
    (2.5, 2.5)
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now, self._at = now, 0.0
        self._open, self._share = 0, 0.0

    def begin(self) -> float:
        """Open a request; give what is returned to ``end``."""
        self._settle()
        self._open += 1
        return self._share

    def end(self, begun: float) -> float:
        """Close a request, and return its seconds."""
        self._settle()
        self._open -= 1
        return self._share - begun

    def _settle(self) -> None:
        now = self._now()
        if self._open:
            self._share += (now - self._at) / self._open
        self._at = now


class KeptReplies(WrappedPolicy):
    """A policy that writes each reply of another one to a file, and answers from the file what it holds.

    Left without an error, it removes the file unless it is to ``stay``; else the file stays for the next
    start. ``seconds``: what each reply took of the engine, by the checksum of its request; policies that
    share a ``clock`` share them.
    """

    def __init__(self, policy: Policy, path: Path, *, stay: bool = False, clock: Clock | None = None) -> None:
        super().__init__(policy)
        self._path, self._stay = path, stay
        self.seconds = dict[str, float]()
        self._lines = self._read()
        self._file = LineFile(path)
        self.clock = clock or Clock()

    async def sample(self, request: SampleRequest) -> Completion:
        """Return the reply that was kept, or have one sampled and keep it."""
        key = key_of(request)
        if key in self._lines:
            return msgspec.json.decode(self._file.read(*self._lines[key]), type=Reply).reply
        begun = self.clock.begin()
        try:
            reply = (await self.inner.sample(request)).whole()
        finally:
            took = round(self.clock.end(begun), 6)
        begin = self._file.end
        self._file.write(msgspec.json.encode(Reply(key, reply, took)))
        self._lines[key], self.seconds[key] = (begin, self._file.end), took
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None and not self._stay:
            self._path.unlink()

    def _read(self) -> dict[str, tuple[int, int]]:
        """Return where the file holds which reply, by request; a torn last line is left out."""
        lines, begin = dict[str, tuple[int, int]](), 0
        if not self._path.exists():
            return lines
        for number, line in enumerate(plain_lines(self._path), start=1):
            try:
                kept = msgspec.json.decode(line, type=Reply)
            except msgspec.DecodeError as error:
                if line.endswith(b"\n"):
                    raise EvaluationError(
                        f"{self._path}:{number}: not a reply ({error}); remove the file, whose replies are "
                        "sampled anew"
                    ) from error
                break
            lines[kept.request] = begin, begin + len(line)
            self.seconds[kept.request] = 0.0 if kept.seconds is UNSET else kept.seconds
            begin += len(line)
        return lines


def key_of(request: SampleRequest) -> str:
    """Return a checksum of everything that decides a reply."""
    return sha256(repr(request).encode(errors="backslashreplace")).hexdigest()[:32]
