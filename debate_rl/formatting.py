"""Format numbers and untrusted texts for every table, page, report and message.

An untrusted text comes from a model, a file or a user. It may contain terminal control sequences, characters
that reorder others, and invisible ones. ``is_unseen`` finds all of them, for every output.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import groupby
from math import isfinite

from rich.cells import cell_len, set_cell_size

GRADE_SIGNS = {"right": "✓", "wrong": "✗", "missing": "∅", "ungraded": "?", "undecidable": "?"}
"""The sign of each grade of an answer or a vote on every screen."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that Unicode calls printable but that show nothing."""
_MAYBE = re.compile(r"[^\n\t\x20-\x7e]+")
_CODES = 3
"""How many characters of a long run of unseen characters are shown by their codes."""


def fixed(value: float | None, form: str = ".3f", *, none: str = "–") -> str:
    """Format a number with ``format``, without a minus if it rounds to zero.

    >>> fixed(0.25), fixed(None), fixed(-1e-9, "+.2f")
    ('0.250', '–', '+0.00')
    """
    if value is None:
        return none
    text = format(value, form)
    return format(0.0, form) if text.startswith("-") and float(text) == 0 else text


def number(value: float | None, *, signed: bool = False, none: str = "–") -> str:
    """Format a number with three decimals; from 1000 on, with no decimals. Zero has no sign.

    >>> number(0.71234), number(0.05, signed=True), number(1234.5), number(-0.0001, signed=True), number(None)
    ('0.712', '+0.050', '1,234', '0.000', '–')
    """
    if value is None:
        return none
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
    if text.strip("-0.") == "":
        return text.lstrip("-")
    return f"+{text}" if signed and value > 0 else text


def short(value: float | None, digits: int = 3, *, none: str = "-") -> str:
    """Format a number in few characters: integers without a point, tiny numbers in scientific notation.

    >>> short(0.12345), short(0.5), short(1234567.0), short(2e-5), short(None), short(0.0), short(3.0)
    ('0.123', '0.500', '1,234,567', '2e-05', '-', '0', '3')
    """
    if value is None or not isfinite(value):
        return none
    if abs(value) >= 1e15 or 0 < abs(value) < 10**-digits:
        return f"{value:.{digits}g}"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}"


def figure(value: float | None) -> str:
    """Format a number with four significant digits; "none" for None and for a number that is not finite.

    >>> figure(0.123456), figure(3.0), figure(None)
    ('0.1235', '3', 'none')
    """
    return "none" if value is None or not isfinite(value) else f"{value:.4g}"


def json_number(value: object) -> object:
    """Return None for a float that is NaN or infinite, and any other value unchanged.

    >>> json_number(float("nan")), json_number(0.5), json_number("inf")
    (None, 0.5, 'inf')
    """
    return None if isinstance(value, float) and not isfinite(value) else value


def share(value: float | None) -> str:
    """Format a fraction with two decimals and without a leading zero.

    >>> share(0.667), share(1), share(None)
    ('.67', '1.00', '–')
    """
    return "–" if value is None else f"{value:.2f}".removeprefix("0")


def signed_share(value: float) -> str:
    """Format a difference of fractions with its sign, two decimals and no leading zero.

    >>> signed_share(0.314), signed_share(-0.05), signed_share(-0.001), signed_share(1.0)
    ('+.31', '-.05', '+.00', '+1.00')
    """
    text = fixed(value, "+.2f")
    return text[0] + text[1:].removeprefix("0")


def percent(value: float, digits: int = 1) -> str:
    """Format a fraction in percent.

    >>> percent(0.7123), percent(0.7123, 0)
    ('71.2%', '71%')
    """
    return f"{value:.{digits}%}"


def interval(
    low: float | None, high: float | None, write: Callable[[float], str] = number, *, none: str = ""
) -> str:
    """Format the bounds of an interval, "none" if a bound is unknown or infinite.

    >>> interval(0.25, 0.75), interval(-1.0, 11.0, "{:+.1f}".format), interval(0.0, float("inf"), none="none")
    ('0.250 to 0.750', '-1.0 to +11.0', 'none')
    """
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return none
    return f"{write(low)} to {write(high)}"


def counted(count: int, thing: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "vote"), counted(1234, "row")
    ('1 vote', '1,234 rows')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def round_number(round_: int, rounds: int | None) -> str:
    """Format a round for a column. The round after all ``rounds`` is the final ballot.

    >>> round_number(1, 2), round_number(2, 2), round_number(2, None)
    ('1', 'final ballot', '2')
    """
    return "final ballot" if rounds is not None and round_ >= rounds else str(round_)


def round_name(round_: int, rounds: int | None) -> str:
    """Return the name of a round.

    >>> round_name(1, 2), round_name(2, 2)
    ('round 1', 'final ballot')
    """
    number = round_number(round_, rounds)
    return f"round {number}" if number.isdigit() else number


def title(name: str) -> str:
    """Return a figure's name in readable words; docs/metrics.md lists the names.

    >>> title("eval/debate/accuracy/round_0"), title("reward/peer/std"), title("winner_minus_direct")
    ('debate accuracy, round 0', 'peer reward std', 'winner minus direct')
    >>> title("eval/direct/accuracy [gsm8k_strict]")
    'direct accuracy [gsm8k_strict]'
    """
    figure, bracket, mode = name.removeprefix("eval/").partition(" [")
    text = re.sub(r"/round_(\d+)", r", round \1", figure).replace("/source/", ", source ")
    text = re.sub(r"\breward/(\w+)", r"\1 reward", text).replace("self_consistency", "self-consistency")
    return printable(re.sub("[/_]", " ", text.replace("valid_xml", "valid XML")) + bracket + mode)


def is_unseen(character: str) -> bool:
    r"""Return whether a character is invisible or changes how others appear; blanks count as visible.

    Variation selectors can hide a text, one byte each, so all are unseen except U+FE0E and U+FE0F, which
    emoji use.

    >>> [is_unseen(c) for c in ("a", "\n", "\u3000", "\x1b", "\u202e", "\u200b", "\ud800", "\ufe01")]
    [False, False, False, True, True, True, True, True]
    """
    if character in "\n\t":
        return False
    if not character.isprintable():
        return unicodedata.category(character) != "Zs"
    selector = "\ufe00" <= character <= "\ufe0d" or "\U000e0100" <= character <= "\U000e01ef"
    return selector or character in _BLANK_LETTERS


class _Signs(dict[int, str]):
    """The replacement of each character in one line, computed at its first occurrence."""

    def __init__(self, blanks: str, unseen: Callable[[str], str]) -> None:
        super().__init__(dict.fromkeys(map(ord, blanks), " "))
        self._unseen = unseen

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.category(character) == "Zs":
            sign = " "
        else:
            sign = self._unseen(character) if character == "\n" or is_unseen(character) else character
        return self.setdefault(code, sign)


_MARKED = _Signs("\t\n\r", lambda character: "�")
_WRITTEN = _Signs("\t", lambda character: f"<U+{ord(character):04X}>")


def printable(text: str) -> str:
    r"""Return an untrusted name or message as one line, with a sign for each unseen character.

    >>> printable("a\nb\x1b[2J\u202e")
    'a b�[2J�'
    """
    return text if text.isascii() and text.isprintable() else text.translate(_MARKED)


def safe(text: str) -> str:
    r"""Return an untrusted text as one printable line. Unseen characters become codes that contain no LaTeX.

    >>> safe("a\x1b[2J\u202eb\r\n\tc")
    'a<U+001B>[2J<U+202E>b<U+000D><U+000A> c'
    """
    return text if text.isascii() and text.isprintable() else text.translate(_WRITTEN)


def safe_lines(text: str) -> list[str]:
    r"""Return the lines of an untrusted text, each ``safe``.

    Only a line feed ends a line; a tab becomes four blanks.

    >>> safe_lines("a\n\tb\r\n\x9b1m")
    ['a', '    b<U+000D>', '<U+009B>1m']
    """
    return [safe(line) for line in text.replace("\t", "    ").split("\n")]


def one_line(text: str, most: int = 400) -> str:
    r"""Return the beginning of an untrusted text as one ``safe`` line, with blanks for line feeds.

    >>> one_line("a\n b\x1b"), one_line("abcdef", 4)
    ('a b<U+001B>', 'abc…')
    """
    return shorten(safe(text[: 2 * most].replace("\n", " ")), most)


def safe_json(line: str) -> str:
    r"""Return a line of JSON with unseen characters escaped. It parses to the same value.

    >>> safe_json('{"text": "é\x9b1m\u202e"}')
    '{"text": "é\\u009b1m\\u202e"}'
    """
    if line.isascii() and line.isprintable():
        return line
    return "".join(_escaped(one) if is_unseen(one) else one for one in line)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


def shorten(text: str, most: int) -> str:
    r"""Return the beginning of a text in one line, with an ellipsis if cut.

    >>> shorten("a  b\nc", 9), shorten("abcdef", 4)
    ('a b c', 'abc…')
    """
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def padded(text: str, width: int, *, left: bool = True, dots: str = "…") -> str:
    """Return a text in exactly this many terminal cells: cut with dots, or padded with blanks.

    >>> padded("abcdef", 4), padded("ab", 4, left=False), padded("日本語", 5, dots="..")
    ('abc…', '  ab', '日 ..')
    """
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - len(dots))) + dots[:width]
    blanks = " " * (width - size)
    return text + blanks if left else blanks + text


def with_codes(text: str, form: str) -> str:
    r"""Return a text with each run of unseen characters replaced by its codes. Line breaks stay.

    >>> with_codes("a\x1b[2Jb\u202e", "⟨{}⟩"), with_codes("\x00" * 9, "{}")
    ('a⟨U+001B⟩[2Jb⟨U+202E⟩', 'U+0000 U+0000 U+0000 … 9 characters')
    """

    def of(match: re.Match[str]) -> str:
        runs = ((unseen, "".join(run)) for unseen, run in groupby(match[0], is_unseen))
        return "".join(form.format(_codes(run)) if unseen else run for unseen, run in runs)

    return _MAYBE.sub(of, text)


def _codes(run: str) -> str:
    named = " ".join(f"U+{ord(character):04X}" for character in run[:_CODES])
    return named if len(run) <= _CODES else f"{named} … {counted(len(run), 'character')}"


def duration(seconds: float) -> str:
    """Format a time with two significant digits, in seconds, minutes or hours.

    >>> duration(2.34), duration(210.0), duration(600.0), duration(360_000.0), duration(2e-5)
    ('2.3 s', '3.5 min', '10 min', '100 h', '0.01 s')
    """
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length:
            count = seconds / length
            return f"{count:,.0f} {unit}" if count >= 99.5 else f"{count:.2g} {unit}"
    return f"{max(seconds, 0.01):.2g} s"
