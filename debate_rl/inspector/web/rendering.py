"""The templates, and how they write numbers and texts: escaped, with unseen characters named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from debate_rl.formatting import (
    GRADE_SIGNS,
    number,
    round_name,
    round_number,
    share,
    short,
    shorten,
    with_codes,
)
from debate_rl.inspector.meanings import flags_of
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.web.addresses import address
from debate_rl.mathematics import with_mathematics
from transcripts.record import named

HERE = Path(__file__).parent
UNSEEN, MARKED = "⟨{}⟩", '<b class="unseen">{}</b>'
"""How unseen characters are named in an attribute, and in a text."""
ROUNDING = 1e-12
"""What is smaller is shown as 0."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The beginning of a text as markup, how many characters it has in all, and how many were left out."""

    text: Markup
    length: int
    left: int


def clip(text: str, limit: int | None) -> Clip:
    """Return a text, or its beginning where it is longer than ``limit``."""
    shown = text if limit is None else head(text, limit)
    return Clip(seen(shown), len(text), len(text) - len(shown))


MOST_MATHEMATICS, MOST_OF_A_TEXT = 6, 400_000
"""Characters of MathML for each of a text's, and for a text; a formula takes about twelve times its own."""


def typeset(text: str, limit: int | None) -> Clip:
    """Return a text, or its beginning, with its formulas as MathML; what cannot be read stays as written."""
    shown = text if limit is None else head(text, limit)
    most = min(MOST_OF_A_TEXT, MOST_MATHEMATICS * max(len(shown), 1000))
    return Clip(Markup(with_mathematics(shown, seen, most)), len(text), len(text) - len(shown))


def typeset_answer(text: str, most: int) -> Markup:
    """Return an answer as mathematics where it has a command of LaTeX, and else its beginning in one line."""
    if "\\" in text and with_codes(text, UNSEEN) == text:
        formula = with_mathematics(rf"\({text}\)", seen)
        if formula.startswith("<math"):
            return Markup(formula)
    return written_answer(text, most)


def written_answer(text: str, most: int) -> Markup:
    """Return the beginning of an answer in one line, as it was written."""
    return Markup("<code>{}</code>").format(with_codes(shorten(text, most), UNSEEN))


def seen(text: str) -> Markup:
    r"""Return a text as markup, escaped, with its unseen characters named and marked.

    >>> seen("<b>\x00")
    Markup('&lt;b&gt;<b class="unseen">U+0000</b>')
    """
    return Markup(with_codes(str(escape(text)), MARKED))


def head(text: str, limit: int) -> str:
    """Return a beginning of a text that is at most ``limit`` characters, and twice that as markup."""
    cut = text[:limit]
    while len(cut) > 1 and len(seen(cut)) > 2 * limit:
        cut = cut[: len(cut) // 2]
    return cut


@cache
def environment() -> Environment:
    """Return the templates."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "count": lambda value: f"{value:,}",
        "flags": flags_of,
        "grade_name": grade_name,
        "words": lambda name: name.replace("_", " "),
        "mean": mean,
        "mark": lambda word: GRADE_SIGNS.get(word, "–" if word == "none" else ""),
        "number": trimmed,
        "seen": seen,
        "share": share,
        "shorten": lambda text, most: shorten(text or "", most),
        "signed": partial(trimmed, sign="+"),
        "turn_id": named,
        "typeset": typeset_answer,
    }
    templates.globals |= {"round_name": round_name, "round_number": round_number}
    templates.globals |= {"address": address, "asset": asset, "clip": clip, "typeset": typeset}
    return templates


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


def _shown(value: object) -> object:
    """Return what a template writes of a value: of a text that is not markup yet, nothing stays hidden."""
    if value is None:
        return ""
    return with_codes(value, UNSEEN) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def asset(name: str) -> str:
    """Return the address of one of our files, which changes with what is in it."""
    mark = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:10]
    return address("static", name, v=mark)


def mean(value: float | None) -> str:
    """Return a mean reward, in as many digits as those above and below it.

    >>> mean(0.33), mean(-0.0026), mean(1e-17), mean(None)
    ('+0.330', '−0.003', '0.000', '–')
    """
    return number(value, signed=True).replace("-", "−")


def trimmed(value: float | None, *, sign: str = "") -> str:
    """Return a number in a few digits, without zeros at its end.

    >>> trimmed(1234.5), trimmed(1 / 3), trimmed(-2.0), trimmed(1e-17), trimmed(None), trimmed(0.5, sign="+")
    ('1,234', '0.333', '−2', '0', '–', '+0.5')
    """
    if value is None or abs(value) < ROUNDING:
        return "–" if value is None else "0"
    text = short(value)
    text = text if "." not in text or "e" in text else text.rstrip("0").rstrip(".")
    return (sign if value > 0 else "") + text.replace("-", "−")
