r"""Compare lists, sets, tuples, intervals and matrices part by part, and chains of equations side by side.

The parts of a tuple, an interval or a matrix are ordered, and the brackets count. A bare list, a set and a
union are not ordered, and repeated parts count once. A list never equals one of its parts, so several
guesses are wrong.
A bare list with commas may stand for a tuple in the same order. Assignments to different names may stand for
a list or a tuple. Shapes are compared before values.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from envs.answers.formulas import same_rounded, same_value
from envs.answers.notation import sides, spelling
from envs.answers.numbers import measure_at_end, parse_number, without_unit
from envs.answers.parts import ASSIGNMENT, Parts, parts_of, tuple_of
from envs.answers.relations import matched, region_of, relations_of, same_relations

MAX_PARTS = 24
_TWO = re.compile(r"[1-9]\d{0,2}(?:,[1-9]\d{2})+", re.ASCII)
_RELATION = re.compile(r"[<>≤≥≠]|!=|\\(?:[lg](?:e|eq|eqslant|eqq|t)|neq?)(?![A-Za-z])|\\not\s?=")
_NAMED_SET = re.compile(
    r"\\(?:mathbb|mathcal|R|Z|N|Q|C|setminus|backslash|emptyset|cap|cup)(?![A-Za-z])|[ℝℤℕℚ]"
)
_COUNT = re.compile(r"(\d[\d.,/]*) ([a-z]{3,})", re.ASCII)
_INDEX = re.compile(r"_\{?\d\}?$", re.ASCII)
"""An index that numbers the values of a letter: x_1 and x_2 are values of x if the other answer has x."""


def same_structure(answer: str, gold: str) -> bool | None:
    r"""Return whether two answers (as ``clean`` returns them) are equal; None if these rules cannot decide.

    >>> same_structure("(1, 2)", "(1,2)"), same_structure("(2,1)", "(1,2)"), same_structure("2,1", "1, 2")
    (True, False, True)
    >>> same_structure("[0,1)", "(0,1)"), same_structure(r"1 \pm \sqrt{2}", r"1-\sqrt{2}, 1+\sqrt{2}")
    (False, True)
    """
    left, right = parts_of(answer), parts_of(gold)
    if left is None and right is None:
        return _same_scalar(answer, gold)
    if left is None and right and right.bracketed and _TWO.fullmatch(answer):
        left = Parts("list", (answer,), "commas")
    if left is None or right is None:
        interval = left and left.bracketed and len(left.items) == 2 and _RELATION.search(gold)
        one, parts = (gold, left) if left else (answer, right)
        assert parts is not None
        if interval or _NAMED_SET.search(one) or parts.kind.startswith("matrix"):
            return None  # both may denote a set or a matrix
        if parts.kind == "list" and _RELATION.search(one):
            inner = [(item, parts_of(item)) for item in parts.items]
            regions = all(_RELATION.search(item) or (each and each.bracketed) for item, each in inner)
            return None if regions else False
        return False if len(parts.items) > 1 else None  # a single formula never equals several parts
    if max(len(left.items), len(right.items)) > MAX_PARTS:
        return None if left.kind == right.kind and len(right.items) > MAX_PARTS else False
    if left.kind == right.kind == "list":
        return _same_lists(left, right)
    if right.bracketed and left.kind == "list":
        return _same_ordered(_as_tuple(left, right.kind), right)
    if left.bracketed and right.kind == "list":
        named = None if right.joined == "set" else tuple_of(right.items)
        return _same_ordered(left, Parts("()", named[1]) if named else _only(right))
    return _same_ordered(left, right)


def out_of_order(answer: str, gold: str) -> bool:
    """Return whether two lists differ when compared in order; False for unions and other shapes."""
    left, right = parts_of(answer), parts_of(gold)
    lists = left and right and left.kind == right.kind == "list"
    if not left or not right or not lists or "union" in (left.joined, right.joined):
        return False
    if len(left.items) != len(right.items) or len(right.items) > MAX_PARTS:
        return left.items != right.items
    spelled = {spelling(item) for item in right.items}
    verdicts = ((item, _same_item(item, truth)) for item, truth in zip(left.items, right.items, strict=True))
    return any(same is False or (same is None and spelling(item) in spelled) for item, same in verdicts)


def _as_tuple(left: Parts, brackets: str) -> Parts | None:
    """Return the tuple that a list may stand for: its comma-separated items, or its assigned values."""
    if only := _only(left):
        return only
    endless = any(r"\infty" in item for item in left.items)
    if brackets != "()" or endless or left.joined not in ("commas", "and", "or"):
        return None
    if named := tuple_of(left.items):
        return Parts(brackets, named[1])
    assigned = any(ASSIGNMENT.fullmatch(item) for item in left.items)
    return None if assigned or left.joined in ("and", "or") else Parts(brackets, left.items)


def _only(parts: Parts) -> Parts | None:
    """Return the parts of a set's only item; None for anything else."""
    return parts_of(parts.items[0]) if parts.joined == "set" and len(parts.items) == 1 else None


def _same_ordered(left: Parts | None, right: Parts | None) -> bool | None:
    if left is None or right is None:
        return False
    # a vector is a column or is in angle brackets; a tuple in round brackets may be the same vector
    a_vector, vector = (
        each.kind in (r"\langle\rangle", f"matrix {len(each.items)}") for each in (left, right)
    )
    if left.kind != right.kind and not (vector and (a_vector or left.kind == "()")):
        return False
    a, b = _apart(left.items, right.items)
    return len(a) == len(b) and _all(_same_item(c, d) for c, d in zip(a, b, strict=True))


def _apart(left: Sequence[str], right: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the items of two lists; if the lengths differ, an item like 100,200 is split into two."""
    if len(left) == len(right):
        return left, right
    a, b = (
        [part for item in items for part in (item.split(",") if _TWO.fullmatch(item) else (item,))]
        for items in (left, right)
    )
    return a, b


def _same_lists(left: Parts, right: Parts) -> bool | None:
    if (left.joined == "union") != (right.joined == "union"):
        listed, union = (right, left) if left.joined == "union" else (left, right)
        inner = [(item, parts_of(item)) for item in listed.items if listed.joined != "set"]
        intervals = any(
            each and each.bracketed and (each.kind != "()" or r"\infty" in item) for item, each in inner
        )
        if not intervals and not all(
            (each := parts_of(item)) and each.joined == "set" for item in union.items
        ):
            return False  # points are not intervals
    items = (*left.items, *right.items)
    if "or" in (left.joined, right.joined) and left.joined != right.joined:
        # "and" differs from "or" between relations, unless all are values of one name
        assigned = [ASSIGNMENT.fullmatch(item) for item in items]
        names = {match[1].strip() for match in assigned if match}
        names = {letter if (letter := _INDEX.sub("", name)) in names else name for name in names}
        relations = all("=" in item or _RELATION.search(item) for item in items)
        if relations and (len(names) != 1 or not all(assigned)):
            return False
    if (named := _by_name(left, right)) is not None:
        return named
    several = min(len(left.items), len(right.items)) > 1
    return matched(*((left.items, right.items) if several else _apart(left.items, right.items)), _same_item)


def _by_name(left: Parts, right: Parts) -> bool | None:
    """Return whether lists of assignments to the same names, or of counts of the same things, are equal."""
    for pattern, key, value in ((_COUNT, 2, 1), (ASSIGNMENT, 1, 2)):
        matches = [[pattern.fullmatch(item) for item in parts.items] for parts in (left, right)]
        if not all(match for side in matches for match in side):
            continue
        a, b = ({spelling(match[key]): match[value] for match in side if match} for side in matches)
        if pattern is ASSIGNMENT:  # ignore the case of names; x_1 and x_2 are x if the other side has x
            names = [{"".join(sorted(name.casefold())) for name in side} for side in (a, b)]
            ours, theirs = (
                {_without_index(name, other) for name in own} for own, other in (names, names[::-1])
            )
            if ours != theirs:
                return False
        once = pattern is _COUNT or (len(a) == len(left.items) and len(b) == len(right.items))
        return _all(_same_item(a[name], b[name]) for name in a) if a.keys() == b.keys() and once else None
    return None


def _without_index(name: str, others: Container[str]) -> str:
    letters = "".join(re.findall("[a-z]", name))
    return letters if letters in others and re.fullmatch(r"\d*_?[a-z]", name) else name


def _same_item(left: str, right: str) -> bool | None:
    if spelling(left) == spelling(right):
        return True
    if r"\infty" in left + right:
        endless = r"\infty" in (left.lstrip("+-"), right.lstrip("+-"))
        return left.removeprefix("+") == right.removeprefix("+") if endless else None
    return same_structure(left, right)


def _same_scalar(answer: str, gold: str) -> bool | None:
    """Return whether every side of the answer's chain of equations equals the gold answer's only side."""
    if bool(_RELATION.search(answer)) != bool(_RELATION.search(gold)):
        return None if _NAMED_SET.search(answer + gold) else False
    if _RELATION.search(gold):
        claim, truth = region_of(answer), region_of(gold)
        return (
            claim.same(truth) if claim and truth else same_relations(relations_of(answer), relations_of(gold))
        )
    truths = sides(gold)
    if len(truths) > 1:
        return None
    if (measure := measure_at_end(answer)) and measure_at_end(gold) not in ("", measure):
        return False

    def same_formula(side: str) -> bool | None:
        a, b, truth = parse_number(side), parse_number(truths[0]), without_unit(truths[0])
        same = a.same(b) if a and b else same_value(side, truth)
        return same or same_rounded(side, truth) or same

    return _all(map(same_formula, sides(without_unit(answer))))


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    values = list(verdicts)
    if False in values:
        return False
    return None if None in values else True
