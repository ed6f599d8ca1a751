r"""Split an answer into its parts: lists, sets, tuples, intervals, unions and matrices.

"or", "and", a comma and a semicolon all make a list. A ``\pm`` makes a list of two. Assignments to different
names (``x=1, y=2``) are a list that may stand for a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from envs.answers.notation import sides, spelling

_TOKEN = re.compile(
    r"\\[{}]|\\[A-Za-z]+|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|(?<=[)\]} ])U(?=[ (\[\\])|.", re.DOTALL
)
_OPENING = frozenset(("(", "[", "{", r"\{", r"\langle"))
_CLOSING = frozenset((")", "]", "}", r"\}", r"\rangle"))
_COMMAS = frozenset((",", ";"))
_LISTING = _COMMAS | {"and", "or"}
_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:,\d{3})+(?!\d)", re.ASCII)
_MATRIX = re.compile(
    r"([(\[]?)\s*\\begin\{([pb]?(?:small)?matrix|array)\*?\}(?:\{[clr|\s]*\}|\[[clr]\])?(.*)\\end\{\2\*?\}\s*([)\]]?)",
    re.DOTALL,
)
_CASES = re.compile(
    r"(?:\\begin\{cases\}|\\\{\s?\\begin\{(?:array|aligned|matrix)\}(?:\{[clr|\s]*\})?)(.*)"
    r"\\end\{(?:cases|array|aligned|matrix)\}\.?",
    re.DOTALL,
)
_MEMBER = re.compile(
    r"(?:[A-Za-z]|\([a-z](?:,\s?[a-z]){1,3}\)|\\[a-z]{2,7})(?:_\{?\w{1,4}\}?)?(?:\([a-z]\))?\s*\\in(?![A-Za-z])\s*"
)
ASSIGNMENT = re.compile(
    r"\s*((?:[A-Za-z]|[A-Z]{2,4}|\\[a-z]{2,7})(?:_\{?\w{1,6}\}?)?(?:\([A-Za-z]\))?)\s*=(.*)", re.DOTALL
)
_NAMED_TUPLE = re.compile(r"\(\s*([a-z](?:\s*,\s*[a-z]){1,3})\s*\)\s*=\s*(\(.*\))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an answer.

    ``kind`` is the brackets, "matrix" and the number of rows, or "list" if the order does not count.
    """

    kind: str
    items: tuple[str, ...]
    joined: str = ""
    """How a list is written: "commas", "and", "or", "set", "union", "cases" or "signs" (plus-minus)."""

    @property
    def bracketed(self) -> bool:
        """Whether the answer is a tuple or an interval."""
        return self.kind != "list" and not self.kind.startswith("matrix")


def parts_of(text: str) -> Parts | None:
    """Return the parts of a list, bracketed group, union or matrix; None for a single formula."""
    text = text.strip()
    text = text[member.end() :] if (member := _MEMBER.match(text)) else text
    if environment := _environment(text):
        return environment
    items = _split(text, _LISTING)
    if len(items) > 1:
        # p=5,q=2;p=7,q=2 is two tuples, because all groups assign to the same names
        groups = [tuple_of(_split(group, _LISTING)) for group in _split(text, frozenset((";", "or")))]
        if len(groups) > 1 and all(groups) and len({group[0] for group in groups if group}) == 1:
            return Parts("list", tuple(f"({','.join(group[1])})" for group in groups if group), "commas")
        joined = next((word for word in ("or", "and") if len(_split(text, frozenset((word,)))) > 1), "commas")
        spread = _spread(items)
        return Parts("list", spread, joined if len(spread) == len(items) else "signs")
    if named := _NAMED_TUPLE.fullmatch(text):  # (y,x)=(2,1) is (1,2)
        values, names = parts_of(named[2]), named[1].split(",")
        if values and len(names) == len(values.items):
            pairs = tuple_of([f"{name}={value}" for name, value in zip(names, values.items, strict=True)])
            return Parts(values.kind, pairs[1], values.joined) if pairs else values
        return values
    text = sides(text)[-1] if len(sides(text)) == 1 else text
    if len(union := _split(text, frozenset((r"\cup",)))) > 1:
        return Parts("list", tuple(union), "union")
    spread = _spread([text])
    return Parts("list", spread, "signs") if len(spread) > 1 else _bracketed(text)


def _spread(items: Sequence[str]) -> tuple[str, ...]:
    """Return the items, with two items for each item that has exactly one plus-minus."""
    spread: list[str] = []
    for item in items:
        signs = (("+", "-"), ("-", "+")) if item.count(r"\pm") == 1 else ((r"\pm", r"\mp"),)
        spread += [item.replace(r"\pm", plus).replace(r"\mp", minus) for plus, minus in signs]
    return tuple(spread)


def tuple_of(items: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the names and the values of assignments to different names; None for any other items.

    Neighbours in the alphabet, such as x and y, are sorted.
    """
    matches = [ASSIGNMENT.fullmatch(item) for item in items]
    pairs = [(spelling(match[1]), match[2].strip()) for match in matches if match]
    if len(pairs) < max(2, len(items)) or len({name for name, _ in pairs}) < len(pairs):
        return None
    letters = sorted(name[0] for name, _ in pairs)
    if ord(letters[-1]) - ord(letters[0]) in (0, len(letters) - 1):
        pairs.sort(key=lambda pair: (pair[0][0], len(pair[0]), pair[0]))
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)


def _bracketed(text: str) -> Parts | None:
    pair = bracketed_pair(text)
    if pair is None:
        return None
    brackets, apart = pair
    inside = text[len(brackets) // 2 : len(text) - len(brackets) // 2]
    if brackets == r"\{\}":
        return Parts("list", _spread(_split(inside, _LISTING)), "set")
    items = tuple(_split(inside, _COMMAS))
    if len(items) < 2 and brackets != "{}":
        items = apart  # (0,100) holds two items
    if len(items) < 2:
        inner = parts_of(inside) if brackets == "()" else None
        return inner if inner and inner.kind != "list" else None
    rows = [row[1] for item in items if (row := bracketed_pair(item)) and row[0] == "[]"]
    if brackets == "[]" and len(rows) == len(items) and len(set(map(len, rows))) == 1:  # [[1,2],[3,4]]
        return Parts(f"matrix {len(items)}", tuple(cell for row in rows for cell in row))
    return Parts("list", items, "commas") if brackets == "{}" else Parts(brackets, items)


def bracketed_pair(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the brackets around the whole text and the comma-separated items inside.

    Return None if no brackets enclose the whole text.
    """
    pieces, depth = _TOKEN.findall(text), 0
    if len(pieces) < 3 or pieces[0] not in _OPENING:
        return None
    for left, piece in enumerate(pieces, 1 - len(pieces)):
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if depth == 0 and left < 0:
            return None
    if depth:
        return None
    inside = text[len(pieces[0]) : len(text) - len(pieces[-1])]
    return pieces[0] + pieces[-1], tuple(_split(inside, _COMMAS, numbers=False))


def _environment(text: str) -> Parts | None:
    """Return the parts of a matrix, a system of equations or a function by cases, with or without a name.

    Return None if the text is none of these.
    """
    if "\\begin" not in text:
        return None
    text = sides(text)[-1] if len(sides(text)) == 1 else text
    matrix, cases = _MATRIX.fullmatch(text), _CASES.fullmatch(text)
    if matrix and (matrix[1] + matrix[4]) in ("", *(("()", "[]") if matrix[2][0] not in "pb" else ())):
        rows = _rows(matrix[3])
        return Parts(f"matrix {len(rows)}", tuple(cell for row in rows for cell in row)) if rows else None
    rows = _rows(cases[1]) if cases else []
    if not rows or not all(map(all, rows)) or len(rows[0]) > 2:
        return None
    if len(rows[0]) == 1:  # a system of equations
        spread = _spread([row[0].rstrip(",") for row in rows])
        return Parts("list", spread, "and" if len(spread) == len(rows) else "signs")
    pairs = [
        (value.rstrip(","), re.sub(r"^(?:if|when|for|otherwise)\b ?", "", when.rstrip(",")))
        for value, when in rows
    ]
    return Parts("list", tuple(f"({value}; {when or 'otherwise'})" for value, when in pairs), "cases")


def _rows(body: str) -> list[list[str]]:
    """Return the rows of cells; an empty list if rows differ in length or hold another environment."""
    lines = [line.strip() for line in re.split(r"\\\\(?:\[[^\]]*\])?", body)]
    rows = [[cell.strip() for cell in line.split("&")] for line in (lines if lines[-1] else lines[:-1])]
    return rows if len(set(map(len, rows))) == 1 and "\\begin" not in body else []


def _split(text: str, separators: frozenset[str], *, numbers: bool = True) -> list[str]:
    """Return the pieces between separators outside all brackets.

    With ``numbers``, a comma between the thousands of a number does not separate.
    """
    kept: set[int] = set()
    if numbers and "," in separators:
        kept = {at for m in _THOUSANDS.finditer(text) for at in range(*m.span())}
    pieces, _ = split_at(text, separators, kept)
    return [piece for piece in pieces if piece] if len(pieces) > 2 else pieces


def split_at(text: str, separators: frozenset[str], kept: Container[int] = ()) -> tuple[list[str], list[str]]:
    """Return the pieces between separators outside all brackets, and the separators.

    A separator at a position in ``kept`` does not separate.
    """
    pieces, signs, depth, start = [], [], 0, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0 and token in separators and match.start() not in kept:
            pieces.append(text[start : match.start()].strip())
            signs.append(token)
            start = match.end()
    return [*pieces, text[start:].strip()], signs
