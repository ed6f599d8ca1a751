"""Whether some part of a formula has a value that no arithmetic should write out, as towers of powers have.

Each power, each factorial, each group in brackets and the whole are evaluated on their own, in the bounded
arithmetic of ``envs.answers``, so that nothing around a part hides it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envs.answers.formulas import TooLarge, Unknown, parse_formula
from envs.answers.notation import clean

_GROWS = re.compile(r"\^|\*\*|!|\\(?:exp|sinh|cosh|[dt]?binom)(?![A-Za-z])")
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*[-+]?\s*")
_BEFORE = re.compile(r"(?:\d[\d.]*|[A-Za-z]|\\[A-Za-z]+)!?\Z", re.ASCII)
_ATOM = re.compile(r"\d[\d.]*|[A-Za-z]|\\[A-Za-z]+", re.ASCII)


def is_too_large(text: str) -> bool:
    """Return whether a part of a formula has a value beyond ``arithmetic.MAX_BITS`` bits."""
    return bool(_GROWS.search(text)) and any(
        _exceeds(part, unread) for part, unread in dict.fromkeys(_parts(clean(text)))
    )


def _exceeds(part: str, unread: bool) -> bool:
    """Return whether a part's value is too large; ``unread`` where it cannot be read."""
    node = parse_formula(part)
    try:
        return unread if node is None else node(0) is None
    except TooLarge:
        return True
    except Unknown:
        return False


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts, each with whether it is too large where it cannot be read."""
    closing = _pairs(text)
    opening = {end: start for start, end in closing.items()}
    yield text, False
    yield from ((text[start + 1 : end], False) for start, end in closing.items())
    read = -1
    for sign in _GROWS.finditer(text):
        base = _base(text, sign.start(), opening)
        if sign[0] == "!":
            yield f"{base}!", False
        elif sign[0] in ("^", "**") and sign.start() >= read:
            read = _end_of_power(text, sign.start(), closing)
            exponent = text[sign.end() : read]
            yield f"{base}^{exponent}", False
            yield f"2^{exponent}", bool(_GROWS.search(exponent))  # whatever the base is


def _pairs(text: str) -> dict[int, int]:
    """Return where each bracket closes, by where it opens."""
    found: dict[int, int] = {}
    open_: list[int] = []
    for at, sign in enumerate(text):
        if sign in "({[":
            open_.append(at)
        elif sign in ")}]" and open_:
            found[open_.pop()] = at
    return found


def _base(text: str, end: int, opening: dict[int, int]) -> str:
    """Return what stands right before a sign: a group, a number, a letter or a command."""
    stripped = text[:end].rstrip()
    inner = stripped.removesuffix("!")
    if (start := opening.get(len(inner) - 1)) is not None:
        return stripped[start:]
    match = _BEFORE.search(stripped[-64:])
    return match[0] if match else ""


def _end_of_power(text: str, at: int, closing: dict[int, int]) -> int:
    """Return where a chain of exponents ends that begins with the sign at a place: ``^a^{b}!``."""
    while sign := _POWER.match(text, at):
        at = sign.end()
        if (end := closing.get(at)) is not None:
            at = end + 1
        elif atom := _ATOM.match(text, at):
            at = atom.end()
        else:
            break
        at += text[at : at + 1] == "!"
    return at
