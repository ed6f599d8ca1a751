r"""Compare lists, sets, tuples, intervals, unions and matrices part by part, and chains side by side.

Policy: the parts of a tuple, an interval and a matrix are ordered and its brackets count; a bare list, a set
and a union are not ordered, and saying a part twice changes nothing. "or", "and", a comma and a semicolon all
make a list, and a list is never one of its parts: hedging is wrong. ``\pm`` is a list of two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envs.notation import sides, spelling, without_unit
from envs.numbers import parse_number
from envs.values import same_value

MAX_PARTS = 24

_TOKEN = re.compile(r"\\[{}]|\\[A-Za-z]+|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|.", re.DOTALL)
_OPENING = frozenset(("(", "[", "{", r"\{"))
_CLOSING = frozenset((")", "]", "}", r"\}"))
_LISTING = frozenset((",", ";", "and", "or"))
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)", re.ASCII)
_MATRIX = re.compile(r"\\begin\{([pb]matrix)\}(.*)\\end\{\1\}", re.DOTALL)
_MEMBER = re.compile(r"[A-Za-z](?:_\{?\w{1,4}\}?)?\s*\\in(?![A-Za-z])\s*")
_NAMED = re.compile(r"\s*([A-Za-z](?:_\{?\w{1,6}\}?)?)\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parts:
    """What an answer is made of; ``kind`` is its brackets, "matrix", or "list" where order does not count."""

    kind: str
    items: tuple[str, ...]


def same_structure(answer: str, gold: str) -> bool | None:
    r"""Return whether two answers (in the form of ``clean``) are equal; None where this path cannot tell.

    >>> same_structure("(1, 2)", "(1,2)"), same_structure("(2,1)", "(1,2)"), same_structure("2,1", "1, 2")
    (True, False, True)
    >>> same_structure("[0,1)", "(0,1)"), same_structure(r"1 \pm \sqrt{2}", r"1-\sqrt{2}, 1+\sqrt{2}")
    (False, True)
    >>> same_structure(r"\sqrt{2} or 3", r"\sqrt{2}"), same_structure("y=x+1=2x", "x+1")
    (False, False)
    >>> same_structure("x<1", "2") is None
    True
    """
    left, right = parts_of(answer), parts_of(gold)
    if left is None and right is None:
        return _same_scalar(answer, gold)
    if left is None or right is None:
        return _list_against_scalar(left or right, gold if left else answer)
    if len(right.items) > MAX_PARTS:
        return None
    if len(left.items) > MAX_PARTS:
        return False
    return _same_parts(left, right)


def parts_of(text: str) -> Parts | None:
    r"""Return the parts of a list, bracketed group, union or matrix; None for a single formula.

    >>> parts_of(r"\{1,2\}").items, parts_of("(0,1)").kind, parts_of("x=1, y=2").items, parts_of("f(x,y)")
    (('1', '2'), '()', ('x=1', 'y=2'), None)
    """
    text = _MEMBER.sub("", text.strip(), count=1)
    listed = _split(text, _LISTING)
    if len(listed) > 1:
        return Parts("list", _spread(listed))
    text = sides(text)[-1] if len(sides(text)) == 1 else text
    if len(union := _split(text, frozenset((r"\cup",)))) > 1:
        return Parts("list", tuple(union))
    if matrix := _MATRIX.fullmatch(text):
        return _matrix(matrix[2])
    spread = _spread([text])
    return Parts("list", spread) if len(spread) > 1 else _bracketed(text)


def _bracketed(text: str) -> Parts | None:
    pieces = _TOKEN.findall(text)
    if len(pieces) < 3 or pieces[0] not in _OPENING or _end_of(pieces) != len(pieces) - 1:
        return None
    inside = text[len(pieces[0]) : len(text) - len(pieces[-1])]
    items = _split(inside, frozenset((",", ";")))
    brackets = pieces[0] + pieces[-1]
    if brackets == r"\{\}":
        return Parts("list", _spread(items))
    if len(items) < 2:
        return None
    return Parts("list" if brackets == "{}" else brackets, tuple(items))


def _end_of(pieces: Sequence[str]) -> int:
    depth = 0
    for place, piece in enumerate(pieces):
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if depth == 0:
            return place
    return -1


def _matrix(body: str) -> Parts | None:
    rows = [row.strip() for row in re.split(r"\\\\(?:\[[^\]]*\])?", body)]
    if rows and not rows[-1]:
        rows.pop()
    cells = [[cell.strip() for cell in row.split("&")] for row in rows]
    if not cells or "\\begin" in body or any(len(row) != len(cells[0]) for row in cells):
        return None
    return Parts(f"matrix {len(cells)}", tuple(cell for row in cells for cell in row))


def _split(text: str, separators: frozenset[str]) -> list[str]:
    """Return the pieces between separators outside all brackets; none is inside a number."""
    numbers = (
        {at for m in _THOUSANDS.finditer(text) for at in range(*m.span())} if "," in separators else set()
    )
    pieces, depth, start = [], 0, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0 and token in separators and match.start() not in numbers:
            pieces.append(text[start : match.start()].strip())
            start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece] if len(pieces) > 2 else pieces


def _spread(items: Sequence[str]) -> tuple[str, ...]:
    """Return the items, each that holds one plus-minus as two."""
    spread: list[str] = []
    for item in items:
        if item.count(r"\pm") == 1:
            spread += [
                item.replace(r"\pm", "+").replace(r"\mp", "-"),
                item.replace(r"\pm", "-").replace(r"\mp", "+"),
            ]
        else:
            spread.append(item)
    return tuple(spread)


def _list_against_scalar(parts: Parts | None, scalar: str) -> bool | None:
    """A list is never a single formula; a tuple or a matrix may be a name for something the library knows."""
    if parts is None or parts.kind != "list" or len(parts.items) < 2 or not _readable(scalar):
        return None
    return False if all(parts_of(item) or _readable(item) for item in parts.items) else None


def _readable(text: str) -> bool:
    return all(same_value(side, side) is True for side in sides(text))


def _same_parts(left: Parts, right: Parts) -> bool | None:
    if left.kind == right.kind == "list":
        named = _by_name(left, right)
        return named if named is not None else _same_sets(left.items, right.items)
    if "list" in (left.kind, right.kind):
        whole, single = (left, right) if left.kind == "list" else (right, left)
        inner = [parts_of(item) for item in whole.items]
        return False if all(i and i.kind == single.kind for i in inner) and len(inner) > 1 else None
    if left.kind.startswith("matrix") != right.kind.startswith("matrix"):
        return None
    if left.kind != right.kind or len(left.items) != len(right.items):
        return False
    return _all(_same_item(a, b) for a, b in zip(left.items, right.items, strict=True))


def _by_name(left: Parts, right: Parts) -> bool | None:
    """Return whether lists of assignments to the same names are equal; None where they are not such."""
    matches = [[_NAMED.fullmatch(item) for item in parts.items] for parts in (left, right)]
    if not all(match for side in matches for match in side):
        return None
    a, b = ({spelling(m[1]): m[2] for m in side if m} for side in matches)
    if a.keys() != b.keys() or len(a) < len(left.items) or len(b) < len(right.items):
        return None
    return _all(_same_item(a[name], b[name]) for name in a)


def _same_sets(left: Sequence[str], right: Sequence[str]) -> bool | None:
    table = [[_same_item(a, b) for b in right] for a in left]
    lines = [*table, *([row[k] for row in table] for k in range(len(right)))]
    if any(all(verdict is False for verdict in line) for line in lines):
        return False
    return True if all(any(verdict is True for verdict in line) for line in lines) else None


def _same_item(left: str, right: str) -> bool | None:
    if spelling(left) == spelling(right):
        return True
    if r"\infty" in left + right:
        return (
            left.removeprefix("+") == right.removeprefix("+") if _infinite(left) or _infinite(right) else None
        )
    return same_structure(left, right)


def _infinite(text: str) -> bool:
    return text.lstrip("+-") == r"\infty"


def _same_scalar(answer: str, gold: str) -> bool | None:
    """Return whether every side of the answer's chain of equations is the gold answer's one side."""
    truths = sides(gold)
    if len(truths) > 1:
        return None
    return _all(_same_formula(side, truths[0]) for side in sides(without_unit(answer)))


def _same_formula(left: str, right: str) -> bool | None:
    a, b = parse_number(left), parse_number(right)
    if a and b:
        return a.same(b)
    return same_value(left, without_unit(right))


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    found = list(verdicts)
    if False in found:
        return False
    return None if None in found else True
