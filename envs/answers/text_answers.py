r"""Text answers: an exact match with one of the accepted texts, in a normal form or to the letter."""

from __future__ import annotations

import re
from string import punctuation

_SIGNS = "+-<>=/#%^~!*.,:"
"""Marks that make another answer of a text, or only stand beside one: what stands around them tells."""

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
"""Signs that could be taken for punctuation, as characters that cannot."""
_ARTICLE = re.compile(r"(?<![+<>=/^\u2212] )\b(?:a|an|the)\b(?! [+<>=/^\u2212])")


def normal_text(text: str) -> str:
    r"""Return the normal form of SQuAD's exact match [Rajpurkar et al. 2016, arXiv 1606.05250], signs kept.

    Lower case, without ASCII punctuation, without the articles a, an and the, single blanks; before that a
    LaTeX command for a font is left out, as boxes often hold ``\text{...}``. No other command is: ``\neg{p}``
    is not p. Signs stay, as do points and colons between digits: SQuAD's form makes -3.5 and 35 one.

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
    r"""Return whether the answer is one of the accepted texts, of which the gold answer has one on each line.

    ``verbatim`` compares every character, blanks at the ends apart; else normal forms are compared.

    >>> same_text("the USA", "United States\nUSA"), same_text("usa", "USA", verbatim=True)
    (True, False)
    """
    form = str.strip if verbatim else normal_text
    return form(answer) in [form(accepted) for accepted in gold.split("\n")]
