r"""Read an answer as its parts: lists, sets, tuples, intervals, unions and matrices.

"or", "and", a comma and a semicolon all make a list. ``\pm`` is a list of two. Assignments to different
names, ``x=1, y=2``, are a list that may stand for a tuple.
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
_WORDS = frozenset(("and", "or"))
_LISTING = _COMMAS | _WORDS
_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:,\d{3})+(?!\d)", re.ASCII)
_MATRIX = re.compile(
    r"\\begin\{([pb]?matrix|[pb]?smallmatrix|array)\*?\}(?:\{[clr|\s]*\}|\[[clr]\])?(.*)\\end\{\1\*?\}",
    re.DOTALL,
)
_AROUND_MATRIX = {("(", ")"), ("[", "]")}
_ROWS = r"\\begin\{(?:array|aligned|matrix)\}(?:\{[clr|\s]*\})?"
_CASES = re.compile(
    rf"(?:\\begin\{{cases\}}|\\\{{\s?{_ROWS})(.*)\\end\{{(?:cases|array|aligned|matrix)\}}\.?", re.DOTALL
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
    """What an answer is made of; ``kind`` is its brackets, "matrix", or "list" where order does not count."""

    kind: str
    items: tuple[str, ...]
    joined: str = ""
    """How a list is written: "commas", "and", "or", "set", "union", "cases" or "signs" (plus-minus)."""

    @property
    def bracketed(self) -> bool:
        """Whether it is a tuple or an interval."""
        return self.kind != "list" and not self.kind.startswith("matrix")


def parts_of(text: str) -> Parts | None:
    r"""Return the parts of a list, bracketed group, union or matrix; None for a single formula.

    >>> parts_of(r"\{1,2\}").items, parts_of("(0,1)").kind, parts_of("x=1, y=2").items, parts_of("f(x,y)")
    (('1', '2'), '()', ('x=1', 'y=2'), None)
    """
    text = text.strip()
    text = text[member.end() :] if (member := _MEMBER.match(text)) else text
    if environment := _environment(text):
        return environment
    listed = _split(text, _LISTING)
    if len(listed) > 1:
        return _grouped(text) or _listed(listed, _joint(text))
    if named := _NAMED_TUPLE.fullmatch(text):
        return _named_tuple(named[1].split(","), parts_of(named[2]))
    text = sides(text)[-1] if len(sides(text)) == 1 else text
    if len(union := _split(text, frozenset((r"\cup",)))) > 1:
        return Parts("list", tuple(union), "union")
    spread = _spread([text])
    return Parts("list", spread, "signs") if len(spread) > 1 else _bracketed(text)


def _named_tuple(names: Sequence[str], values: Parts | None) -> Parts | None:
    """Return ``(y,x)=(2,1)`` as the tuple (1,2)."""
    if values is None or len(names) != len(values.items):
        return values
    parts = tuple_of([f"{name}={value}" for name, value in zip(names, values.items, strict=True)])
    return Parts(values.kind, parts[1], values.joined) if parts else values


def _joint(text: str) -> str:
    """Return how the items of a list are joined."""
    return next((word for word in ("or", "and") if len(_split(text, frozenset((word,)))) > 1), "commas")


def _listed(items: Sequence[str], joined: str) -> Parts:
    spread = _spread(items)
    return Parts("list", spread, joined if len(spread) == len(items) else "signs")


def _grouped(text: str) -> Parts | None:
    """Return ``p=5,q=2;p=7,q=2`` as a list of tuples; None where groups do not assign to the same names."""
    groups = [tuple_of(_split(group, _LISTING)) for group in _split(text, frozenset((";", "or")))]
    names = {group[0] for group in groups if group}
    if None in groups or len(groups) < 2 or len(names) > 1:
        return None
    return Parts("list", tuple(f"({','.join(group[1])})" for group in groups if group), "commas")


def tuple_of(items: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return names and values of assignments to different names: neighbours as x and y in their order."""
    matches = [ASSIGNMENT.fullmatch(item) for item in items]
    pairs = [(spelling(match[1]), match[2].strip()) for match in matches if match]
    names = [name for name, _ in pairs]
    if len(pairs) < max(2, len(items)) or len(set(names)) < len(names):
        return None
    letters = sorted(name[0] for name in names)
    if ord(letters[-1]) - ord(letters[0]) in (0, len(letters) - 1):
        pairs.sort(key=lambda pair: (pair[0][0], len(pair[0]), pair[0]))
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)


def _bracketed(text: str) -> Parts | None:
    pair = bracketed_pair(text)
    if pair is None:
        return None
    brackets, apart = pair
    inside = text[len(brackets) // 2 : len(text) - len(brackets) // 2]
    items = _split(inside, _LISTING if brackets == r"\{\}" else _COMMAS)
    if brackets == r"\{\}":
        return Parts("list", _spread(items), "set")
    if len(items) < 2 and brackets != "{}":
        items = list(apart)  # (0,100) holds two
    if len(items) < 2:
        inner = parts_of(inside) if brackets == "()" else None
        return inner if inner and inner.kind != "list" else None
    if brackets == "[]" and (rows := [bracketed_pair(item) for item in items]) and all(rows):
        inside = [row[1] for row in rows if row and row[0] == "[]"]
        if len(inside) == len(items) and len(set(map(len, inside))) == 1:  # [[1,2],[3,4]]
            return Parts(f"matrix {len(items)}", tuple(cell for row in inside for cell in row))
    return Parts("list", tuple(items), "commas") if brackets == "{}" else Parts(brackets, tuple(items))


def bracketed_pair(text: str) -> tuple[str, tuple[str, ...]] | None:
    r"""Return the brackets around the whole text and the items between commas inside; None without brackets.

    >>> bracketed_pair("(1,2]"), bracketed_pair(r"\{5\}"), bracketed_pair("(1,2)(3,4)")
    (('(]', ('1', '2')), ('\\{\\}', ('5',)), None)
    """
    pieces = _TOKEN.findall(text)
    if len(pieces) < 3 or pieces[0] not in _OPENING or _end_of(pieces) != len(pieces) - 1:
        return None
    inside = text[len(pieces[0]) : len(text) - len(pieces[-1])]
    return pieces[0] + pieces[-1], tuple(_split(inside, _COMMAS, numbers=False))


def _end_of(pieces: Sequence[str]) -> int:
    depth = 0
    for index, piece in enumerate(pieces):
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if depth == 0:
            return index
    return -1


def _environment(text: str) -> Parts | None:
    """Return a matrix, a system or a function by cases; a name may stand before it."""
    if "\\begin" not in text:
        return None
    text = sides(text)[-1] if len(sides(text)) == 1 else text
    if matrix := _matrix_in(text):
        return _matrix(matrix)
    cases = _CASES.fullmatch(text)
    return _system(cases[1]) if cases else None


def _matrix_in(text: str) -> str:
    """Return the rows of a matrix: in an environment with brackets, or in brackets around one without."""
    bracketed = (text[:1], text[-1:]) in _AROUND_MATRIX
    match = _MATRIX.fullmatch(text[1:-1].strip() if bracketed else text)
    return match[2] if match and not (bracketed and match[1].startswith(("p", "b"))) else ""


def _rows(body: str) -> list[list[str]]:
    rows = [row.strip() for row in re.split(r"\\\\(?:\[[^\]]*\])?", body)]
    if rows and not rows[-1]:
        rows.pop()
    return [[cell.strip() for cell in row.split("&")] for row in rows]


def _system(body: str) -> Parts | None:
    """Return a system of equations as a list, and a function by cases as one of pairs."""
    rows = _rows(body)
    if "\\begin" in body or any(len(row) != len(rows[0]) or not all(row) for row in rows) or len(rows[0]) > 2:
        return None
    if len(rows[0]) == 1:
        return _listed([row[0].rstrip(",") for row in rows], "and")
    return Parts(
        "list",
        tuple(f"({value.rstrip(',')}; {_condition(when.rstrip(','))})" for value, when in rows),
        "cases",
    )


def _condition(when: str) -> str:
    return re.sub(r"^(?:if|when|for|otherwise)\b ?", "", when) or "otherwise"


def _matrix(body: str) -> Parts | None:
    cells = _rows(body)
    if not cells or "\\begin" in body or any(len(row) != len(cells[0]) for row in cells):
        return None
    return Parts(f"matrix {len(cells)}", tuple(cell for row in cells for cell in row))


def _split(text: str, separators: frozenset[str], *, numbers: bool = True) -> list[str]:
    """Return the pieces between separators outside all brackets; with ``numbers`` none is inside a number."""
    kept: set[int] = set()
    if numbers and "," in separators:
        kept = {at for m in _THOUSANDS.finditer(text) for at in range(*m.span())}
    pieces, _ = split_at(text, separators, kept)
    return [piece for piece in pieces if piece] if len(pieces) > 2 else pieces


def split_at(text: str, separators: frozenset[str], kept: Container[int] = ()) -> tuple[list[str], list[str]]:
    """Return the pieces between separators outside all brackets, and the separators; ``kept`` are none.

    >>> split_at("1<f(x<2)<3", frozenset("<"))
    (['1', 'f(x<2)', '3'], ['<', '<'])
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
