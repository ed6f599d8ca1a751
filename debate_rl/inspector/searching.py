"""A search: each match of some words in the texts of debates, with what stands around it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from debate.types import TurnId
from debate_rl.formatting import safe
from debate_rl.inspector.blocks import Row, Span
from debate_rl.inspector.plain import Printer
from transcripts import RunStore, compile_filter
from transcripts.record import named

AROUND = 50
"""Characters that are shown on each side of a match."""
_BLANKS = re.compile(r"[ \t\n]+")


@dataclass(frozen=True, slots=True)
class Match:
    """Words that were found in a turn's text, with what stands around them; ``start`` and ``end`` in it."""

    turn: TurnId
    start: int
    end: int
    before: str
    words: str
    after: str


def search_filter(words: str, filter: str = "") -> str:
    """Return the filter of the debates in which words stand, among those of another filter.

    >>> search_filter("two words", "winner:wrong OR step:3")
    'text:"two words" (winner:wrong OR step:3)'
    """
    text = 'text:"' + words.replace('"', '""') + '"'
    return f"{text} ({filter})" if filter.strip() else text


def print_matches(
    store: RunStore,
    printer: Printer,
    words: str,
    filter: str = "",
    *,
    limit: int | None = None,
    as_json: bool = False,
) -> int:
    """Print a line for each match, as ``text:`` finds words; return how many.

    ``limit``: the most debates. FilterError where the filter cannot be read.
    """
    compile_filter(filter)  # points into what was typed
    count = 0
    for id, record in islice(store.records(search_filter(words, filter)), limit):
        for turn in record.debate.turns:
            for match in matches(words, turn.id, turn.completion.text):
                count += 1
                if as_json:
                    where = {"id": id, "turn": [*match.turn], "start": match.start, "end": match.end}
                    texts = {"before": match.before, "match": match.words, "after": match.after}
                    printer.json(where | texts)
                else:
                    printer.row(_found(id, match))
    return count


def _found(id: str, match: Match) -> Row:
    parts = (match.before, match.words, match.after)
    before, words, after = (safe(_BLANKS.sub(" ", part)) for part in parts)
    address = Span(f"{id} {named(match.turn)}", "address")
    return (address, Span(f": {before.lstrip()}"), Span(words, "found"), Span(after))


def matches(words: str, turn: TurnId, text: str) -> Iterator[Match]:
    r"""Yield where words stand in a text, as ``text:`` finds them.

    >>> [match.words for match in matches("deriv*", TurnId(0, 0), "The dérivative. Derive it!")]
    ['dérivative', 'Derive']
    """
    folded, indices = _folded(text)
    for match in _pattern(words).finditer(folded):
        if match.end() > match.start():
            start = indices[match.start()]
            end = indices[match.end()] if match.end() < len(indices) else len(text)
            around = text[max(0, start - AROUND) : start], text[start:end], text[end : end + AROUND]
            yield Match(turn, start, end, *around)


def _pattern(words: str) -> re.Pattern[str]:
    """Return how words look in a folded text; other characters than letters and digits stand as written."""
    prefix = words.endswith("*")
    wanted = _folded(" ".join(words.removesuffix("*").split()))[0]
    blanks = r"[\W_]++" if wanted.replace(" ", "").isalnum() else r"\s++"
    body = blanks.join(map(re.escape, wanted.split()))
    start = r"(?<![^\W_])" if wanted[:1].isalnum() else ""
    end = r"(?![^\W_])" if wanted[-1:].isalnum() else ""
    return re.compile(start + body + (r"[^\W_]*+" if prefix and end else end))


def _folded(text: str) -> tuple[str, range | list[int]]:
    """Return the text without case and accents, and where each of its characters stood."""
    if text.isascii():
        return text.lower(), range(len(text))
    folded: list[str] = []
    indices: list[int] = []
    for index, character in enumerate(text):
        base = unicodedata.normalize("NFD", character)[0]
        if not unicodedata.combining(base):
            lower = base.lower()
            folded.append(lower if len(lower) == 1 else base)
            indices.append(index)
    return "".join(folded), indices
