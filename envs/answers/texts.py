r"""Compare answers that are text, in a normal form or to the letter, and times of day."""

from __future__ import annotations

import re
from collections import Counter
from string import punctuation

_SIGNS = "+-<>=/#%^~!*.,:"
"""Marks that may change what a text says: what stands around them decides."""

_DROPPED = str.maketrans("", "", "".join(mark for mark in punctuation if mark not in _SIGNS))
_FONTS = (
    "text textbf textit textrm textsf texttt textnormal textup textmd textsc textsl emph underline mbox hbox "
    "operatorname mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak mathscr boldsymbol bm"
)
_COMMAND = re.compile(rf"\\(?:{'|'.join(_FONTS.split())})\s*(?=\{{)")
_LETTER = r"[^\W\d_]"
_POINT = re.compile(r"(?<!\d)[.,:*]|[.,:*](?!\d)|,(?=\d{3}(?!\d))|(?<=\w)!(?!=)|!(?![\w=])")
"""All but those of 3.5, 4:30, 2*3, !p and !=."""
_HYPHEN = re.compile(
    rf"""(?<={_LETTER}{{2}})-++(?=\w) | (?<=\w)-++(?={_LETTER}{{2}})        # well-known, COVID-19, 3-year
    | (?<={_LETTER}{{2}})/(?={_LETTER}) | (?<={_LETTER})/(?={_LETTER}{{2}}) # and/or
    | (?<!\S)-++(?!\S)(?![ ]?\d) | (?<!\S)\#++(?!\S)                        # a dash, a heading""",
    re.VERBOSE,
)
_TIE = re.compile(rf"(?<={_LETTER})~(?={_LETTER})")
_SIGN = re.compile("(!?=|[-+<>/#%^~!\u2212\u2260\u266f\u00ac])")
_NAMES = {"-": "\u2212", "!=": "\u2260", "#": "\u266f", "!": "\u00ac"}
"""Signs that look like punctuation, as characters that do not."""
_ARTICLE = re.compile(r"(?<![+<>=/^\u2212] )\b(?:a|an|the)\b(?! [+<>=/^\u2212])")

_TIME = re.compile(
    r"(\d{1,2})(?::(\d\d))?(?::(\d\d))?(?: ?([ap])(\.?) ?m\.?| (noon|midnight))?", re.ASCII | re.IGNORECASE
)
_HALF_DAY = 12 * 3600
OVERLAP_RIGHT = 0.5
"""The least token F1 at which a text counts as right."""
_PUNCTUATION = str.maketrans("", "", punctuation)


def normal_text(text: str) -> str:
    r"""Return the normal form of SQuAD's exact match [Rajpurkar et al. 2016, arXiv 1606.05250], signs kept.

    Lower case, without ASCII punctuation, without the articles a, an and the, single blanks. LaTeX commands
    for fonts are dropped first, as boxes often hold ``\text{...}``; no other command is: ``\neg{p}`` is not
    p. Signs stay, and points and colons between digits: SQuAD's form makes -3.5 and 35 the same.

    >>> normal_text("The Eiffel  Tower!"), normal_text(r"\text{an apple}"), normal_text("well-known, and/or")
    ('eiffel tower', 'apple', 'wellknown andor')
    >>> normal_text("C ++"), normal_text("x>y!"), normal_text(r"\not{Paris}"), normal_text("-5") == "5"
    ('c + +', 'x > y', 'notparis', False)
    """
    plain = " ".join(_COMMAND.sub(" ", text).lower().translate(_DROPPED).split())
    signed = " ".join(_TIE.sub(" ", _HYPHEN.sub("", " ".join(_POINT.sub("", plain).split()))).split())
    apart = _SIGN.sub(lambda sign: f" {_NAMES.get(sign[1], sign[1])} ", signed)
    return " ".join(_ARTICLE.sub(" ", " ".join(apart.split())).split())


def same_text(answer: str, gold: str, *, verbatim: bool = False) -> bool:
    r"""Return whether the answer is one of the accepted texts; the gold has one on each line.

    ``verbatim`` compares every character except blanks at the ends; otherwise normal forms are compared.

    >>> same_text("the USA", "United States\nUSA"), same_text("usa", "USA", verbatim=True)
    (True, False)
    """
    form = str.strip if verbatim else normal_text
    return form(answer) in [form(accepted) for accepted in gold.split("\n")]


def same_time(answer: str, gold: str) -> bool | None:
    """Return whether two times of day in plain notation are the same; None where the gold is not a time.

    One of them must name the half of the day, by words or by an hour of 0 or above 12. A gold answer like
    "5am" may be letters of a formula: then the answer must be a time too. An answer that is not a time is
    wrong where the gold answer names its half.
    """

    def is_named(time: re.Match[str]) -> bool:
        return bool(time[4] or time[6])

    left, right = _TIME.fullmatch(answer), _TIME.fullmatch(gold)
    if not right or not (is_named(right) or (right[2] and left and is_named(left))):
        return None
    spelled_out = right[2] or right[5] or right[6] or " " in gold
    if not spelled_out and not (left and (left[2] or is_named(left))):
        return None
    return bool(left and _moments(left) & _moments(right))


def _moments(time: re.Match[str]) -> set[int]:
    """Return the seconds of the day that a time may mean: two without a half, none if no clock shows it."""
    hour, minute, second = (int(part or 0) for part in time.group(1, 2, 3))
    at = hour % 24 * 3600 + minute * 60 + second
    noon = not time[6] or at == _HALF_DAY
    if not noon or hour > 24 or minute > 59 or second > 59 or (hour == 24 and minute + second):
        return set()
    moments = {at % _HALF_DAY, at % _HALF_DAY + _HALF_DAY} if 0 < hour < 13 else {at}
    half = (time[4] or {"noon": "p", "midnight": "a"}.get((time[6] or "").lower(), "")).lower()
    return {moment for moment in moments if not half or (moment < _HALF_DAY) == (half == "a")}


def tokens_of(text: str) -> list[str]:
    """Return the words of SQuAD's F1: lower case, without ASCII punctuation and articles."""
    words = text.lower().translate(_PUNCTUATION).split()
    return [word for word in words if word not in ("a", "an", "the")]


def token_f1(answer: str, gold: str) -> float:
    r"""Return SQuAD's F1 of an answer [Rajpurkar et al. 2016, arXiv 1606.05250], in [0, 1].

    2 P R / (P + R), where P and R are the shares of the answer's and of the gold's words that both have, each
    as often as in both. Of several accepted texts, one a line, the best.

    >>> token_f1("the black cat", "A cat sat"), token_f1("dog", "a cat\nthe dog")
    (0.5, 1.0)
    """
    own, scores = Counter(tokens_of(answer)), [0.0]
    for wanted in (Counter(tokens_of(line)) for line in gold.split("\n")):
        total = own.total() + wanted.total()
        scores.append(2 * (own & wanted).total() / total if total else 0.0)
    return max(scores)
