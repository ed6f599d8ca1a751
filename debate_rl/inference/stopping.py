"""Stop strings over token ids: found at the token that completes them, never inside a leading think block.

Whole texts are not decoded at each step. A table over the vocabulary holds which tokens could complete a
stop string at all (for a vocabulary with ``</solution>`` as one token: that token alone); only rows that drew
such a token are looked at, through a window as long as the longest stop string.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from debate_rl.inference.decoding import TokenText

THINK_START, THINK_END = "<think>", "</think>"
_OPENING_TOKENS = 16  # a leading think tag is looked for in this many tokens


@dataclass(slots=True)
class RowStop:
    """The stop strings of one row and where it is with thinking (None: not yet known)."""

    stop: tuple[str, ...]
    thinking: bool | None = None


@dataclass(slots=True)
class StopWatch:
    """Finds stop strings in rows of ids of one tokenizer. ``size`` is the model's vocabulary size V."""

    text: TokenText
    size: int
    _tables: dict[tuple[str, ...], torch.Tensor] = field(default_factory=dict)

    def table(self, stop: tuple[str, ...]) -> torch.Tensor:
        """Return (V,) bool: the tokens whose text could complete one of these strings (or end thinking)."""
        if stop not in self._tables:
            tails = _tails((*stop, THINK_END)) if stop else ((), ())
            self._tables[stop] = torch.tensor(
                [_may_end(self.text.piece(v), *tails) for v in range(self.size)]
            )
        return self._tables[stop]

    def ends(self, row: RowStop, tokens: torch.Tensor) -> bool:
        """Return whether the last of the row's tokens (T,) completes a stop string; follows the thinking."""
        if row.thinking is None:
            opening = self.text.decode(tokens[:_OPENING_TOKENS].tolist()).lstrip()
            row.thinking = _leads_to_thinking(opening)
        if row.thinking:
            row.thinking = not self._completed(THINK_END, tokens)
            return False
        return any(self._completed(string, tokens) for string in row.stop)

    def _completed(self, string: str, tokens: torch.Tensor) -> bool:
        window = tokens[-len(string.encode()) - 1 :].tolist()
        before = len(self.text.decode(window[:-1]).rstrip("\ufffd"))  # a cut character is not finished
        return string in self.text.decode(window)[max(0, before - len(string) + 1) :]


def _leads_to_thinking(opening: str) -> bool | None:
    """Return whether a reply that begins so begins with thinking; None while that cannot be said.

    >>> [_leads_to_thinking(text) for text in ("<thi", "<think>2 +", "<solution>")]
    [None, True, False]
    """
    if opening.startswith(THINK_START):
        return True
    return None if THINK_START.startswith(opening) else False


def _tails(strings: Sequence[str]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the strings, and every proper ending of one, as bytes."""
    whole = tuple(string.encode() for string in strings)
    return whole, tuple({data[i:] for data in whole for i in range(1, len(data))})


def _may_end(piece: bytes, whole: tuple[bytes, ...], endings: tuple[bytes, ...]) -> bool:
    """Return whether a token with these bytes could complete one of the strings.

    >>> [_may_end(piece, *_tails(["</s>"])) for piece in (b">", b"s> x", b"x</s>", b"</s", b"s")]
    [True, True, True, False, False]
    """
    return piece.startswith(endings) or any(data in piece for data in whole)
