r"""Compare answers in words: letters of multiple choice, texts (normalized or verbatim), and times of day.

A single letter of an option is that option, because prompts ask for a letter and data sets give a letter.
This holds even if the letter is the text of another option. Otherwise, the text of exactly one option, with
or without an article, means that option. A letter at the start of the answer (``B) 12``) counts if it is a
capital, or a small letter before a bracket, a period or a colon. "A" before a word is the article. A letter
does not count if a formula, a denial ("D is false") or another option ("B or C") follows, or if no option has
it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from string import punctuation

from envs.answers.notation import clean, spelling

LETTERS = "ABCDEFGHIJ"

_OTHER = re.compile(
    r"(?:\b(?i:or|and|not|nor|than|as)\b|[,;/&|+(]|\\(?:cup|cap|lor|land|vee|wedge)(?![A-Za-z]))\s{0,4}\(?"
    r"(?:([A-J])(?![\w'])|([a-j])(?![\w'])(?!\s+[a-z]))"
)
_CAPITAL = re.compile(
    r"(?<![\w'])(?:([B-J])(?![\w'])|(A)(?![\w']|\s+(?!(?:might|may|could|can|also)\b)[a-z]))"
)
_ALONE = re.compile(r"\(?([A-Ja-j])\)?[.:]?")
_LETTER = re.compile(
    r"\(?([A-J])(?:\)|\s*[).:]|(?=[\s,;(])|$)|\(([a-j])\)|([a-j])(?:\s?\)|[.:](?=\s|$))", re.DOTALL
)
_ARTICLE = re.compile(r"^(?:(?:an?|the)\s+(?=[A-Za-z]{3})|the\s+)", re.IGNORECASE)
_AFTER_LETTER = re.compile(r"\s+(?:is|was|because|since|as|which|for|from|by|if|when|where|given|due)\b")
_FORMULA = re.compile(
    r"\s*(?:[<>=|&+*/^_]|\\(?:[lg](?:e|eq|eqslant|t)|neq?|approx|sim|simeq|equiv|cong|cup|cap|in|notin|subset"
    r"|subseteq|lor|land|vee|wedge|cdot|times|div|pm|mp|to|mid|setminus|perp|parallel)(?![A-Za-z]))"
)
_CLAUSE = re.compile(
    r"[,.;:(–—-]\s{0,3}\(?(?:(?i:it|this|that|the|because|since|as|while|whereas|so|but|for|others?"
    r"|options?|neither|none"
    r"|all|both|i|we|which)|[A-J](?:(?:,\s?|\s(?:and|or|nor)\s)[A-J]){0,8}\s(?:is|are|can|could|do"
    r"|does|was|were))\b"
    r"|\s(?:because|since|as|rather than|instead of)\b"
)
"""The start of another clause with its own subject."""
_DENIED = re.compile(
    r"\b(?:not|cannot|neither|nor|none|never|wrong|false|incorrect|untrue|impossible|eliminated?"
    r"|excluded?|ruled|rather than"
    r"|instead of)\b|n['’]t\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:not|cannot|never|\w{2,6}n['’]t)\W{1,3}(?:be\W{1,3})?(?:wrong|false|incorrect|untrue"
    r"|impossible|eliminated|excluded|ruled"
    r"|sure|certain|clear)\b|\?|\b(?:or|and) (?:none|neither|both|all)\b|\b(?:maybe|perhaps"
    r"|possibly|might|either|unless)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"[\s,:-]{0,4}(?:(?:is|was|are|seems?|looks?|appears|may|might|can|could|must|should|would|will"
    r"|does|do|be|to|the|an?)\s+){0,4}"
    r"(?:\w{2,12}ly\s+)?"
    r"(?:not|never|no|false|wrong|incorrect|untrue|invalid|impossible|eliminated|excluded|cannot"
    r"|\w{2,6}n't)\b",
    re.IGNORECASE,
)


def letter_of(answer: str, choices: Sequence[str] = ()) -> str | None:
    r"""Return the option's letter in upper case; None if the answer does not name exactly one option.

    >>> letter_of(r"\text{(b)}"), letter_of("12 cm", ("10 cm", "12 cm")), letter_of("Because")
    ('B', 'B', None)
    >>> letter_of("C", ("1", "2")), letter_of("B or C"), letter_of("B) A rectangle")
    (None, None, 'B')
    >>> letter_of("A", ("C", "A", "B")), letter_of("E", ("A", "E", "I", "O"))
    ('A', 'B')
    >>> letter_of("a ruler", ("magnet", "ruler")), letter_of("a bit"), letter_of("D is false")
    ('B', None, None)
    """
    text = clean(answer)
    if alone := letter_alone(text, choices):
        return alone
    if len(meant := texts_of(text, choices)) == 1:
        return meant[0]
    match = _LETTER.match(text)
    letter = (match[1] or match[2] or match[3]).upper() if match else ""
    if not match or not letter or letter not in LETTERS[: len(choices) or len(LETTERS)]:
        return None
    rest = text[match.end() :]
    if letter in texts_of(rest.lstrip(").: "), choices):
        return letter
    marked = match.end() > match.end(match.lastindex or 0)
    article = letter == "A" and re.match(r"\s+[a-z]", rest) and not _AFTER_LETTER.match(rest)
    if _REFUSED.match(rest) or (not marked and (_FORMULA.match(rest) or article)) or _DOUBTED.search(rest):
        return None
    claim = _without_denials(text[match.end(match.lastindex or 0) :], letter)
    names = [(m[1] or m[2]).upper() for pattern in (_OTHER, _CAPITAL) for m in pattern.finditer(claim)]
    if alone := _ALONE.fullmatch(claim.strip(" ().:,")):
        names.append(alone[1].upper())
    others = {name for name in names if name in LETTERS[: len(choices) or 5]} - {letter}
    return None if others else letter  # "B or C" is a hedge, "B) A rectangle" is not


def _without_denials(rest: str, letter: str) -> str:
    """Return the text after a letter, up to a clause that denies other letters ("it can't be A or B")."""
    if (denied := _DENIED.search(rest)) is None:
        return rest
    if re.search(rf"(?<![\w']){letter}(?![\w'])", rest[denied.end() :]):
        return f"{rest} or {'B' if letter == 'A' else 'A'}"  # the text denies the letter itself
    clause = _CLAUSE.search(rest)
    return rest[: clause.start()] if clause and _DENIED.search(rest, clause.start()) else rest


def letter_alone(answer: str, choices: Sequence[str] = ()) -> str | None:
    """Return the letter in upper case if the whole answer is one option's letter, else None."""
    match = _ALONE.fullmatch(clean(answer))
    letter = match[1].upper() if match else ""
    return letter if letter and letter in LETTERS[: len(choices) or len(LETTERS)] else None


def texts_of(answer: str, choices: Sequence[str]) -> list[str]:
    """Return the letters of the options whose text equals the answer."""
    if not choices:
        return []
    texts = [clean(text) for text in (answer, *choices)]
    for forms in (texts, [_ARTICLE.sub("", text) for text in texts]):
        wanted, *others = (spelling(form).casefold() for form in forms)
        if same := [letter for letter, other in zip(LETTERS, others, strict=False) if other == wanted]:
            return same
    return []


_SIGNS = "+-<>=/#%^~!*.,:"  # marks that may change the meaning, depending on the characters around them

_DROPPED = str.maketrans("", "", "".join(mark for mark in punctuation if mark not in _SIGNS))
_FONTS = (
    "text textbf textit textrm textsf texttt textnormal textup textmd textsc textsl emph underline mbox hbox "
    "operatorname mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak mathscr boldsymbol bm"
)
_COMMAND = re.compile(rf"\\(?:{'|'.join(_FONTS.split())})\s*(?=\{{)")
_A = r"[^\W\d_]"
_POINT = re.compile(r"(?<!\d)[.,:*]|[.,:*](?!\d)|,(?=\d{3}(?!\d))|(?<=\w)!(?!=)|!(?![\w=])")
"""Punctuation marks except those that carry meaning, as in 3.5, 4:30, 2*3, !p and !=."""
_HYPHEN = re.compile(
    rf"""(?<={_A}{{2}})-++(?=\w) | (?<=\w)-++(?={_A}{{2}})        # well-known, COVID-19, 3-year
    | (?<={_A}{{2}})/(?={_A}) | (?<={_A})/(?={_A}{{2}}) # and/or
    | (?<!\S)-++(?!\S)(?![ ]?\d) | (?<!\S)\#++(?!\S)                        # a dash, a heading""",
    re.VERBOSE,
)
_TIE = re.compile(rf"(?<={_A})~(?={_A})")
_SIGN = re.compile("(!?=|[-+<>/#%^~!\u2212\u2260\u266f\u00ac])")
_NAMES = {"-": "\u2212", "!=": "\u2260", "#": "\u266f", "!": "\u00ac"}
"""Characters that replace signs that look like punctuation."""
_THE = re.compile(r"(?<![+<>=/^\u2212] )\b(?:a|an|the)\b(?! [+<>=/^\u2212])")

_TIME = re.compile(
    r"(\d{1,2})(?::(\d\d))?(?::(\d\d))?(?: ?([ap])(\.?) ?m\.?| (noon|midnight))?", re.ASCII | re.IGNORECASE
)
_HALF_DAY = 12 * 3600
OVERLAP_RIGHT = 0.5  # minimum token F1 of a text that counts as right
_PUNCTUATION = str.maketrans("", "", punctuation)


def normal_text(text: str) -> str:
    r"""Return the normal form of SQuAD's exact match [Rajpurkar et al. 2016, arXiv 1606.05250], with signs.

    The form is in lower case with single blanks, without ASCII punctuation and the articles a, an and the.
    LaTeX font commands are dropped first, because boxes often hold ``\text{...}``. Other commands stay:
    ``\neg{p}`` is not p. Unlike in SQuAD's form, signs stay, and so do points and colons between digits:
    SQuAD's form makes -3.5 and 35 the same.

    >>> normal_text("The Eiffel  Tower!"), normal_text(r"\text{an apple}"), normal_text("well-known, and/or")
    ('eiffel tower', 'apple', 'wellknown andor')
    >>> normal_text("C ++"), normal_text("x>y!"), normal_text(r"\not{Paris}"), normal_text("-5") == "5"
    ('c + +', 'x > y', 'notparis', False)
    """
    plain = " ".join(_COMMAND.sub(" ", text).lower().translate(_DROPPED).split())
    signed = " ".join(_TIE.sub(" ", _HYPHEN.sub("", " ".join(_POINT.sub("", plain).split()))).split())
    apart = _SIGN.sub(lambda sign: f" {_NAMES.get(sign[1], sign[1])} ", signed)
    return " ".join(_THE.sub(" ", " ".join(apart.split())).split())


def same_text(answer: str, gold: str, *, verbatim: bool = False) -> bool:
    r"""Return whether the answer is one of the accepted texts, which are the lines of ``gold``.

    With ``verbatim``, all characters except blanks at the ends are compared, otherwise the normal forms.

    >>> same_text("the USA", "United States\nUSA"), same_text("usa", "USA", verbatim=True)
    (True, False)
    """
    form = str.strip if verbatim else normal_text
    return form(answer) in [form(accepted) for accepted in gold.split("\n")]


def same_time(answer: str, gold: str) -> bool | None:
    """Return whether two times of day in plain notation are the same; None if the gold is not a time.

    At least one of the times must say which half of the day it means, as am, pm, noon or midnight. A gold
    answer like "5am" may be the letters of a formula, so the result is None unless the answer is clearly a
    time too. If the gold answer clearly is a time, an answer that is not a time is wrong.
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
    """Return the seconds since midnight that a time may mean.

    A time without am or pm has two meanings, an impossible time has none.
    """
    hour, minute, second = (int(part or 0) for part in time.group(1, 2, 3))
    at = hour % 24 * 3600 + minute * 60 + second
    noon = not time[6] or at == _HALF_DAY
    if not noon or hour > 24 or minute > 59 or second > 59 or (hour == 24 and minute + second):
        return set()
    moments = {at % _HALF_DAY, at % _HALF_DAY + _HALF_DAY} if 0 < hour < 13 else {at}
    half = (time[4] or {"noon": "p", "midnight": "a"}.get((time[6] or "").lower(), "")).lower()
    return {moment for moment in moments if not half or (moment < _HALF_DAY) == (half == "a")}


def tokens_of(text: str) -> list[str]:
    """Return the words that SQuAD's F1 counts: in lower case, without ASCII punctuation and articles."""
    words = text.lower().translate(_PUNCTUATION).split()
    return [word for word in words if word not in ("a", "an", "the")]


def token_f1(answer: str, gold: str) -> float:
    r"""Return SQuAD's F1 of an answer [Rajpurkar et al. 2016, arXiv 1606.05250], in [0, 1].

    F1 is 2 P R / (P + R). P and R are the fractions of the answer's and of the gold's words that both texts
    share, counted with multiplicity. If ``gold`` has several accepted texts, one per line, the best F1
    counts.

    >>> token_f1("the black cat", "A cat sat"), token_f1("dog", "a cat\nthe dog")
    (0.5, 1.0)
    """
    own, scores = Counter(tokens_of(answer)), [0.0]
    for wanted in (Counter(tokens_of(line)) for line in gold.split("\n")):
        total = own.total() + wanted.total()
        scores.append(2 * (own & wanted).total() / total if total else 0.0)
    return max(scores)
