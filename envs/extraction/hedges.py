r"""What stands right before an answer and takes it back: "3 or perhaps", "3 and", "not".

Such a text is one answer with the number behind it, and a wrong one. Every look is at a bounded stretch.
"""

from __future__ import annotations

import re

from debate.types import Span

_WINDOW = 96
_FONT = r"\\(?:math(?:bf|rm|it)|text(?:bf|it)?|boldsymbol|bm)(?![A-Za-z])"
_MARKUP = rf"(?:{_FONT}|[\s*_`\"'~$(){{}}\[\],\\]){{0,12}}"
_CLOSE = rf"(?:{_FONT}|[ \t*_`\"'~$(){{}}\[\]\\]){{0,12}}"
"""The same without commas and line breaks."""
_MAYBE = "perhaps|maybe|possibly|probably|potentially|likely|alternatively"
_SMALL = rf"{_MAYBE}|even|else|rather|also|just|simply|about|around|exactly|it(?:['’]s)?|is"
_FILLER = rf"(?:(?:{_SMALL})(?![A-Za-z]){_MARKUP}){{0,3}}"
_ALSO = rf"(?:(?:{_MAYBE}|also|even|exactly|about)(?![A-Za-z]){_MARKUP}){{0,3}}"
"""Behind "and" an "is" begins another sentence."""
_PLAIN = r"be|equals?|to|exactly|even|just|simply|really|necessarily"
_NAMED = r"(?:[A-Za-z](?:_\{?\w{1,4}\}?)?[ \t]{0,4}=[ \t$\\(]{0,6})?"
_OR = re.compile(rf"(?<![A-Za-z\\])(?:or(?![A-Za-z])|,(?=\s{{0,4}}(?:{_MAYBE}))){_MARKUP}{_FILLER}{_NAMED}$")
_AND = re.compile(rf"(?:(?<![A-Za-z\\])and(?![A-Za-z])|/){_MARKUP}{_ALSO}{_NAMED}$")
_NOT = re.compile(
    r"(?:(?<![A-Za-z\\])(?:not|never|cannot|[A-Za-z]{1,8}n['’]t)(?![A-Za-z])|≠|!=|\\neq?(?![A-Za-z])|\\not\s?=)"
    rf"{_CLOSE}(?:(?:{_PLAIN})(?![A-Za-z]){_CLOSE}){{0,3}}{_NAMED}$"
)
_LAST_WORD = re.compile(r"[^\s*]\S{0,19}\s{0,4}$")
_AFTER = re.compile(
    rf"[\s*)\\]{{0,6}}(?:[(,]?\s{{0,4}}(?:or|and)(?![A-Za-z])|/|,){_MARKUP}{_FILLER}{_NAMED}(?:[-−]?\d|(?<=[$(]))"
)


def widened(text: str, span: Span) -> Span:
    r"""Return the span of an answer together with what takes it back; the same span where nothing does.

    >>> [widened(t, Span(len(t) - 1, len(t))).of(t) for t in ("so 3 or 5", "$3$ or perhaps $5", "isn't 5")]
    ['3 or 5', '$3$ or perhaps $5', "isn't 5"]
    >>> [widened(t, Span(len(t) - 1, len(t))).of(t) for t in ("3 and 5", "not 3 but 5", "a and 5")]
    ['3 and 5', '5', '5']
    """
    from_ = max(0, span.start - _WINDOW)
    before = text[from_ : span.start]
    start = _taken_back(before)
    if start is None:
        return span
    # what closes the mathematics that the answer stands in
    end = span.end + (text.startswith("$", span.end) or 2 * text.startswith("\\)", span.end))
    return Span(from_ + start, end)


def alternative_follows(text: str, at: int) -> bool:
    """Return whether an alternative with a number or a formula stands at a place.

    >>> alternative_follows("$5$ or $3$", 3), alternative_follows("$5$, or five", 3)
    (True, False)
    """
    return _AFTER.match(text, at) is not None


def _taken_back(before: str) -> int | None:
    """Return where the words that take an answer back start; None where there are none."""
    if no := _NOT.search(before):
        return no.start()
    for pattern in (_OR, _AND):
        if found := pattern.search(before):
            word = _LAST_WORD.search(before[: found.start()].rstrip("( \t\n"))
            if word and (pattern is _OR or re.search(r"\d\W{0,6}$", word[0])):
                return word.start()
    return None
