"""Replies of debates that are still open, on the disk as they come: a kill loses none that had come."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from debate import Completion, Policy, SampleRequest
from debate.files import plain_lines
from debate.values import Value
from debate_rl.evaluation.folder import EvaluationError
from transcripts.append import LineFile

NAME = "open_replies.jsonl"
"""The file in the folder of an evaluation; it goes once the debates that it is of are kept."""


class Reply(Value, frozen=True):
    """One line. ``request``: a checksum of all that was asked, the seed among it."""

    request: str
    reply: Completion


class KeptReplies:
    """A policy that writes each reply of another one to a file, and answers from the file what it holds.

    What the other policy may have beside ``sample`` and ``update`` it has too. Left without an error, it
    removes the file unless it is to ``stay``; else the file stays for the next start.
    """

    def __init__(self, policy: Policy, path: Path, *, stay: bool = False) -> None:
        self.version = policy.version
        self._policy, self._path, self._stay = policy, path, stay
        self._kept = _read(path)
        self._file = LineFile(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    async def sample(self, request: SampleRequest) -> Completion:
        """Return the reply of an earlier start, or have one sampled and kept."""
        key = key_of(request)
        if key in self._kept:
            return self._kept[key]
        reply = (await self._policy.sample(request)).whole()
        self._file.write(msgspec.json.encode(Reply(key, reply)))
        return reply

    async def update(self, weights: object, version: int) -> None:
        """Hand new weights on."""
        await self._policy.update(weights, version)
        self.version = version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None and not self._stay:
            self._path.unlink()


def key_of(request: SampleRequest) -> str:
    """Return a checksum of everything that decides a reply."""
    return sha256(repr(request).encode(errors="backslashreplace")).hexdigest()[:32]


def _read(path: Path) -> dict[str, Completion]:
    """Return the replies that a file holds, by request; a torn last line is left out."""
    kept: dict[str, Completion] = {}
    if not path.exists():
        return kept
    for number, line in enumerate(plain_lines(path), start=1):
        try:
            entry = msgspec.json.decode(line, type=Reply)
        except msgspec.DecodeError as error:
            if line.endswith(b"\n"):
                raise EvaluationError(
                    f"{path}:{number}: not a reply ({error}); remove the file, whose replies are sampled anew"
                ) from error
            break
        kept[entry.request] = entry.reply
    return kept
