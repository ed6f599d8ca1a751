r"""Compare answers like graders that require one spelling, to reproduce published figures (not for rewards).

"literal" is lm-evaluation-harness's exact match for gsm8k: texts must be equal except for commas, dollar
signs and a final period. "hendrycks" compares normalized spelling, as the MATH repository does: order counts
in lists and sums. "minerva" is the exact match of lm-evaluation-harness's minerva_math: texts must be equal
in Minerva's normal form, or be two single formulas of the same value. "prm800k" accepts equal values with two
exceptions: a gold fraction or integer must have the gold's form, and lists are ordered.

Two published normal forms are implemented step by step, including their quirks. ``math_spelling`` is the form
of the MATH repository (Hendrycks et al. 2021), which lm-evaluation-harness's hendrycks_math also uses.
``minerva_spelling`` is the form of Lewkowycz et al. (2022), appendix D, as lm-evaluation-harness 0.4.13
implements it. These forms sometimes separate equal answers ("9 units" and "9" in MATH) and sometimes equate
different ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from envs.answers.notation import clean, sides
from envs.answers.structures import out_of_order
from envs.grading.limits import refusal
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
_INTEGER = re.compile(r"-?\d+(?:,\d{3})*(?:\.0*)?", re.ASCII)
_NO_FORMULA = re.compile(  # a list, a relation, a unit, a text or a matrix
    r"[%<>,;]|\\[{}()\[\]]|\\(?:text\w*|mbox|begin|in|cup|cap|pm|mp|infty|[lg]eq?|lt|gt|neq?|cfrac"
    r"|math(?:rm|bf)|operatorname)(?![A-Za-z])|^\[|\]$|(?<!\d)\.\d|\d\.(?!\d)|\\$|_\{?\d"
)
_MATH = (
    *(("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", "")),
    *(("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", "")),
)
_MATH_POINTS = (("\\%", ""), (" .", " 0."), ("{.", "{0."))
_MINERVA = (
    *(("an ", ""), ("a ", ""), (".$", "$"), ("\\$", ""), ("\\ ", ""), (" ", ""), ("mbox", "text")),
    *((",\\text{and}", ","), ("\\text{and}", ","), ("\\text{m}", "\\text{}")),
)
# The order is Minerva's: removing one word may create another. A "/" stands for a line break.
_UNITS = (
    "square ways integers dollars mph inches ft hours km units \\ldots sue points feet minutes digits cents "
    "degrees cm gm pounds meters meals edges students childrentickets multiples \\text{s} \\text{.} "
    '\\text{/s} \\text{}^2 \\text{}^3 \\text{/} \\text{} \\mathrm{th} ^\\circ ^{\\circ} \\; ,\\! {,} " \\dots'
)
_UNIT_WORDS = tuple(word.replace("/", "\n") for word in _UNITS.split())
_WHOLE_UNIT_WORD = re.compile(rf"(?<!\\)\b(?:{'|'.join(filter(str.isalpha, _UNIT_WORDS))})\b")
_MINERVA_RULES = (  # keep a line's first formula; drop commands and their braces; add missing braces
    (re.compile(r".*?\$(.*?)\$.*"), r"$\1$"),
    (re.compile(r"\\text\{(.*?)\}"), r"\1"),
    (re.compile(r"\\textbf\{(.*?)\}"), r"\1"),
    (re.compile(r"\\overline\{(.*?)\}"), r"\1"),
    (re.compile(r"\\boxed\{(.*)\}"), r"\1"),
    (re.compile(r"frac([^{])(.)"), r"frac{\1}{\2}"),
    (re.compile(r"(sqrt\[[^\]]*\])(\w)"), r"\1{\2}"),
    (re.compile(r"sqrt(?!\[)([^{])"), r"sqrt{\1}"),
)


def by_form(answer: str, gold: str, strictness: Strictness) -> tuple[bool, str] | None:
    """Return the verdict of a mode that requires one spelling, and its name; None if the values decide.

    Under "minerva", both texts must be in Minerva's normal form already.
    """
    if strictness == "literal":  # without commas, dollars, a final period, and text up to the last "#### "
        plain, truth = (
            text.strip().replace(",", "").replace("$", "").rpartition("#### ")[2].removesuffix(".").lower()
            for text in (answer, gold)
        )
        return plain == truth, "literal"
    if strictness == "hendrycks":
        return refusal(answer) is None and same_spelling(answer, gold), "spelling"
    if strictness == "minerva":
        if answer != gold and not _NO_FORMULA.search(answer) and not _NO_FORMULA.search(gold):
            return None
        return refusal(answer) is None and bool(answer) and answer == gold, "spelling"
    broken = strictness == "prm800k" and not refusal(answer) and breaks_form(answer, gold)
    return (False, "form") if broken else None


def breaks_form(answer: str, gold: str) -> bool:
    r"""Return whether an answer has a form that PRM800K's grader rejects.

    >>> breaks_form(r"\frac{2}{4}", r"\frac{1}{2}"), breaks_form("8/2", "4"), breaks_form("5.0", "5")
    (True, True, False)
    """
    plain, truth = sides(clean(answer))[-1], sides(clean(gold))[-1]
    if _FRACTION.fullmatch(truth) and _FRACTION.fullmatch(plain):
        return re.findall(r"\d+", plain) != re.findall(r"\d+", truth)
    if _INTEGER.fullmatch(truth):
        return not _INTEGER.fullmatch(plain.lstrip("$"))
    return out_of_order(clean(answer), clean(gold))


def same_spelling(answer: str, gold: str) -> bool:
    r"""Return whether two answers are equal in the MATH repository's normal form.

    If the form's rules fail on one answer, the texts are compared unchanged, as in that repository.

    >>> same_spelling(r"10\text{ units}", "10"), same_spelling("4, 10", "10, 4")
    (True, False)
    """
    try:
        return math_spelling(answer) == math_spelling(gold)
    except ValueError:
        return answer == gold


def math_spelling(text: str) -> str:
    r"""Return the MATH repository's normal form; raise ValueError if the form's rules fail.

    >>> [math_spelling(t) for t in (r"\dfrac12", "0.5", "1/2", r"10\text{ units}", "x = 5", "9 cm")]
    ['\\frac{1}{2}', '\\frac{1}{2}', '\\frac{1}{2}', '10', '5', '9cm']
    """
    text = _replaced(text, _MATH)
    text, *units = text.split("\\text{ ")
    if len(units) > 1:
        raise ValueError("two units")
    text = _replaced(text, _MATH_POINTS)
    text = f"0{text}" if text.startswith(".") else text
    name, equals, value = text.partition("=")
    text = value if equals and "=" not in value and len(name) <= 2 else text
    text = _full_fractions(_full_roots(text).replace(" ", ""))
    if text == "0.5":
        return r"\frac{1}{2}"
    above, slash, below = text.partition("/")
    if not slash or "/" in below:
        return text
    whole = f"{int(above)}/{int(below)}"  # raises, as in the MATH repository, if one is not an integer
    return rf"\frac{{{int(above)}}}{{{int(below)}}}" if text == whole else text


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for before, after in pairs:
        text = text.replace(before, after)
    return text


def _full_roots(text: str) -> str:
    first, *others = text.split("\\sqrt")
    if not all(others):
        raise ValueError("a root of nothing")
    return "\\sqrt".join(
        (first, *(part if part[0] == "{" else f"{{{part[0]}}}{part[1:]}" for part in others))
    )


def _full_fractions(text: str) -> str:
    first, *others = text.split("\\frac")
    full = [first]
    for part in others:
        if not part:
            raise ValueError("a fraction of nothing")
        if len(part) == 1 and part != "{":
            return text
        braced = part[0] == "{"
        below = "" if braced else part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}"
        full.append(part if braced else f"{{{part[0]}}}{below}")
    return "\\frac".join(full)


def minerva_spelling(text: str) -> str:
    r"""Return minerva_math's normal form: the first formula of a line, after the last "=", without units.

    >>> [minerva_spelling(t) for t in ("$x = 5$ ", r"\text{12 cm}", "1,200", "0,1", r"\frac12\pi", "a $4$")]
    ['5', '12', '1200', '0,1', '\\frac{1}{2}\\pi', '4']
    """
    text = _replaced(_WHOLE_UNIT_WORD.sub("", text.split("=")[-1]), _MINERVA)
    for word in _UNIT_WORDS:
        if word.isalpha():  # remove it inside other words too, but not inside names of commands
            parts = re.split(r"(\\[a-zA-Z]+)", text)
            text = "".join(part if k % 2 else part.replace(word, "") for k, part in enumerate(parts))
        else:
            text = text.replace(word, "")
    for pattern, plain in _MINERVA_RULES:
        text = pattern.sub(plain, text)
    text = text.replace("$", "")
    return text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+", text) else text
