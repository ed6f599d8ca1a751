"""Read numbers in English words: "twenty one", "minus three", "two hundred and five", "two thirds"."""

from __future__ import annotations

from fractions import Fraction

MAX_WORDS = 16

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TEENS = ("eleven", "twelve", *(w + "teen" for w in ("thir", "four", "fif", "six", "seven", "eigh", "nine")))
_SMALL = {word: value for value, word in enumerate((*_UNITS, *_TEENS))}
_TENS = {
    word: 10 * place
    for place, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2
    )
}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ORDINALS = ("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PARTS = {"half": 2, "halve": 2, "quarter": 4, **{word: n for n, word in enumerate(_ORDINALS, 3)}}


def words_value(text: str) -> Fraction | None:
    """Return the number that words say; None for anything else.

    >>> [str(words_value(text)) for text in ("Twenty one", "minus three", "one half", "two hundred and five")]
    ['21', '-3', '1/2', '205']
    >>> [words_value(text) for text in ("twenty and one", "one two", "half", "minus", "three or four")]
    [None, None, None, None, None]
    """
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= MAX_WORDS:
        return None
    negative = words[0] in ("minus", "negative")
    words = words[1:] if negative else words
    value = _fraction(words)
    return -value if negative and value is not None else value


def _fraction(words: list[str]) -> Fraction | None:
    if len(words) > 1 and (parts := _PARTS.get(words[-1].removesuffix("s"))):
        if words[-2] == "a" and len(words) > 3 and words[-3] == "and":
            whole = _whole(words[:-3])
            return None if whole is None else whole + Fraction(1, parts)
        top = 1 if words[:-1] == ["a"] else _whole(words[:-1])
        return None if top is None or (top > 20 and top % 10) else Fraction(top, parts)
    whole = _whole(words)
    return None if whole is None else Fraction(whole)


def _whole(words: list[str]) -> int | None:
    """Return the whole number that the words say in order of size, "and" behind hundreds alone."""
    total, limit, at = 0, 10**12, 0
    while at < len(words):
        end = next((k for k in range(at, len(words)) if words[k] in _LARGE), len(words))
        scale = _LARGE[words[end]] if end < len(words) else 1
        group = _below_thousand(words[at:end], after=at > 0)
        if group is None or scale >= limit or (end < len(words) and end == at):
            return None
        total, limit, at = total + group * scale, scale, end + 1
    return total if words else None


def _below_thousand(words: list[str], *, after: bool) -> int | None:
    total = 0
    if len(words) > 1 and words[1] == "hundred":
        hundreds = 1 if words[0] == "a" else _SMALL.get(words[0], 0)
        total, words, after = 100 * hundreds, words[2:], True
        if not words or not hundreds:
            return total or None
    if after and words[:1] == ["and"]:
        words = words[1:]
    if len(words) == 1:
        rest = _SMALL.get(words[0], _TENS.get(words[0]))
    else:
        pair = len(words) == 2 and words[0] in _TENS and 0 < _SMALL.get(words[1], 0) < 10
        rest = _TENS[words[0]] + _SMALL[words[1]] if pair else None
    return None if rest is None else total + rest
