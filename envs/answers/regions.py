r"""Sets of real numbers, in whatever form: intervals, solved inequalities, set-builders, differences, words.

The principle: an answer that names a set of reals is read as its pieces on the line, in order and joined
where they touch, and two are the same if the pieces are. A relation names a set only when it is solved,
its letter alone on one side: ``2x<6`` restates a problem. ``|x|<3`` is read in a gold answer alone. "and"
between relations is the intersection, "or" the union. What is not read to its last sign is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from envs.answers.arithmetic import context
from envs.answers.parts import bracketed_pair, split_at
from envs.answers.relations import Relation, relations_of
from envs.answers.values import constant_of

Piece: TypeAlias = tuple[Any, bool, Any, bool]
"""From, whether that point belongs to it, to, whether that one does."""

MAX_CHARS = 300
MAX_PIECES = 16
_LETTER = re.compile(
    r"(?:(?![ei]$)[A-Za-z]|\\(?:alpha|beta|gamma|theta|lambda|mu|phi|omega))(?:_\{?\w{1,3}\}?)?(?:\([a-z]\))?"
)
_MEMBER = re.compile(rf"({_LETTER.pattern.replace('$', '(?![A-Za-z])')})\s*\\in(?![A-Za-z])\s*")
_BUILDER = re.compile(r"\\\{(.+?)(?:\\mid(?![A-Za-z])|\||:)(.+)\\\}", re.DOTALL)
_REALS = re.compile(
    r"\\mathbb\{R\}|(?:the set of )?(?:all )?(?:the )?(?:reals|real numbers)"
    r"|(?:[a-z] (?:can be|is) )?(?:any|every) real(?: number)?|all real(?: values)?(?: of)?(?: [a-z])?",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\\emptyset|\\\{\\\}|(?:the )?(?:empty|null) set|(?:there (?:is"
    r"|are) )?no (?:real )?(?:solutions?|roots?)"
    r"(?: exists?)?|none|no real numbers?|no such (?:real )?(?:numbers?|values?)",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"(.+?),? (?:except|other than|excluding|but not|apart from)(?: for| when| where)? (.+)", re.IGNORECASE
)
_WORDED = frozenset(("and", "or", r"\land", r"\lor", r"\wedge", r"\vee"))
_AND = frozenset(("and", r"\land", r"\wedge"))
_ANY_REAL = re.compile(r"[A-Za-z]\s?\\in\s?\\mathbb\{R\}")
_ABSOLUTE = re.compile(r"\|([^|]+)\|")


@dataclass(frozen=True, slots=True)
class Region:
    """A set of reals: its pieces from left to right, and the letter that it is said of, or ""."""

    pieces: tuple[Piece, ...]
    letter: str = ""
    related: bool = False
    """Whether it is written with relations."""

    def same(self, other: Region) -> bool:
        """Whether both are the same set, and not said of two letters."""
        if self.letter and other.letter and self.letter != other.letter:
            return False
        return len(self.pieces) == len(other.pieces) and all(
            a[1] == b[1] and a[3] == b[3] and _equal(a[0], b[0]) and _equal(a[2], b[2])
            for a, b in zip(self.pieces, other.pieces, strict=True)
        )


def region_of(text: str, *, gold: bool = False) -> Region | None:
    r"""Return the set of reals that a text (in the form of ``clean``) names; None if it is none or not read.

    >>> def same(a, b): return region_of(a).same(region_of(b))
    >>> same(r"(1,2)\cup[2,3)", "1<x<3"), same(r"\mathbb{R}\setminus\{0\}", r"x\neq 0")
    (True, True)
    >>> same(r"\{x\mid x\ge 2\}", r"[2,\infty)"), same("x>1 and x<2", "(1,2)")
    (True, True)
    >>> same("x<1 or x>3", "x<1 and x>3"), same("no solution", r"\emptyset")
    (False, True)
    >>> [region_of(text) for text in ("2x<6", "x<y", "5", "(a,b)", "1,2", "(1,2), (3,4)")]
    [None, None, None, None, None, None]
    """
    if len(text) > MAX_CHARS:
        return None
    text = text.strip()
    if listed := _conditions(text, gold):
        return listed
    member = _MEMBER.match(text)
    region = _region(text[member.end() :] if member else text, gold)
    return region and Region(region.pieces, member[1] if member else region.letter, region.related)


def _conditions(text: str, gold: bool) -> Region | None:
    """Read relations joined by one of "and" and "or", or by commas where each leaves a point out."""
    items, signs = split_at(text, _WORDED)
    if len({sign in _AND for sign in signs}) > 1 or len(items) > MAX_PIECES:
        return None
    both = bool(signs) and signs[0] in _AND
    commas: list[str] = []
    if not signs:
        items, commas = split_at(text, frozenset((",",)))
        items = [item for item in items if not _ANY_REAL.fullmatch(item)] or items
        both = bool(commas) and all(r"\neq" in item for item in items)
    regions = [_condition(item, gold) for item in items]
    letters = {region.letter for region in regions if region}
    if None in regions or len(letters) > 1:
        return None
    pieces = [region.pieces for region in regions if region]
    if len(pieces) > 1 and commas and not both:
        return _listed(pieces, letters.pop())
    return Region(reduce(_common, pieces) if both else _joined(sum(pieces, ())), letters.pop(), related=True)


def _listed(pieces: Sequence[tuple[Piece, ...]], letter: str) -> Region | None:
    """Read two inequalities with a comma between: as that one of "and" and "or" that says something."""
    common, union = reduce(_common, pieces), _joined(piece for each in pieces for piece in each)
    if len(pieces) != 2 or any(len(each) != 1 or each[0][0] == each[0][2] for each in pieces):
        return None
    everything = len(union) == 1 and union[0][0] == -context().inf and union[0][2] == context().inf
    if bool(common) == (not everything):
        return None  # both say something, or neither does
    return Region(common if everything else union, letter, related=True)


def _condition(text: str, gold: bool) -> Region | None:
    """Read a chain of relations with one letter, alone on its side: ``1<x<3``."""
    chain = relations_of(text)
    if not chain or len(chain) > 2:
        return None
    letters = {
        side for relation in chain for side in (relation.left, relation.right) if _LETTER.fullmatch(side)
    }
    if gold and not letters and (inside := _ABSOLUTE.search(text)) and _LETTER.fullmatch(inside[1]):
        return _of_absolute(text.replace(inside[0], f" {inside[1]} "), inside[1])
    if len(letters) != 1:
        return None
    letter = letters.pop()
    pieces = [_half(relation, letter) for relation in chain]
    if None in pieces:
        return None
    return Region(reduce(_common, [half for half in pieces if half is not None]), letter, related=True)


def _of_absolute(text: str, letter: str) -> Region | None:
    """Return what ``|x|`` satisfies as a set of x: the part above zero and its mirror image."""
    region, mp = _condition(text, gold=False), context()
    if region is None:
        return None
    above = _common(region.pieces, ((mp.mpf(0), True, mp.inf, False),))
    return Region(
        _joined((*above, *((-b, b_in, -a, a_in) for a, a_in, b, b_in in above))), letter, related=True
    )


def _half(relation: Relation, letter: str) -> tuple[Piece, ...] | None:
    """Return what one relation of a letter and a constant leaves of the line."""
    mp, below = context(), relation.left == letter
    bound = _endpoint(relation.right if below else relation.left)
    if bound is None or relation.left == relation.right:
        return None
    least, most = -mp.inf, mp.inf
    if relation.sign == "=":
        return ((bound, True, bound, True),)
    if relation.sign == "!=":
        return ((least, False, bound, False), (bound, False, most, False))
    closed = relation.sign == "<=" and mp.isfinite(bound)
    return ((least, False, bound, closed),) if below else ((bound, closed, most, False),)


def _region(text: str, gold: bool) -> Region | None:
    """Read a union, an intersection or a difference of sets, or one set."""
    text = text.strip()
    if _REALS.fullmatch(text):
        return Region(((-context().inf, False, context().inf, False),))
    if _NOTHING.fullmatch(text):
        return Region(())
    for signs, combine in (
        ((r"\cup", "U", "or"), _union),
        ((r"\cap",), _intersection),
        ((r"\setminus",), _difference),
    ):
        items, found = split_at(text, frozenset(signs))
        if found:
            regions = [_region(item, gold) for item in items] if len(items) <= MAX_PIECES else [None]
            return (
                None if None in regions else Region(combine([region.pieces for region in regions if region]))
            )
    if words := _EXCEPT.fullmatch(text):
        return _left_out(words[1], words[2])
    return _one_set(text, gold)


def _left_out(whole: str, points: str) -> Region | None:
    """Read "all real numbers except 2 and 3"."""
    region = _region(whole, gold=False)
    items, _ = split_at(
        re.sub(rf"{_LETTER.pattern.replace('$', '(?![A-Za-z])')}\s*=", "", points),
        frozenset((",", "and", "or")),
    )
    values = [_endpoint(item) for item in items if item]
    if region is None or None in values:
        return None
    return Region(_difference([region.pieces, tuple((value, True, value, True) for value in values)]))


def _one_set(text: str, gold: bool) -> Region | None:
    if builder := _BUILDER.fullmatch(text):
        return _built(builder[1].strip(), builder[2].strip(), gold)
    pair = bracketed_pair(text)
    if pair is None:
        return None
    brackets, items = pair
    values = [_endpoint(item) for item in items]
    if None in values:
        return None
    if brackets == r"\{\}":
        return Region(_joined((value, True, value, True) for value in values))
    low, high = values if len(values) == 2 else (0, 0)
    if len(values) != 2 or brackets not in ("()", "[]", "(]", "[)") or not low < high:
        return None
    ends = [brackets[0] == "[", brackets[1] == "]"]
    if any(closed and not context().isfinite(value) for closed, value in zip(ends, values, strict=True)):
        return None
    return Region(((low, ends[0], high, ends[1]),))


def _built(head: str, condition: str, gold: bool) -> Region | None:
    """Read a set-builder over the reals; its head is the letter of its condition."""
    member = _MEMBER.match(head)
    domain = (
        _region(head[member.end() :], gold)
        if member
        else Region(((-context().inf, False, context().inf, False),))
    )
    letter = member[1] if member else head
    region = _conditions(re.sub(r"(?<!\w),(?!\w)|,", " and ", condition), gold)
    if domain is None or region is None or region.letter != letter:
        return None
    return Region(_common(domain.pieces, region.pieces))


def _endpoint(text: str) -> Any:
    text = text.strip()
    if text.lstrip("+-") in (r"\infty", "oo"):
        return -context().inf if text.startswith("-") else context().inf
    value = constant_of(text)
    return None if value is None or value.imag else value.real


def _equal(left: Any, right: Any) -> bool:
    mp = context()
    if not (mp.isfinite(left) and mp.isfinite(right)):
        return left == right
    return abs(left - right) <= mp.mpf(10) ** -80 * max(1, abs(left))


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return the pieces in order, those that overlap or touch as one."""
    result: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece[0], not piece[1])):
        low, low_in, high, high_in = result[-1] if result else piece
        touches = result and (piece[0] < high or (_equal(piece[0], high) and (piece[1] or high_in)))
        if not touches:
            result.append(piece)
        elif piece[2] > high or (_equal(piece[2], high) and piece[3]):
            result[-1] = (low, low_in or (_equal(low, piece[0]) and piece[1]), piece[2], piece[3])
    return tuple(result)


def _common(left: Sequence[Piece], right: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return what two sets have in common."""
    return _joined(piece for a in left for b in right if (piece := _overlap(a, b)) is not None)


def _overlap(a: Piece, b: Piece) -> Piece | None:
    low, low_in = max((a[0], not a[1]), (b[0], not b[1]))
    high, high_in = min((a[2], a[3]), (b[2], b[3]))
    point = _equal(low, high) and not low_in and high_in
    return (low, not low_in, high, high_in) if low < high or point else None


def _union(sets: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    return _joined(piece for pieces in sets for piece in pieces)


def _intersection(sets: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    return reduce(_common, [tuple(pieces) for pieces in sets])


def _difference(sets: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    return reduce(_common, [tuple(sets[0]), *(_complement(piece) for pieces in sets[1:] for piece in pieces)])


def _complement(piece: Piece) -> tuple[Piece, ...]:
    low, low_in, high, high_in = piece
    inf = context().inf
    sides = ((-inf, False, low, not low_in), (high, not high_in, inf, False))
    return tuple(side for side in sides if side[0] < side[2])
