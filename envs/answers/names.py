r"""Names before values: ``AB=5`` and ``AC=5`` are statements about two things, though their values agree.

The principle: two names are of two things where they are written alike, letter for letter and digit for
digit, and some of these differ: ``f(2)`` and ``f(3)``, ``P(A)`` and ``P(B)``. Names of different forms may be
of one thing: ``\angle A`` and ``\angle BAC``. What is done to a letter that has a value is not the letter:
``x^2``, ``-x``, ``|z|``; so with ``AB^2``, but the length of a segment has its name. Nothing else is said
here of a letter alone, as ``y=2x`` may be solved for x, of words and of sums. A derivative is not its
function, nor an inverse what it inverts.
"""

from __future__ import annotations

import re
from collections import Counter

from envs.answers.notation import DERIVATIVE, name_of, spelling, statement

_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z\\])(?![a-z]{2,3}\()[A-Za-z]*[a-z]{2,}")
_FUNCTION = re.compile(r"(?:[A-Za-z]|\\[A-Za-z]{2,7})(?:\^\{?-1\}?|'*)(?:\([a-z]\))?")
_VARIABLE = re.compile(r"(?<![A-Za-z\\])(?![ei])[A-Za-z](?![A-Za-z])")
_ORDERED = r"\angle"
_SAME = r"(?:m\s?)?(?:\\(?:vec|angle|triangle|overrightarrow|hat)\s?)?\{?%s\}?(?:_\{?\w+\}?|\([^()]*\))*"
_LENGTH = r"(?:\||\\overline\{)?%s[|}]?"
_OF = re.compile(r"(?:P|E|D|V|Var|Cov|Pr|\\Pr|\\mathbb\{[EP]\})\s?[(\[].+")


def names_differ(answer: str, gold: str) -> bool:
    r"""Return whether two texts (in the form of ``clean``) state values of two things.

    >>> [names_differ(f"{name}=5", "f(2)=5") for name in ("f(3)", "g(2)", "f(2)", "f(x)", "f^{-1}(2)", "x")]
    [True, True, False, False, True, False]
    >>> names_differ("AB=5", "AC=5"), names_differ("AB=5", "BA=5"), names_differ("y=2x", r"\frac{dy}{dx}=2x")
    (True, False, True)
    >>> names_differ(r"\angle ABC=5", r"\angle ACB=5"), names_differ(r"\angle A=5", r"\angle BAC=5")
    (True, False)
    >>> [names_differ(f"{name}=4", "x=4") for name in ("x^2", "-x", "|x|", r"\bar{x}", "x_1", r"\vec{x}")]
    [True, True, True, True, False, False]
    >>> names_differ("AB^2=4", "AB=4"), names_differ("|AB|=4", "AB=4"), names_differ("P(A|B)=4", "P(B|A)=4")
    (True, False, True)
    """
    left, right = name_of(answer), name_of(gold)
    if right and not _VARIABLE.search(gold[len(right) :]) and _holds(done := statement(answer), right):
        same = (_SAME,) if len(right) == 1 else (_SAME, _LENGTH)
        return not any(re.fullmatch(form % re.escape(right), done) for form in same)
    if not left or not right or left in gold[len(right) :] or right in answer[len(left) :] or left == right:
        return False
    if _FUNCTION.fullmatch(left) and _FUNCTION.fullmatch(right) and "(" in left and "(" in right:
        return left.casefold() != right.casefold()
    if _OF.fullmatch(left) and _OF.fullmatch(right) and left[0] == right[0]:
        left, right = (
            name.replace("[", "(").replace("]", ")").replace(r"\mid", "|") for name in (left, right)
        )
        same = _form(left) == _form(right) and _signs(left) == _signs(right) and "|" not in left
        return not same and spelling(left) != spelling(right)
    derived = [DERIVATIVE.fullmatch(name) is not None for name in (left, right)]
    if any(derived):
        return not all(derived) and bool(_FUNCTION.fullmatch(right if derived[0] else left))
    if min(len(left), len(right)) < 2 or _WORD.search(left) or _WORD.search(right):
        return False
    if ("^{-1}" in left) != ("^{-1}" in right):
        return left.replace("^{-1}", "") == right.replace("^{-1}", "")
    return _form(left) == _form(right) and (_ORDERED in left or _signs(left) != _signs(right))


def _holds(text: str, name: str) -> bool:
    """Whether a name stands in a text of signs, not of words."""
    return bool(re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", text)) and not _WORD.search(text)


def _form(name: str) -> str:
    """Return what is not of one thing or another in a name: all but its letters and digits."""
    commands = _COMMAND.findall(name)
    plain = re.sub(r"\d+", "0", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", _COMMAND.sub("\\\\", name))))
    return spelling(plain) + " ".join(commands)


def _signs(name: str) -> Counter[str]:
    return Counter(re.findall(r"[A-Za-z]|\d+", _COMMAND.sub(" ", name)))
