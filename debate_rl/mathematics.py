r"""Find mathematics in texts and convert it to MathML that contains only listed elements.

Formulas are delimited by ``$``, ``$$``, ``\(`` and ``\)``, ``\[`` and ``\]``, or an environment such as
``align*``; a ``\boxed{}`` is a formula too. Dollars can also be money. As in pandoc, an opening ``$`` has no
blank after it, and a closing one has no blank before it and no digit after it. Unlike in pandoc, an opening
``$`` must not follow a letter or digit. A text that begins like an amount is not a formula if it ends with an
operator or contains a word, as in "$5 each so 3*5=$". Unreadable formulas stay as written. No part of a
formula becomes markup unchecked: elements and attributes come from lists, attribute values have a fixed form,
and texts are escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from html import escape, unescape
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from debate_rl.formatting import is_unseen

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LONGEST = 1000
"""Maximum characters of a formula. Time grows with the length, at worst quadratically."""
LONGEST_DRAWING = 10_000
DEEPEST = 40
"""Maximum nesting depth of elements."""
_OPENER = re.compile(r"\\begin\{(\w{1,20}\*?)\}|\\boxed(?=\{)|\\.|\$\$?|\[asy\]", re.DOTALL)
_DOLLAR = re.compile(rf"\$(?!\s)((?:[^$\\]|\\.){{1,{LONGEST}}})(?<!\s)\$(?![\d$])", re.DOTALL)
_AMOUNT = re.compile(r"[-+(]*[\d.<]")
_COMMANDS = re.compile(r"\\(?:text\w*|mbox|mathrm|operatorname\*?)\s*\{[^{}]*\}|\\[A-Za-z]+|\{[a-z]+\*?\}")
_WORD = re.compile(r"(?<!\S)(?:[A-Za-z][a-z]{2,}|as|at|by|he|in|is|it|of|on|or|so|to|we)(?![^\s,.:;])")
_ENVIRONMENTS = frozenset(
    f"{name}{star}"
    for name in ("align", "equation", "gather", "multline", "cases", "array")
    for star in ("", "*")
)
_NUMBERED = re.compile(r"\\(begin|end)\{(align|equation|gather|multline)(?:ed)?\}")
_DEFINES = re.compile(r"\\(?:def|let|edef|gdef|xdef|newcommand|renewcommand|providecommand|Declare|require)")
_BRACE = re.compile(r"\\.|([{}])", re.DOTALL)
_UNSHOWN = re.compile(r"\\begin\{array\}\s*\{[^}]*\}|\\(?:begin|end)\s*\{\w+\*?\}|\\[A-Za-z]+")
_APART = re.compile(r"(?<![_^\d])\d+\s+\d|[A-Za-z]{2,}\s+[A-Za-z]{2,}")
"""Two numbers, or two words, with a space between them that LaTeX would not draw."""
_COMMENT = re.compile(r"(?<!\\)%")


def _braces(levels: int) -> str:
    """Return a pattern for braces with this many levels of nested braces."""
    inner = "|" + _braces(levels - 1) if levels else ""
    return rf"\{{(?:[^{{}}\\]|\\.{inner})*+\}}"


_BRACES = re.compile(_braces(5), re.DOTALL)


class Formula(NamedTuple):
    """Characters ``start`` to ``end`` of a text, and their LaTeX.

    ``block``: whether it is displayed on its own line.
    """

    start: int
    end: int
    tex: str
    block: bool


def formulas(text: str) -> Iterator[Formula]:
    r"""Yield the formulas of a text in order. None contains another.

    >>> [found.tex for found in formulas(r"If $x<5$, \(y\) costs $5 and $7: \[z\] \boxed{a_{1}} $$1$$")]
    ['x<5', 'y', 'z', '\\boxed{a_{1}}', '1']
    >>> list(formulas("He pays 3*$5=$<<3*5=15>>15, or $7 each so 5*7=$35. Cost: 5$, 7$."))
    []
    """
    at = 0
    while opener := _OPENER.search(text, at):
        found = _formula(text, opener)
        if found is not None:
            yield found
        at = opener.end() if found is None else found.end
        if opener[0] == "[asy]":  # a drawing, whose dollars open nothing
            at = max(at, text.find("[/asy]", at, at + LONGEST_DRAWING))


def _formula(text: str, opener: re.Match[str]) -> Formula | None:
    """Return the formula that begins with this opening delimiter, or None."""
    start, after = opener.span()
    match opener[0]:
        case "$":
            return _between_dollars(text, start)
        case "$$":
            return _until("$$", text, start, after, block=True)
        case r"\(":
            return _until(r"\)", text, start, after, block=False)
        case r"\[":
            return _until(r"\]", text, start, after, block=True)
        case r"\boxed":
            braces = _BRACES.match(text, after, after + LONGEST)
            return Formula(start, braces.end(), text[start : braces.end()], block=False) if braces else None
        case _:
            return _environment(text, start, opener[1]) if opener[1] in _ENVIRONMENTS else None


def _between_dollars(text: str, start: int) -> Formula | None:
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None
    found = _DOLLAR.match(text, start)
    if found is None or _is_money(found[1]):
        return None
    return Formula(start, found.end(), found[1], block=False)


def _is_money(inside: str) -> bool:
    """Return whether the text between two dollars is an amount with words after it.

    >>> [_is_money(inside) for inside in ("5 each so 3*5=", "5", "1 - x = 2", "2 to Ann, who gave 3", "x=")]
    [True, False, False, True, False]
    """
    if not _AMOUNT.match(inside):
        return False
    if "<<" in inside or inside[-1] in "=+-*/<>(":
        return True
    return _WORD.search(_COMMANDS.sub(" ", inside)) is not None


def _until(closer: str, text: str, start: int, after: int, *, block: bool) -> Formula | None:
    end = text.find(closer, after, after + LONGEST)
    tex = text[after:end]
    return None if end < 0 or not tex.strip() else Formula(start, end + len(closer), tex, block)


def _environment(text: str, start: int, name: str) -> Formula | None:
    closer = rf"\end{{{name}}}"
    end = text.find(closer, start, start + LONGEST)
    if end < 0:
        return None
    tex = text[start : end + len(closer)]
    return Formula(start, end + len(closer), tex, block=True)


def with_mathematics(text: str, write: Callable[[str], str], most: int | None = None) -> str:
    """Return a text as markup with formulas as MathML. ``write`` must escape all other text.

    ``most``: maximum characters of MathML (None: no limit); later formulas stay as written. A formula's title
    is its source.

    >>> with_mathematics("so <b> $x$", escape)
    'so &lt;b&gt; <math title="$x$" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    parts: list[str] = []
    at, used = 0, 0
    for found in formulas(text):
        if most is not None and used >= most:
            break
        made = mathml(found.tex, block=found.block)
        used += len(found.tex if made is None else made)
        if made is not None:
            title = escape(text[found.start : found.end])
            parts += [write(text[at : found.start]), made.replace("<math", f'<math title="{title}"', 1)]
            at = found.end
    return "".join([*parts, write(text[at:])])


@lru_cache(maxsize=1024)
def mathml(tex: str, *, block: bool = False) -> str | None:
    """Return LaTeX as one MathML element, or None if it is too long or cannot be read completely.

    Also None without the package latex2mathml.

    >>> mathml("x<5")
    '<math display="inline"><mrow><mi>x</mi><mo>&lt;</mo><mn>5</mn></mrow></math>'
    """
    if not _installed() or len(tex) > LONGEST or any(map(is_unseen, tex)):
        return None
    braces = _BRACE.findall(tex)
    if _DEFINES.search(tex) or _COMMENT.search(tex) or braces.count("{") != braces.count("}"):
        return None
    if _APART.search(_COMMANDS.sub(".", tex)):
        return None
    from latex2mathml.converter import Converter

    display = "block" if block else "inline"
    try:
        element = Converter(display=display).convert_to_element(_NUMBERED.sub(r"\\\1{\2*}", tex))
        if _differs(tex, unescape("".join(element.itertext()))):
            return None
        inside = "".join(_markup(child, 1) for child in element)
    except Exception:  # the library raises anything for what it cannot read
        return None
    return f'<math display="{display}">{inside}</math>'


def _differs(tex: str, shown: str) -> bool:
    """Return whether a letter or digit of the LaTeX is not shown, or a shown digit is not in the LaTeX."""
    written, drawn = _signs(_UNSHOWN.sub(" ", tex)), _signs(shown)
    return bool(written - drawn) or any(sign.isdigit() for sign in drawn - written)


def _signs(text: str) -> Counter[str]:
    """Return how often each letter and digit occurs in a text, in any style."""
    plain = unicodedata.normalize("NFKC", text)
    return Counter(sign for sign in plain if sign.isascii() and sign.isalnum())


@cache
def _installed() -> bool:
    return find_spec("latex2mathml") is not None


# fmt: off
_ELEMENTS = frozenset((
    "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "msup", "msubsup", "mfrac", "msqrt", "mroot",
    "mover", "munder", "munderover", "mtable", "mtr", "mtd", "mstyle",
))
_WORDS = frozenset((
    "accent", "accentunder", "columnalign", "columnlines", "displaystyle", "fence", "form", "largeop",
    "mathvariant", "movablelimits", "rowlines", "separator", "stretchy", "symmetric",
))
_SIZES = frozenset((
    "columnspacing", "linethickness", "lspace", "maxsize", "minsize", "rowspacing", "rspace", "scriptlevel",
    "width",
))
# fmt: on
_WORDS_FORM = re.compile(r"[a-z -]{1,80}")
_SIZE = r"(?:-0|\d)(?:\.\d{1,4})?(?:em|ex|pt|px|mu)?"
_SIZES_FORM = re.compile(f"{_SIZE}(?: {_SIZE}){{0,40}}")
"""Sizes below ten units, so that nothing overlaps the text before it."""
_WITHOUT = ("", "negativethinmathspace", "negativemediummathspace", "negativethickmathspace")
"""Attribute values that browsers do not know. Attributes with them are left out."""
_INVISIBLE = str.maketrans("", "", "\u2061\u2062\u2063\u2064")
"""Operators that are invisible."""


def _markup(element: Element, depth: int) -> str:
    """Return an element as markup. ValueError if something in it is not in the lists or was not parsed."""
    name, attributes = element.tag, dict(element.attrib)
    if name == "menclose" and attributes == {"notation": "box"}:
        name, attributes = "mrow", {}
        return f'<mrow class="boxed">{_inside(element, depth)}</mrow>'
    if name not in _ELEMENTS or depth > DEEPEST:
        raise ValueError(f"element {name} at depth {depth}")
    kept = {key: value for key, value in attributes.items() if value not in _WITHOUT}
    written = "".join(f' {key}="{_checked(key, value)}"' for key, value in kept.items())
    return f"<{name}{written}>{_inside(element, depth)}</{name}>"


def _inside(element: Element, depth: int) -> str:
    text = unescape(element.text or "").translate(_INVISIBLE)
    if (text.startswith("\\") and len(text) > 1) or any(map(is_unseen, text)):
        raise ValueError(f"cannot be read: {text!r}")
    return escape(text) + "".join(_markup(child, depth + 1) for child in element)


def _checked(key: str, value: str) -> str:
    """Return the value of an attribute. ValueError for an unknown attribute, or a value of another form."""
    forms = _WORDS_FORM if key in _WORDS else _SIZES_FORM if key in _SIZES else None
    if forms is None or not forms.fullmatch(value):
        raise ValueError(f"attribute {key}={value!r}")
    return value
