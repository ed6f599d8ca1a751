r"""Grammar of the lines of a comparison. Repeats are bounded or possessive, so matching takes linear time.

Lines are matched after ``clean``: spelled-out operators (``&gt;``, ``\succ``) become characters, and
invisible characters are removed. Case folding works character by character, and never turns a letter into one
of another alphabet (the Kelvin sign is not a k). So only the exact letters of a handle can name it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from debate.types import Outcome

_SPELLED = re.compile(
    r"&(?:amp;){0,2}(gt|lt|amp|nbsp|approx|asymp|equals|quot|#0?39|#6[012]|#x3[cde]);"
    r"|\\(succ|prec|gt|lt|approx|sim|equiv)(?![A-Za-z])"
    r"|\\([<>=~*_`|#\[\]()])",
    re.IGNORECASE | re.ASCII,
)
_CHARACTERS = {
    **{"gt": ">", "#62": ">", "#x3e": ">", "succ": ">", "lt": "<", "#60": "<", "#x3c": "<", "prec": "<"},
    **{"equals": "=", "#61": "=", "#x3d": "=", "equiv": "=", "approx": "≈", "asymp": "≈", "sim": "~"},
    **{"amp": "&", "nbsp": " ", "quot": '"', "#39": "'", "#039": "'"},
}
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
_FOLD_CACHE = 4096


class _Folding(dict[int, str | None]):
    """Maps a code point to its folded character, or None if invisible. It is filled on demand."""

    def __missing__(self, code: int) -> str | None:
        folded = _fold(chr(code))
        if len(self) < _FOLD_CACHE:
            self[code] = folded
        return folded


def _fold(character: str) -> str | None:
    if ord(character) in _UNSEEN or unicodedata.category(character) == "Cf":
        return None
    lower = character.lower()
    return lower if len(lower) == 1 and lower.upper() == character else character


_FOLDING = _Folding()


def clean(text: str) -> str:
    r"""Return the text normalised for the grammar. Line breaks are kept.

    >>> clean("**K\u200b7** &gt; q2"), clean("\u212a7") == "k7"  # the Kelvin sign is not a k
    ('**k7** > q2', False)
    """
    return _SPELLED.sub(_character, text).translate(_FOLDING)


def _character(match: re.Match[str]) -> str:
    spelled = match[match.lastindex or 0]
    return _CHARACTERS.get(spelled.lower(), spelled)


# Characters that may surround a handle: blanks, emphasis, quotes, brackets, table bars.
_D = r"[\s*_`\"'“”‘’«»()\[\]{}$#@|]"
_BULLET = r"[\s*_`\"'“”‘’«»()\[\]{}$#@|>•·‣◦▪►●○–—+-]*+"
_MARK = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_TITLE = (
    r"(?:the|agent|solution|answer|response|approach|handle|label|model|candidate|debater|solver|work|proof|"
    rf"text|textbf|mathbf|that|of|by|from)(?![^\W_]){_D}++"
)
_AFTER = (
    r"(?:['’]s?(?![^\W_]))?"
    rf"(?:\s++(?:solution|answer|response|approach|work|proof|reasoning)(?![^\W_]))?{_D}*+"
)
_VERY = (
    r"(?:(?:slightly|somewhat|marginally|clearly|much|far|significantly|strictly|definitely|also|still|both|all|"
    r"roughly|about|essentially|basically|exactly)\s++){0,2}"
)

LEAD = re.compile(
    r"(?:\(?\d{1,3}[.):]|[a-z][.)]"
    r"|(?:(?:a|i|in|my|the|final|overall|pairwise|comparisons?|rank|rankings?|order|result|verdict|vote|ballot|pair|"
    r"conclusion|therefore|thus|so|hence|think|believe|say|judge|view|opinion|that)(?![^\W_])\s*+){1,5}"
    rf"(?:\d{{1,3}}\s*+)?[:,.-]?){_BULLET}"
)
"""What may precede a comparison in addition to bullets: a number, a letter, or a few lead-in words."""
BULLET = re.compile(_BULLET)
SYMBOL = re.compile(rf"{_D}*+([<>=~≈≃≅≡∼≻≺≽≼≫≪≥≤≧≦⩾⩽＞＜＝≠!]++)")
SYMBOLS: dict[str, Outcome] = {
    **dict.fromkeys((">", ">>", ">>>", "≫", "≻", "＞"), "left"),
    **dict.fromkeys(("<", "<<", "<<<", "≪", "≺", "＜"), "right"),
    **dict.fromkeys(("=", "==", "===", "＝", "≈", "≃", "≅", "≡", "~", "~~", "∼", "~=", "≈≈"), "tie"),
}
"""Operators. ``>=`` and similar ones do not say whether one side is better, so they are malformed."""
PHRASE = re.compile(
    rf"{_D}*+(?:(?:is|was|seems|looks|ranks)\s++)?{_VERY}(?:"
    r"(?P<left>(?:better|stronger|superior|preferable|preferred|more\s++(?:correct|accurate|convincing|rigorous))\s++"
    r"(?:than|to|over)|beats|defeats|outperforms|surpasses|wins\s++(?:over|against))"
    r"|(?P<right>(?:worse|weaker|inferior|less\s++(?:correct|accurate|convincing|rigorous))\s++(?:than|to)"
    r"|loses\s++(?:to|against))"
    r"|(?P<tie>tied\s++(?:with|to)|ties\s++with|(?:equal|equivalent)\s++(?:to|with)|equals|as\s++good\s++as"
    r"|on\s++par\s++with))(?![^\W_])"
)
TIE_BEFORE = re.compile(
    rf"(?:it(?:['’]s|\s++is)\s++)?(?:an?\s++)?(?:tie|draw|tied|equal)(?:\s*+:|\s++(?:between|for|of)(?![^\W_])){_D}*+"
)
TIE_AFTER = re.compile(
    rf"\s*+[:–—-]?\s*+(?:(?:are|is|were|seem)\s++)?{_VERY}(?:an?\s++)?"
    r"(?:tied?|draw|equal(?:ly\s++[a-z]++)?|equivalent|on\s++par)(?![^\W_])(?![\s,;]*+(?:but|however|though|yet|except))"
)
JOIN = re.compile(rf"{_D}*+(?:,\s*+and(?![^\W_])|[,&/]|(?:and|vs\.?|versus|with)(?![^\W_])){_D}*+")
NEXT = re.compile(r"[\s)\]]*+(?:[;,](?:\s*+and\s)?|and\s)")
REST = re.compile(rf"(?:{_D}|[.;,!])*+\Z")
UNSURE = re.compile(rf"{_D}*+(?:[?？]|,?\s*+or(?![^\W_]))")
_WORD = re.compile(r"[^\W_]")
_SIGN = re.compile(r"[<>=~≈≃≅≡∼≻≺≽≼≫≪≥≤≧≦⩾⩽＞＜＝≠]")
_SPACE = re.compile(r"\s++")
_TITLES = 4
_OPENING = re.compile(rf"{_D}*+")
_ONE_TITLE = re.compile(_TITLE)
_CLOSING = re.compile(_AFTER)
_STRANGER = re.compile(rf"{_D}*+(?:{_TITLE}){{0,{_TITLES}}}[^\W_][\w-]*+{_AFTER}")
# A handle is complete only if no letter, digit, combining mark or hyphenated part follows.
_GOES_ON = re.compile(rf"[^\W_]|[-_][^\W_]|\.\d|{_MARK}")


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison: a handle as the debate spells it, or None for another word.

    ``end`` is the index after the operand.
    """

    handle: str | None
    end: int


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar for one set of handles: only these, as whole tokens, can be compared.

    ``names`` maps normalised spellings to handles, longest first. All debates share the patterns. Handles are
    looked up separately at each possible position, in time proportional to their length.
    """

    names: dict[str, str]

    def resolve(self, label: str) -> str | None:
        """Return the handle that a label refers to, or None. The label is the program's, not a reply's."""
        return self.names.get(_key(label))

    def operand(self, line: str, at: int) -> Operand | None:
        """Return the handle at this position, or else the word, with any surrounding characters."""
        if known := self.known(line, at):
            return known
        other = _STRANGER.match(line, at)
        return Operand(None, other.end()) if other else None

    def known(self, line: str, at: int) -> Operand | None:
        """Return the handle at this position, after as few titles ("the solution of") as possible."""
        start = _OPENING.match(line, at)
        for _ in range(_TITLES + 1):
            if start is None:
                return None
            for name, handle in self.names.items():
                if end := _end_of(name, line, start.end()):
                    closing = _CLOSING.match(line, end)
                    return Operand(handle, closing.end() if closing else end)
            start = _ONE_TITLE.match(line, start.end())
        return None

    def is_attempt(self, line: str) -> bool:
        """Return whether a line was meant as a comparison: it has a handle, or an operator between words."""
        if any(_mentions(line, name) for name in self.names):
            return True
        word = _WORD.search(line)
        sign = word and _SIGN.search(line, word.end())
        return bool(sign and _WORD.search(line, sign.end()))


def grammar(handles: tuple[str, ...]) -> Grammar:
    """Return the grammar in which exactly these handles can be compared.

    >>> grammar(("Agent 1", "Agent 10")).operand("the solution of agent 10 > ", 0)
    Operand(handle='Agent 10', end=25)
    """
    names = {_key(handle): handle for handle in reversed(handles)}
    names.pop("", None)
    return Grammar({name: names[name] for name in sorted(names, key=len, reverse=True)})


def _end_of(name: str, line: str, at: int) -> int | None:
    """Return the index after the name if the complete name is at index ``at``, or None.

    Its words may be separated by any whitespace.
    """
    for number, word in enumerate(name.split(" ")):
        if number:
            blanks = _SPACE.match(line, at)
            at = blanks.end() if blanks else len(line)
        if not line.startswith(word, at):
            return None
        at += len(word)
    return None if _GOES_ON.match(line, at) else at


def _mentions(line: str, name: str) -> bool:
    """Return whether the whole name occurs anywhere in the line."""
    first = name.split(" ")[0]
    at = line.find(first)
    while at >= 0:
        if not (at and _WORD.match(line, at - 1)) and _end_of(name, line, at):
            return True
        at = line.find(first, at + 1)
    return False


_EDGES = re.compile(rf"\A{_D}*+|{_D}++\Z")


def _key(handle: str) -> str:
    return " ".join(_EDGES.sub("", clean(handle)).split())
