r"""Compare relations, the names of values, and the sets of real numbers that relations and intervals define.

Relations: move everything to one side. Two relations are the same if one side is a constant multiple of the
other. So ``y=2x+1``, ``x=\frac{y-1}{2}`` and ``2x-y+1=0`` are the same line. For an inequality the constant
must be positive. Two linear relations that are not such multiples are different. Two relations without a
variable are different if they differ by more than a sign: ``f(3)=5`` and ``f(3)=6``. All other pairs are
undecided. A negated sign without an inverse in the grammar (``\not<``) is not parsed as a relation.

Names: two names denote different things if they have the same form and differ in a letter or a digit:
``AB=5`` and ``AC=5``. Names of different forms may denote the same thing: ``\angle A`` and ``\angle BAC``. If
the gold answer gives the value of a letter, an expression of that letter (``x^2``, ``-x``, ``|z|``) is
something else, but the length of a segment may have the segment's name. A derivative differs from its
function, and an inverse from the function that it inverts. Single letters (``y=2x`` may be solved for x),
words and sums are undecided.

Sets: intervals, solved inequalities, set-builders, differences and words become the cuts of the real line at
which the set begins and ends. Two sets are the same if their cuts are the same. A relation defines a set only
if it is solved, with its letter alone on one side: ``2x<6`` restates a problem. ``|x|<3`` is accepted only in
a gold answer. "and" between relations is the intersection, "or" the union. The result is None if any part of
the text cannot be parsed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import and_, gt, or_
from typing import Any, NamedTuple, TypeAlias, TypeVar

from envs.answers.formulas import called, constant_of, context, differences_at, is_close
from envs.answers.notation import DERIVATIVE, name_of, spelling, statement
from envs.answers.parts import bracketed_pair, split_at

T = TypeVar("T")

MAX_RELATIONS = 8
_SIGNS = {"=": "=", "<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\neq": "!="}
_MIRRORED = {">": "<", ">=": "<="}
_UNREAD = re.compile(r"\\not(?![A-Za-z])|\\n?(?:subset|supset|in|ni|mid|parallel)(?:eq)?(?![A-Za-z])|[≮≯≰≱∤]")
"""Signs that no rule here may ignore."""
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z\\])(?![a-z]{2,3}\()[A-Za-z]*[a-z]{2,}")
_FUNCTION = re.compile(r"(?:[A-Za-z]|\\[A-Za-z]{2,7})(?:\^\{?-1\}?|'*)(?:\([a-z]\))?")
_VARIABLE = re.compile(r"(?<![A-Za-z\\])(?![ei])[A-Za-z](?![A-Za-z])")
_SAME = r"(?:m\s?)?(?:\\(?:vec|angle|triangle|overrightarrow|hat)\s?)?\{?%s\}?(?:_\{?\w+\}?|\([^()]*\))*"
_LENGTH = r"(?:\||\\overline\{)?%s[|}]?"
_OF = re.compile(r"(?:P|E|D|V|Var|Cov|Pr|\\Pr|\\mathbb\{[EP]\})\s?[(\[].+")


class Relation(NamedTuple):
    """A sign ("=", "<", "<=" or "!=") and its two sides; ">" is stored as "<" with the sides swapped."""

    sign: str
    left: str
    right: str


def relations_of(text: str) -> tuple[Relation, ...]:
    """Return the relations of a chain from left to right; none if the text has none or cannot be parsed."""
    if _UNREAD.search(text):
        return ()
    sides, signs = split_at(text, frozenset(_SIGNS))
    if not signs or len(signs) > MAX_RELATIONS or not all(sides):
        return ()
    found = [Relation(_SIGNS[sign], *sides[k : k + 2]) for k, sign in enumerate(signs)]
    return tuple(
        Relation(_MIRRORED[sign], right, left) if sign in _MIRRORED else Relation(sign, left, right)
        for sign, left, right in found
    )


def same_relations(answer: Sequence[Relation], gold: Sequence[Relation]) -> bool | None:
    r"""Return whether each relation of either chain equals one of the other chain; None if unknown.

    >>> def same(a, b): return same_relations(relations_of(a), relations_of(b))
    >>> same("y=2x+1", r"x=\frac{y-1}{2}"), same("y=2x+1", "y=2x-1"), same("-x>-3", "x<3"), same("x>3", "x<3")
    (True, False, True, False)
    """
    if len(answer) != len(gold) or not gold:
        return None
    return matched(answer, gold, same_relation)


def matched(left: Sequence[T], right: Sequence[T], same: Callable[[T, T], bool | None]) -> bool | None:
    """Return whether every element of either sequence equals one of the other sequence; None if unknown."""
    table = [[same(a, b) for b in right] for a in left]
    lines = [*table, *([row[k] for row in table] for k in range(len(right)))]
    if any(all(verdict is False for verdict in line) for line in lines):
        return False
    return True if all(True in line for line in lines) else None


def same_relation(answer: Relation, gold: Relation) -> bool | None:
    """Return whether two relations, moved to one side, are equal up to a constant; None if unknown."""
    functions = called(f"{answer.left}={answer.right}", f"{gold.left}={gold.right}")
    above, below = (differences_at(side.left, side.right, (0, 1, 2, 3), functions) for side in (answer, gold))
    if above is None or below is None:
        return None
    # linear: the value midway between two points is the mean of their values
    linear = all(is_close(2 * values[3], values[0] + values[1]) is True for values in (above, below))
    if answer.sign != gold.sign or not all((*above, *below)):
        return False if linear and answer.sign != gold.sign else None
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    if all(is_close(values[0], values[1]) is not False for values in (above, below)):
        if not is_close(abs(ratios[0]), 1):  # any two constants are multiples: f(3)=5 and f(3)=6
            return False
        if not functions:
            return None
    if all(is_close(ratio, ratios[0]) for ratio in ratios):
        positive = ratios[0].imag == 0 and ratios[0].real > 0
        return bool(positive) or gold.sign in ("=", "!=")
    return False if linear else None


def names_differ(answer: str, gold: str) -> bool:
    """Return whether two texts (as ``clean`` returns them) state values of different things."""
    left, right, done = name_of(answer), name_of(gold), statement(answer)
    alone = re.search(rf"(?<![A-Za-z\\]){re.escape(right)}(?![A-Za-z])", done) and not _WORD.search(done)
    if right and alone and not _VARIABLE.search(gold[len(right) :]):
        same = (_SAME,) if len(right) == 1 else (_SAME, _LENGTH)
        return not any(re.fullmatch(form % re.escape(right), done) for form in same)
    if not left or not right or left in gold[len(right) :] or right in answer[len(left) :] or left == right:
        return False
    if _FUNCTION.fullmatch(left) and _FUNCTION.fullmatch(right) and "(" in left and "(" in right:
        return left.casefold() != right.casefold()
    if _OF.fullmatch(left) and _OF.fullmatch(right) and left[0] == right[0]:
        left, right = (
            name.replace("[", "(").replace("]", ")").replace(r"\mid", "|") for name in (left, right)
        )
        same_signs = _form(left) == _form(right) and _signs(left) == _signs(right) and "|" not in left
        return not same_signs and spelling(left) != spelling(right)
    derived = [DERIVATIVE.fullmatch(name) is not None for name in (left, right)]
    if any(derived):
        return not all(derived) and bool(_FUNCTION.fullmatch(right if derived[0] else left))
    if min(len(left), len(right)) < 2 or _WORD.search(left) or _WORD.search(right):
        return False
    if ("^{-1}" in left) != ("^{-1}" in right):
        return left.replace("^{-1}", "") == right.replace("^{-1}", "")
    return _form(left) == _form(right) and (r"\angle" in left or _signs(left) != _signs(right))


def _form(name: str) -> str:
    """Return the form of a name: its letters and digits are replaced by placeholders."""
    plain = re.sub(r"\d+", "0", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", _COMMAND.sub("\\\\", name))))
    return spelling(plain) + " ".join(_COMMAND.findall(name))


def _signs(name: str) -> Counter[str]:
    return Counter(re.findall(r"[A-Za-z]|\d+", _COMMAND.sub(" ", name)))


Cuts: TypeAlias = tuple[tuple[Any, bool], ...]
"""The cuts at which a set begins and ends, in turn: a number, and whether the cut lies after the number."""

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
    """A set of reals, and the letter that it restricts ("" without one).

    ``related`` says whether the set was written with relations.
    """

    cuts: Cuts
    letter: str = ""
    related: bool = False

    def same(self, other: Region) -> bool:
        """Return whether both are the same set and do not restrict different letters."""
        return self.cuts == other.cuts and (not (self.letter and other.letter) or self.letter == other.letter)


def region_of(text: str, *, gold: bool = False) -> Region | None:
    """Return the set of reals that a text (as ``clean`` returns it) defines; None if it cannot be parsed."""
    if len(text) > MAX_CHARS:
        return None
    text = text.strip()
    if listed := _conditions(text, gold):
        return listed
    member = _MEMBER.match(text)
    cuts = _set(text[member.end() :] if member else text, gold)
    return None if cuts is None else Region(cuts, member[1] if member else "")


def _merged(left: Cuts, right: Cuts, keep: Callable[[bool, bool], bool]) -> Cuts:
    """Return the union, intersection or difference of two sets, as ``keep`` (or, and, >) says."""
    merged: list[tuple[Any, bool]] = []
    for cut in sorted({*left, *right}):
        holds = keep(*(sum(each <= cut for each in cuts) % 2 == 1 for cuts in (left, right)))
        if holds != len(merged) % 2:
            merged.append(cut)
    return tuple(merged)


def _point(value: Any) -> Cuts:
    return (value, False), (value, True)


def _conditions(text: str, gold: bool) -> Region | None:
    """Parse relations joined by "and", by "or" or by commas; None if there is no single meaning.

    Commas between relations that each exclude a point mean "and".
    """
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
    ):  # the comma means the one of "and" and "or" that is not trivial
        half_lines = all(len(each) == 2 and each[0][0] != each[1][0] for each in sets)
        if len(sets) != 2 or not half_lines or bool(both) != (either == _REALS):
            return None
        cuts = both or either
    return Region(cuts, letters.pop(), related=True)


def _condition(text: str, gold: bool) -> Region | None:
    """Parse a chain of relations of one letter that is alone on its side: ``1<x<3``."""
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
    """Return the part of the real line that one relation of a letter and a constant allows."""
    below = relation.left == letter
    bound = _endpoint(relation.right if below else relation.left)
    if bound is None or relation.left == relation.right:
        return None
    if relation.sign in ("=", "!="):
        return _point(bound) if relation.sign == "=" else _merged(_REALS, _point(bound), gt)
    closed = relation.sign == "<=" and abs(bound) != inf
    return (_REALS[0], (bound, closed)) if below else ((bound, not closed), _REALS[1])


def _set(text: str, gold: bool) -> Cuts | None:
    """Parse an interval, a set of numbers, a set-builder, or a union, intersection or difference of sets."""
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
    if builder := _BUILDER.fullmatch(text):  # the head must be the letter of the condition
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
    """Return the value of an endpoint to sixty digits, or an infinity; None if it is not a real number."""
    text = text.strip()
    if text.lstrip("+-") in (r"\infty", "oo"):
        return -inf if text.startswith("-") else inf
    value = constant_of(text)
    return None if value is None or value.imag else context().mpf(context().nstr(value.real, 60))
