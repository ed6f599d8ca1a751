r"""Compare answers as graders that want one spelling do: for figures beside published ones, not for rewards.

"literal" is lm-evaluation-harness's exact match of gsm8k: equal text but for commas, dollars and a last
point. "hendrycks" compares normalised spelling, as the MATH repository does: order counts in lists and sums.
"minerva" is the exact match of lm-evaluation-harness's minerva_math: equal as Minerva normalises text, or two
single formulas of the same value. "prm800k" takes equal values with two exceptions: a gold fraction and a
gold integer have one form each.

Two published normal forms are followed step by step, quirks included. ``math_spelling`` is that of the MATH
repository (Hendrycks et al. 2021), which lm-evaluation-harness's hendrycks_math uses too.
``minerva_spelling`` is that of Lewkowycz et al. (2022), appendix D, as lm-evaluation-harness 0.4.13 has it.
They call things different that are the same ("9 units" and "9" in MATH), and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from envs.answers.notation import clean, sides
from envs.answers.structures import out_of_order
from envs.types import Mode

Strictness: TypeAlias = Literal["value", "library", "literal", "hendrycks", "minerva", "prm800k"]

STRICTNESS: Mapping[Mode, Strictness] = {
    "gsm8k_strict_match": "literal",
    "gsm8k_flexible_extract": "literal",
    "hendrycks": "hendrycks",
    "minerva_exact": "minerva",
    "math_verify": "library",
    "prm800k": "prm800k",
}
_FRACTION = re.compile(r"-?\\frac\{-?\d+\}\{\d+\}|-?\d+/\d+", re.ASCII)
_NO_FORMULA = re.compile(
    r"[%<>,;]|\\[{}()\[\]]|\\(?:text\w*|mbox|begin|in|cup|cap|pm|mp|infty|[lg]eq?|lt|gt|neq?|cfrac"
    r"|math(?:rm|bf)|operatorname)(?![A-Za-z])|^\[|\]$|(?<!\d)\.\d|\d\.(?!\d)|\\$|_\{?\d"
)
_INTEGER = re.compile(r"-?\d+(?:,\d{3})*(?:\.0*)?", re.ASCII)

_DROPPED = ("\n", "\\!")
_REWRITTEN = (
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
_POINTS = (("\\%", ""), ("\\%", ""), (" .", " 0."), ("{.", "{0."))  # a percent sign twice, as there
_UNIT = "\\text{ "

# The order is theirs: what one removes may make another. A "/" stands for a line break.
_UNIT_LINES = (
    "square ways integers dollars mph inches ft hours km units \\ldots sue points feet minutes digits cents",
    "degrees cm gm pounds meters meals edges students childrentickets multiples \\text{s} \\text{.}",
    '\\text{/s} \\text{}^2 \\text{}^3 \\text{/} \\text{} \\mathrm{th} ^\\circ ^{\\circ} \\; ,\\! {,} "',
    "\\dots",
)
_UNIT_WORDS = tuple(word.replace("/", "\n") for line in _UNIT_LINES for word in line.split())
_WHOLE_UNIT_WORD = re.compile(rf"(?<!\\)\b(?:{'|'.join(filter(str.isalpha, _UNIT_WORDS))})\b")
_SUBSTITUTES = (
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    ("\\$", ""),
    ("\\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (",\\text{and}", ","),
    ("\\text{and}", ","),
    ("\\text{m}", "\\text{}"),
)
_COMMAND = re.compile(r"(\\[a-zA-Z]+)")
_WRAPPERS = ("\\text{", "\\textbf{", "\\overline{")
_BOX = "\\boxed{"
_BARE_FRACTION, _BARE_ROOT = re.compile(r"frac([^{])(.)"), re.compile(r"sqrt(?!\[)([^{])")
_WORD = re.compile(r"\w")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")


class SpellingError(ValueError):
    """The MATH repository's rules fail on this text: it is compared as it stands."""


def literal(answer: str, gold: str) -> bool:
    r"""Return whether both are the same text but for commas, dollars, a last point and case.

    All up to the last ``#### `` is left out: the gold answer may be a whole solution of GSM8K.
    """
    return _literal(answer) == _literal(gold)


def same_spelling(answer: str, gold: str) -> bool:
    r"""Return whether both are spelled alike in the MATH repository's normal form.

    Where its rules fail on one of them, both are compared as they stand, as there.
    """
    try:
        return math_spelling(answer) == math_spelling(gold)
    except SpellingError:
        return answer == gold


def is_formula(text: str) -> bool:
    """Return whether text in Minerva's normal form is one formula: no list, relation, unit or text."""
    return not _NO_FORMULA.search(text)


def breaks_form(answer: str, gold: str) -> bool:
    """Return whether an answer breaks the form of "prm800k": lowest terms, an integer, the order."""
    plain, truth = sides(clean(answer))[-1], sides(clean(gold))[-1]
    if _FRACTION.fullmatch(truth) and _FRACTION.fullmatch(plain):
        return re.findall(r"\d+", plain) != re.findall(r"\d+", truth)
    if _INTEGER.fullmatch(truth):
        return not _INTEGER.fullmatch(plain.lstrip("$"))
    return out_of_order(clean(answer), clean(gold))


def _literal(text: str) -> str:
    plain = text.strip().replace(",", "").replace("$", "")
    return plain.rpartition("#### ")[2].removesuffix(".").lower()


def math_spelling(text: str) -> str:
    r"""Return the MATH repository's normal form; SpellingError where its rules end in an error.

    >>> [math_spelling(t) for t in (r"\dfrac12", "0.5", "1/2", r"10\text{ units}", "x = 5", "9 cm")]
    ['\\frac{1}{2}', '\\frac{1}{2}', '\\frac{1}{2}', '10', '5', '9cm']
    """
    for dropped in _DROPPED:
        text = text.replace(dropped, "")
    text = _without_unit(_replaced(text, _REWRITTEN))
    text = _replaced(text, _POINTS)
    if text.startswith("."):
        text = f"0{text}"
    name, equals, value = text.partition("=")
    if equals and "=" not in value and len(name) <= 2:
        text = value
    text = _full_fractions(_full_roots(text).replace(" ", ""))
    return _slashed(r"\frac{1}{2}" if text == "0.5" else text)


def minerva_spelling(text: str) -> str:
    r"""Return the normal form of minerva_math: after the last "=", no units, the first formula of a line.

    >>> [minerva_spelling(t) for t in ("$x = 5$ ", r"\text{12 cm}", "1,200", "0,1", r"\frac12\pi", "a $4$")]
    ['5', '12', '1200', '0,1', '\\frac{1}{2}\\pi', '4']
    """
    text = _replaced(_WHOLE_UNIT_WORD.sub("", text.split("=")[-1]), _SUBSTITUTES)
    for word in _UNIT_WORDS:
        text = _without_word(text, word) if word.isalpha() else text.replace(word, "")
    text = "\n".join(map(_first_formula, text.split("\n")))
    for opening in _WRAPPERS:
        text = "\n".join(_unwrapped(line, opening) for line in text.split("\n"))
    text = "\n".join(map(_unboxed, text.split("\n")))
    text = _BARE_ROOT.sub(r"sqrt{\1}", _full_indexed_roots(_BARE_FRACTION.sub(r"frac{\1}{\2}", text)))
    text = text.replace("$", "")
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for before, after in pairs:
        text = text.replace(before, after)
    return text


def _without_unit(text: str) -> str:
    """Return the text before the unit; two units are an error there."""
    if text.count(_UNIT) > 1:
        raise SpellingError("two units")
    return text.partition(_UNIT)[0]


def _full_roots(text: str) -> str:
    first, *others = text.split("\\sqrt")
    if not all(others):
        raise SpellingError("a root of nothing")
    full = (part if part[0] == "{" else f"{{{part[0]}}}{part[1:]}" for part in others)
    return "\\sqrt".join((first, *full))


def _full_fractions(text: str) -> str:
    first, *others = text.split("\\frac")
    full = [first]
    for part in others:
        if not part:
            raise SpellingError("a fraction of nothing")
        if part[0] == "{":
            full.append(part)
        elif len(part) == 1:
            return text
        else:
            below = part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}"
            full.append(f"{{{part[0]}}}{below}")
    return "\\frac".join(full)


def _slashed(text: str) -> str:
    r"""Return a/b as \frac{a}{b}; an error, as there, where a or b is not an integer."""
    parts = text.split("/")
    if len(parts) != 2:
        return text
    try:
        above, below = map(int, parts)
        return rf"\frac{{{above}}}{{{below}}}" if text == f"{above}/{below}" else text
    except ValueError as error:
        raise SpellingError("a slash between non-integers") from error


def _without_word(text: str, word: str) -> str:
    """Return the text without a word, also inside other words, but not inside names of commands."""
    parts = _COMMAND.split(text)
    parts[::2] = [part.replace(word, "") for part in parts[::2]]
    return "".join(parts)


def _first_formula(line: str) -> str:
    parts = line.split("$", 2)
    return f"${parts[1]}$" if len(parts) == 3 else line


def _unwrapped(line: str, opening: str) -> str:
    """Return a line without a command and the first brace after it, as a pattern would find them."""
    pieces, at = [], 0
    while (start := line.find(opening, at)) >= 0 and (end := line.find("}", start)) >= 0:
        pieces += [line[at:start], line[start + len(opening) : end]]
        at = end + 1
    return "".join((*pieces, line[at:]))


def _unboxed(line: str) -> str:
    """Return a line without its first box, up to its last brace."""
    start, end = line.find(_BOX), line.rfind("}")
    inside = start + len(_BOX)
    return line[:start] + line[inside:end] + line[end + 1 :] if start >= 0 and inside <= end else line


def _full_indexed_roots(text: str) -> str:
    """Return sqrt[3]8 as sqrt[3]{8}."""
    pieces, at = [], 0
    while (start := text.find("sqrt[", at)) >= 0 and (end := text.find("]", start)) >= 0:
        under = text[end + 1 : end + 2]
        full = f"{{{under}}}" if _WORD.fullmatch(under) else ""
        pieces += [text[at : end + 1], full]
        at = end + 2 if full else end + 1
    return "".join((*pieces, text[at:]))
