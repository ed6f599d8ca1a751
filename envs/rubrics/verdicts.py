"""Read what a verifier model states. Whatever it writes: no exception, linear time.

A verdict is the one line ``Verdict CODE: VALUE`` behind its thinking, with the code of its prompt. No such
line, several of them, or a value that cannot be, is no verdict: never a low score.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from debate.parsing.sections import find_sections

MARKS = " \t*_`"
"""What Markdown puts around a line."""
LONGEST = 200
"""Characters of a line that can be a verdict."""
_WORD = re.compile(r"[A-Za-z0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")


class Stated(NamedTuple):
    """The value of a verdict as it is written; None with the fault where there is none."""

    value: str | None
    fault: str = ""


class Verdict(NamedTuple):
    """A score in [0, 1]; None with the fault where there is none."""

    score: float | None
    fault: str = ""


def stated(text: str, code: str, *, truncated: bool = False, in_thinking: bool = False) -> Stated:
    r"""Return what the one verdict line of a completion states.

    ``truncated``: the completion ended at its token limit. ``in_thinking``: its prompt opened a think block.

    >>> stated("It scans.\n**Verdict K7Q2MX: 0.75**", "K7Q2MX")
    Stated(value='0.75', fault='')
    >>> stated("The reply says: Verdict: 1", "K7Q2MX").fault
    'no_verdict'
    """
    sections = find_sections(text, in_thinking=in_thinking)
    start = sections.thinking.end if sections.thinking else 0
    lines = text[start:].splitlines() if sections.thinking_closed else []
    values = [value for line in lines if (value := _value(line, code)) is not None]
    if len(values) == 1:
        return Stated(values[0])
    if values:
        return Stated(None, "several")
    return Stated(None, "truncated" if truncated else "no_verdict")


def _value(line: str, code: str) -> str | None:
    """Return what stands behind the colon of a verdict line; None for another line."""
    if len(line) > LONGEST:
        return None
    head, colon, value = line.strip(MARKS + "#").partition(":")
    if not colon or _WORD.findall(head.upper()) != ["VERDICT", code] or not head[:1].isalpha():
        return None
    return value.strip(MARKS)


def score_of(value: Stated) -> Verdict:
    """Return the score that was stated.

    >>> [score_of(Stated(text)) for text in ("0.8", "1.", "8/10")]
    [Verdict(score=0.8, fault=''), Verdict(score=1.0, fault=''), Verdict(score=None, fault='out_of_range')]
    >>> score_of(Stated("10")), score_of(Stated(None, "several"))
    (Verdict(score=None, fault='out_of_range'), Verdict(score=None, fault='several'))
    """
    if value.value is None:
        return Verdict(None, value.fault)
    score = float(value.value) if _NUMBER.fullmatch(value.value) else -1.0
    return Verdict(abs(score)) if 0 <= score <= 1 else Verdict(None, "out_of_range")


def label_of(value: Stated, labels: Collection[str]) -> Stated:
    """Return the label that was stated, as it is spelled in ``labels``.

    >>> label_of(Stated("Arithmetic."), ("misread", "arithmetic"))
    Stated(value='arithmetic', fault='')
    """
    if value.value is None:
        return value
    plain = value.value.rstrip(".").casefold()
    known = next((label for label in labels if label.casefold() == plain), None)
    return Stated(known, "" if known is not None else "out_of_range")
