r"""Sets of real numbers, in whatever form: intervals, solved inequalities, set-builders, differences, words.

The principle: an answer that names a set of reals is read as the cuts on the line where it begins and ends,
and two are the same if these are. A relation names a set only when it is solved, its letter alone on one
side: ``2x<6`` restates a problem. ``|x|<3`` is read in a gold answer alone. "and" between relations is the
intersection, "or" the union. What is not read to its last sign is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import and_, gt, or_
from typing import Any, TypeAlias

from envs.answers.formulas import constant_of, context
from envs.answers.parts import bracketed_pair, split_at
from envs.answers.relations import Relation, relations_of

Cuts: TypeAlias = tuple[tuple[Any, bool], ...]
"""Where a set begins and ends, in turn: a number, and whether the cut lies behind it."""

MAX_CHARS = 300
MAX_ITEMS = 16
_REALS: Cuts = ((-inf, True), (inf, False))
_LETTER = re.compile(
    r"(?:(?![ei](?![\w(]))[A-Za-z]|\\(?:alpha|beta|gamma|theta|lambda|mu|phi|omega))(?:_\{?\w{1,3}\}?)?(?:\([a-z]\))?"
)
_MEMBER = re.compile(rf"({_LETTER.pattern})\s*\\in(?![A-Za-z])\s*")
_BUILDER = re.compile(r"\\\{(.+?)(?:\\mid(?![A-Za-z])|\||:)(.+)\\\}", re.DOTALL)
_ALL_REALS = re.compile(
    r"\\mathbb\{R\}|(?:the set of )?(?:all )?(?:the )?(?:reals|real numbers)"
    r"|(?:[a-z] (?:can be|is) )?(?:any|every) real(?: number)?|all real(?: values)?(?: of)?(?: [a-z])?",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\\emptyset|\\\{\\\}|(?:the )?(?:empty|null) set|none|no real numbers?"
    r"|(?:there (?:is|are) )?no (?:real )?(?:solutions?|roots?)(?: exists?)?"
    r"|no such (?:real )?(?:numbers?|values?)",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"(.+?),? (?:except|other than|excluding|but not|apart from)(?: for| when| where)? (.+)", re.IGNORECASE
)
_AND = (("and", r"\land", r"\wedge"), and_)
_OR = (("or", r"\lor", r"\vee"), or_)
_OF_SETS = (((r"\cup", "U", "or"), or_), ((r"\cap",), and_), ((r"\setminus",), gt))
_ANY_REAL = re.compile(r"[A-Za-z]\s?\\in\s?\\mathbb\{R\}")
_ABSOLUTE = re.compile(r"\|([^|]+)\|")


@dataclass(frozen=True, slots=True)
class Region:
    """A set of reals, and the letter that it is said of, or "". ``related``: it is written with relations."""

    cuts: Cuts
    letter: str = ""
    related: bool = False

    def same(self, other: Region) -> bool:
        """Whether both are the same set, and not said of two letters."""
        return self.cuts == other.cuts and (not (self.letter and other.letter) or self.letter == other.letter)


def region_of(text: str, *, gold: bool = False) -> Region | None:
    """Return the set of reals that a text (in the form of ``clean``) names; None if it is not read."""
    if len(text) > MAX_CHARS:
        return None
    text = text.strip()
    if listed := _conditions(text, gold):
        return listed
    member = _MEMBER.match(text)
    cuts = _set(text[member.end() :] if member else text, gold)
    return None if cuts is None else Region(cuts, member[1] if member else "")


def _merged(left: Cuts, right: Cuts, keep: Callable[[bool, bool], bool]) -> Cuts:
    """Return where one of two sets, both, or the first alone hold."""
    merged: list[tuple[Any, bool]] = []
    for cut in sorted({*left, *right}):
        holds = keep(*(sum(each <= cut for each in cuts) % 2 == 1 for cuts in (left, right)))
        if holds != len(merged) % 2:
            merged.append(cut)
    return tuple(merged)


def _point(value: Any) -> Cuts:
    return (value, False), (value, True)


def _conditions(text: str, gold: bool) -> Region | None:
    """Read relations joined by one of "and" and "or", or by commas where each leaves a point out."""
    items, signs = split_at(text, frozenset((*_AND[0], *_OR[0])))
    kinds = {sign in _AND[0] for sign in signs}
    if len(kinds) > 1 or len(items) > MAX_ITEMS:
        return None
    commas: list[str] = []
    if not signs:
        items, commas = split_at(text, frozenset((",",)))
        items = [item for item in items if not _ANY_REAL.fullmatch(item)] or items
        kinds = {bool(commas) and all(r"\neq" in item for item in items)}
    regions = [_condition(item, gold) for item in items]
    letters = {region.letter for region in regions if region}
    if None in regions or len(letters) > 1:
        return None
    sets = [region.cuts for region in regions if region]
    both, either = (reduce(lambda a, b: _merged(a, b, keep), sets) for keep in (and_, or_))
    cuts = both if kinds == {True} else either
    if (
        len(sets) > 1 and commas and kinds == {False}
    ):  # a comma is that one of "and" and "or" that says something
        half_lines = all(len(each) == 2 and each[0][0] != each[1][0] for each in sets)
        if len(sets) != 2 or not half_lines or bool(both) != (either == _REALS):
            return None
        cuts = both or either
    return Region(cuts, letters.pop(), related=True)


def _condition(text: str, gold: bool) -> Region | None:
    """Read a chain of relations with one letter, alone on its side: ``1<x<3``."""
    chain = relations_of(text)
    sides = {side for relation in chain for side in (relation.left, relation.right)}
    letters = [side for side in sides if _LETTER.fullmatch(side)]
    if gold and not letters and (inside := _ABSOLUTE.search(text)) and _LETTER.fullmatch(inside[1]):
        region = _condition(text.replace(inside[0], f" {inside[1]} "), False)
        above = _merged(region.cuts, ((0, False), (inf, False)), and_) if region else ()
        below = tuple((-value, not behind) for value, behind in reversed(above))
        return region and Region(_merged(above, below, or_), inside[1], related=True)
    if not 1 <= len(chain) <= 2 or len(letters) != 1:
        return None
    sets = [_half(relation, letters[0]) for relation in chain]
    if None in sets:
        return None
    return Region(
        reduce(lambda a, b: _merged(a, b, and_), [each for each in sets if each]), letters[0], related=True
    )


def _half(relation: Relation, letter: str) -> Cuts | None:
    """Return what one relation of a letter and a constant leaves of the line."""
    below = relation.left == letter
    bound = _endpoint(relation.right if below else relation.left)
    if bound is None or relation.left == relation.right:
        return None
    if relation.sign in ("=", "!="):
        return _point(bound) if relation.sign == "=" else _merged(_REALS, _point(bound), gt)
    closed = relation.sign == "<=" and abs(bound) != inf
    return (_REALS[0], (bound, closed)) if below else ((bound, not closed), _REALS[1])


def _set(text: str, gold: bool) -> Cuts | None:
    """Read a union, an intersection or a difference of sets, a set-builder, a set of numbers, an interval."""
    text = text.strip()
    if _ALL_REALS.fullmatch(text):
        return _REALS
    if _NOTHING.fullmatch(text):
        return ()
    for signs, keep in _OF_SETS:
        items, found = split_at(text, frozenset(signs))
        if found:
            sets = [_set(item, gold) for item in items] if len(items) <= MAX_ITEMS else [None]
            return None if None in sets else reduce(lambda a, b: _merged(a or (), b or (), keep), sets)
    if words := _EXCEPT.fullmatch(text):
        names = rf"{_LETTER.pattern}\s*="
        items = split_at(re.sub(names, "", words[2]), frozenset((",", "and", "or")))[0]
        whole, values = _set(words[1], False), [_endpoint(item) for item in items if item]
        if whole is None or None in values:
            return None
        return reduce(lambda a, b: _merged(a, b, gt), map(_point, values), whole)
    if builder := _BUILDER.fullmatch(text):  # its head is the letter of its condition
        head, condition = builder[1].strip(), builder[2].strip()
        member = _MEMBER.match(head)
        domain = _set(head[member.end() :], gold) if member else _REALS
        region = _conditions(condition.replace(",", " and "), gold)
        if domain is None or region is None or region.letter != (member[1] if member else head):
            return None
        return _merged(domain, region.cuts, and_)
    brackets, items = bracketed_pair(text) or ("", ())
    values = [_endpoint(item) for item in items]
    if not values or None in values:
        return None
    if brackets == r"\{\}":
        return reduce(lambda a, b: _merged(a, b, or_), map(_point, values))
    if len(values) != 2 or brackets not in ("()", "[]", "(]", "[)") or not values[0] < values[1]:
        return None
    low, high = (values[0], brackets[0] == "("), (values[1], brackets[1] == "]")
    return (low, high) if low >= _REALS[0] and high <= _REALS[1] else None


def _endpoint(text: str) -> Any:
    """Return the value of an endpoint, to sixty digits, or an infinity; None for what is no real number."""
    text = text.strip()
    if text.lstrip("+-") in (r"\infty", "oo"):
        return -inf if text.startswith("-") else inf
    value = constant_of(text)
    return None if value is None or value.imag else context().mpf(context().nstr(value.real, 60))
