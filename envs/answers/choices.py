r"""Multiple choice: which letter an answer means.

A letter of the item that stands alone is that letter, as prompts ask for one and data sets give one, even if
it is the text of another option. Otherwise the text of exactly one option, with or without an article, means
that option, and a letter counts when it opens the answer (``B) 12``): a capital one, or a small one before a
bracket, a point or a colon. "A" before a word is the article. A letter that goes on as a formula, as a
refusal ("D is false") or with another option ("B or C") does not count, nor do letters beyond the options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
"""Where another clause begins, with a subject of its own."""
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
    r"""Return the letter in upper case, or None when the answer names none of the options.

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
    """Return the text after a letter up to a clause that denies other letters: "it can't be A or B"."""
    if (denied := _DENIED.search(rest)) is None:
        return rest
    if re.search(rf"(?<![\w']){letter}(?![\w'])", rest[denied.end() :]):
        return f"{rest} or {'B' if letter == 'A' else 'A'}"  # it denies the letter itself
    clause = _CLAUSE.search(rest)
    return rest[: clause.start()] if clause and _DENIED.search(rest, clause.start()) else rest


def letter_alone(answer: str, choices: Sequence[str] = ()) -> str | None:
    """Return the item's letter that is the whole answer, in upper case; None for any other answer."""
    match = _ALONE.fullmatch(clean(answer))
    letter = match[1].upper() if match else ""
    return letter if letter and letter in LETTERS[: len(choices) or len(LETTERS)] else None


def texts_of(answer: str, choices: Sequence[str]) -> list[str]:
    """Return the letters of the options whose text an answer is."""
    if not choices:
        return []
    texts = [clean(text) for text in (answer, *choices)]
    for forms in (texts, [_ARTICLE.sub("", text) for text in texts]):
        wanted, *others = (spelling(form).casefold() for form in forms)
        if same := [letter for letter, other in zip(LETTERS, others, strict=False) if other == wanted]:
            return same
    return []
