"""Decode generated token ids, and find the first character of the text that each token touches.

Every token stands for some bytes, its piece. The pieces are joined, and byte positions are mapped to
characters. All tokens of a split character (such as an emoji) point at that character. Bytes that are not
UTF-8 become U+FFFD, as in the tokenizer's own decoder. The time is linear in the length.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_REPLACEMENT = "\ufffd".encode()
_WINDOW = 8  # tokens of context where a decoder's text is not a sum of pieces


class TokenText:
    """Decodes ids of a fast tokenizer, with offsets. Special tokens are kept as literal text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._backend = fast_backend(tokenizer)
        decoder = self._backend.decoder
        state = decoder.__getstate__() if decoder is not None else b""
        self._byte_level, self._byte_fallback = b"ByteLevel" in state, b"ByteFallback" in state
        self._bytes_of = _byte_level_map() if self._byte_level else {}
        self._context = None if self._byte_level else self._ordinary_token()
        self._pieces: dict[int, bytes] = {}

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids. Ids outside the vocabulary add nothing."""
        return self._backend.decode([i for i in ids if i >= 0], skip_special_tokens=False)

    def piece(self, index: int) -> bytes:
        """Return the bytes that the token with this id adds to a text, unless it is the first token."""
        if index not in self._pieces:
            self._pieces[index] = self._find_piece(index)
        return self._pieces[index]

    def text_and_offsets(self, ids: Sequence[int]) -> tuple[str, tuple[int, ...]]:
        """Return ``decode(ids)`` and the index of the first character each token touches, (T,).

        A token that adds no character points at the next one (``len(text)`` at the end).
        """
        text = self.decode(ids)
        joined, offsets = characters(self._joined_pieces(ids))
        if joined == text:
            return text, tuple(offsets)
        return text, tuple(min(offset, len(text)) for offset in self._windowed(ids))

    def _find_piece(self, index: int) -> bytes:
        token = self._backend.id_to_token(index)
        if token is None:
            return b""
        if self._byte_level:
            known = self._bytes_of
            return bytes(known[c] for c in token) if all(c in known for c in token) else token.encode()
        if match := self._byte_token(token):
            return bytes.fromhex(match)
        context = [] if self._context is None else [self._context]
        return self.decode([*context, index])[len(self.decode(context)) :].encode()

    def _byte_token(self, token: str | None) -> str | None:
        match = _BYTE_TOKEN.fullmatch(token) if self._byte_fallback and token is not None else None
        return match[1] if match else None

    def _ordinary_token(self) -> int | None:
        """Return a token id whose text does not depend on its position, for use as a prefix."""
        size = self._backend.get_vocab_size(with_added_tokens=False)
        for index in range(min(size, 5000)):
            text = self.decode([index])
            plain = text.strip().isalnum() and text.isascii()
            if plain and self.decode([index, index]).count(text.strip()) == 2:
                return index
        return None

    def _joined_pieces(self, ids: Sequence[int]) -> list[bytes]:
        pieces = [self.piece(i) for i in ids]
        if self._byte_fallback:
            self._repair_byte_runs(ids, pieces)
        if not self._byte_level:  # a text's first token may lose the space that it has elsewhere
            first = next((t for t, i in enumerate(ids) if self._backend.id_to_token(i) is not None), None)
            if first is not None and (pieces[first].isascii() or not self._is_byte(ids[first])):
                pieces[first] = self.decode([ids[first]]).encode()
        return pieces

    def _repair_byte_runs(self, ids: Sequence[int], pieces: list[bytes]) -> None:
        """Replace each byte by U+FFFD in a sequence of byte tokens that is not valid UTF-8 as a whole."""
        start = None
        for t in range(len(ids) + 1):
            if t < len(ids) and (self._is_byte(ids[t]) or (start is not None and not pieces[t])):
                start = t if start is None else start
            elif start is not None:
                try:
                    b"".join(pieces[start:t]).decode()
                except UnicodeDecodeError:
                    pieces[start:t] = [piece and _REPLACEMENT for piece in pieces[start:t]]
                start = None

    def _is_byte(self, index: int) -> bool:
        return self._byte_token(self._backend.id_to_token(index)) is not None

    def _windowed(self, ids: Sequence[int]) -> list[int]:
        """Return character offsets for decoders that rewrite text across tokens.

        Each offset grows by the length that a token adds to a short window of tokens before it.
        """
        offsets, length = [], 0
        for t in range(len(ids)):
            window = ids[max(0, t - _WINDOW) : t + 1]
            offsets.append(length)
            length += max(0, len(self.decode(window)) - len(self.decode(window[:-1])))
        return offsets


def fast_backend(tokenizer: PreTrainedTokenizerBase) -> Tokenizer:
    """Return the Rust tokenizer inside a fast tokenizer of transformers. ValueError for a slow tokenizer."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer; use one with tokenizer.json")
    return backend


def characters(pieces: Sequence[bytes]) -> tuple[str, list[int]]:
    r"""Return the joined text and the index of the first character each piece touches.

    >>> characters([b"a", b"\xe2\x82", b"\xac", b"!"])
    ('a€!', [0, 1, 1, 2])
    >>> characters([b"\xe2", b"\x82", b"a"])
    ('�a', [0, 0, 1])
    """
    joined = b"".join(pieces)
    if joined.isascii():
        return joined.decode(), list(accumulate(map(len, pieces[:-1]), initial=0)) if pieces else []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text: list[str] = []
    offsets, length = [], 0
    for piece in pieces:
        held, first = decoder.getstate()[0], piece[:1]
        head = decoder.decode(first)
        offsets.append(length + _complete(held, first, head, waits=bool(decoder.getstate()[0])))
        text.append(head + decoder.decode(piece[1:]))
        length += len(text[-1])
    return "".join(text) + decoder.decode(b"", final=True), offsets


def _complete(held: bytes, first: bytes, head: str, *, waits: bool) -> int:
    """Return how many characters the decoder's pending bytes ``held`` make without the next byte ``first``.

    ``head`` is the output for ``first``, and ``waits`` is whether bytes are pending after it. Python keeps
    the bytes of half a surrogate (ED, then A0 or more) pending, although each is one character.
    """
    if held[:1] == b"\xed" and (held + first)[1:2] >= b"\xa0":
        return len(held)
    return int(bool(held) and (len(head) > 1 or (len(head) == 1 and waits)))


def _byte_level_map() -> dict[str, int]:
    """Return the byte each character of a byte-level vocabulary stands for (GPT-2's table)."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(256 + n): b for n, b in enumerate(hidden)}
