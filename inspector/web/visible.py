"""Text that models wrote, as a page shows it: nothing is hidden, reordered, or taken for markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from markupsafe import Markup, escape

_MAYBE = re.compile(r"[^\n\t\x20-\x7e]+")
_BLANK_MARKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_SHOWN_CODES = 3


def is_unseen(char: str) -> bool:
    r"""Return whether a character shows nothing, or changes how others are shown; plain blanks do not.

    >>> [is_unseen(c) for c in ("a", "\n", "\u3000", "\x1b", "\u202e", "\u200b", "\ud800", "\ufe01")]
    [False, False, False, True, True, True, True, True]
    """
    if char in "\n\t":
        return False
    if char in _BLANK_MARKS or "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef":
        return True
    return not char.isprintable() and unicodedata.category(char) != "Zs"


def plain(text: str) -> str:
    r"""Return a text with its unseen characters named, fit for an attribute as well.

    >>> plain("a\x1b[2Jb\u202e")
    'a⟨U+001B⟩[2Jb⟨U+202E⟩'
    """
    return _replaced(text, lambda run: f"⟨{_codes(run)}⟩")


def seen(text: str) -> Markup:
    r"""Return a text as markup, escaped, with its unseen characters named and marked.

    >>> seen("<b>\x00")
    Markup('&lt;b&gt;<b class="unseen">U+0000</b>')
    """
    parts: list[str] = []
    end = 0
    for match in _MAYBE.finditer(text):
        for start, stop in _unseen_runs(text, match.start(), match.end()):
            parts.append(str(escape(text[end:start])))
            parts.append(f'<b class="unseen">{_codes(text[start:stop])}</b>')
            end = stop
    parts.append(str(escape(text[end:])))
    return Markup("".join(parts))


def _replaced(text: str, named: Callable[[str], str]) -> str:
    def of(match: re.Match[str]) -> str:
        found, parts, end = match[0], list[str](), 0
        for start, stop in _unseen_runs(found, 0, len(found)):
            parts += [found[end:start], named(found[start:stop])]
            end = stop
        return "".join(parts) + found[end:]

    return _MAYBE.sub(of, text)


def _unseen_runs(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where unseen characters stand next to each other between two places."""
    runs: list[tuple[int, int]] = []
    for place in range(start, end):
        if is_unseen(text[place]):
            if runs and runs[-1][1] == place:
                runs[-1] = (runs[-1][0], place + 1)
            else:
                runs.append((place, place + 1))
    return runs


def _codes(run: str) -> str:
    r"""Return the names of a few characters; of many the first ones and how many there are.

    >>> _codes("\x00"), _codes("\x00" * 9)
    ('U+0000', 'U+0000 U+0000 U+0000 … 9 characters')
    """
    named = " ".join(f"U+{ord(c):04X}" for c in run[:_SHOWN_CODES])
    return named if len(run) <= _SHOWN_CODES else f"{named} … {len(run):,} characters"


def head(text: str, limit: int) -> str:
    """Return a beginning of a text that is at most ``limit`` characters, and twice that as markup."""
    cut = text[:limit]
    while len(cut) > 1 and len(seen(cut)) > 2 * limit:
        cut = cut[: len(cut) // 2]
    return cut
