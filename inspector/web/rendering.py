"""The templates, and how they write numbers and words. Text is escaped, its unseen characters named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from inspector.web.addresses import address
from inspector.web.visible import head, plain, seen
from transcripts import DebateRow

HERE = Path(__file__).parent
ROUNDING = 1e-12
"""What is smaller is shown as 0."""
MARKS = {"right": "✓", "wrong": "✗", "missing": "∅", "ungraded": "?", "undecidable": "?", "none": "–", "": ""}
"""A sign for each grade: colour is never the only one."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The beginning of a text as markup, and how many characters were left out."""

    text: Markup
    left: int


def clip(text: str, limit: int | None) -> Clip:
    """Return a text, or its beginning where it is longer than ``limit``."""
    kept = text if limit is None else head(text, limit)
    return Clip(seen(kept), len(text) - len(kept))


@cache
def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": lambda value: f"{value:,}",
        "flags": flags,
        "mean": mean,
        "mark": lambda word: MARKS.get(word, ""),
        "number": number,
        "seen": seen,
        "share": share,
        "shorten": shorten,
        "signed": signed,
        "letter": letter,
        "turn_id": lambda turn: f"{turn.agent}.{turn.round}",
    }
    made.globals |= {"address": address, "asset": asset, "clip": clip}
    return made


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


def _shown(value: object) -> object:
    """Return what a template writes of a value: of a text that is no markup yet, nothing stays hidden."""
    if value is None:
        return ""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def asset(name: str) -> str:
    """Return the address of one of our files, which changes with what is in it."""
    mark = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:10]
    return address("static", name, v=mark)


def share(value: float | None) -> str:
    """Return a share or a mean in [0, 1].

    >>> share(1.0), share(2 / 3), share(0.0), share(None)
    ('1.00', '.67', '.00', '–')
    """
    return "–" if value is None else f"{value:.2f}".removeprefix("0")


def mean(value: float | None) -> str:
    """Return a mean reward, in as many digits as those above and below it.

    >>> mean(0.33), mean(-0.0026), mean(1e-17), mean(None)
    ('+0.330', '−0.003', '0.000', '–')
    """
    if value is None:
        return "–"
    text = f"{value:+.3f}"
    return "0.000" if text[1:] == "0.000" else text.replace("-", "−")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number in a few digits.

    >>> number(1234.5), number(0.33333), number(-2.0), number(1e-17), number(None)
    ('1,234', '0.333', '−2', '0', '–')
    """
    if value is None:
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    return _figure(value, digits).replace("-", "−")


def _figure(value: float, digits: int) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def letter(number: int) -> str:
    """Return the letter of an answer.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'A2')
    """
    return chr(ord("A") + number % 26) + (str(1 + number // 26) if number >= 26 else "")


def signed(value: float | None) -> str:
    """Return a number with its sign.

    >>> signed(0.5), signed(-0.25), signed(0.0), signed(None)
    ('+0.5', '−0.25', '0', '–')
    """
    text = number(value)
    return f"+{text}" if value is not None and value >= ROUNDING else text


def shorten(text: str | None, limit: int) -> str:
    r"""Return one line of a text, cut with an ellipsis.

    >>> shorten("a  b\nc", 9), shorten("abcdef", 4)
    ('a b c', 'abc…')
    """
    line = " ".join((text or "")[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def flags(row: DebateRow) -> list[tuple[str, str]]:
    """Return what is remarkable of a debate, each with what it means."""
    facts = row.facts
    found = [
        (facts.cw, "C→W", "an agent went from a right answer to a wrong one"),
        (facts.wc, "W→C", "an agent went from a wrong answer to a right one"),
        (facts.cycle, "cycle", "the majorities of a round go in a circle"),
        (facts.malformed, f"{facts.malformed} malformed", "things that could not be read"),
        (facts.truncated, f"{facts.truncated} cut off", "turns that ended at their token limit"),
        (facts.missing, f"{facts.missing} no answer", "solutions without an answer"),
    ]
    return [(name, about) for holds, name, about in found if holds]
