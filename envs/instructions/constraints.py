"""Parse constraints, validate every argument, and find which constraints a response meets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from debate.settings import did_you_mean
from envs.errors import DataError, shorten
from envs.instructions.arguments import Instructions, Unfit
from envs.instructions.ifbench import IFBENCH
from envs.instructions.ifeval import DETECTED, IFEVAL, OPEN_INSTRUCT, RLVR_IFEVAL
from envs.instructions.text import require_detector

TYPES: Instructions = {**IFEVAL, **IFBENCH, **OPEN_INSTRUCT, **RLVR_IFEVAL}
"""Every known instruction, by its published name."""
FIELDS = ("instruction_id_list", "kwargs")
_MOST = 64
_AT_MOST = (("nth_paragraph", "num_paragraphs"), ("i", "N"), ("min_words", "max_words"), ("n_start", "n_end"))
"""Pairs of arguments: if both are given, the first may not be greater than the second."""


class ConstraintError(DataError):
    """Invalid constraints: the ``field`` of the row, the ``problem`` with it, and its ``value``."""

    def __init__(self, field: str, problem: str, value: object) -> None:
        super().__init__(f"{field}: {problem} (value {shorten(value)})")
        self.field, self.problem, self.value = field, problem, value


@dataclass(frozen=True, slots=True)
class Constraint:
    """One instruction with its arguments; ``check`` returns whether a response follows it."""

    id: str
    check: Callable[[str], bool]


def write_constraints(ids: object, kwargs: object) -> str:
    """Return constraints as the answer of a problem; raise ConstraintError if they are invalid.

    >>> write_constraints(["punctuation:no_comma"], [{"num_words": None}])
    '{"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}'
    """
    pairs = list(_checked(ids, kwargs))
    return json.dumps({FIELDS[0]: [id_ for id_, _ in pairs], FIELDS[1]: [given for _, given in pairs]})


@lru_cache(maxsize=4096)
def constraints_of(answer: str) -> tuple[Constraint, ...]:
    """Return the constraints in a problem's answer; raise ConstraintError if they are invalid."""
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or set(data) != set(FIELDS):
        raise ConstraintError("answer", f"needs a JSON object of {' and '.join(FIELDS)}", answer)
    checked = _checked(*(data[field] for field in FIELDS))
    return tuple(Constraint(id_, partial(TYPES[id_].check, **arguments)) for id_, arguments in checked)


def follows(response: str, constraints: Sequence[Constraint], *, loose: bool = False) -> tuple[bool, ...]:
    r"""Return for each constraint whether the response meets it; an empty response meets none.

    With ``loose``, a constraint is met if any of eight variants of the response meets it: with or without
    stars, with or without the first line, and with or without the last line (section 2.2 of the paper).

    >>> ids = ["punctuation:no_comma", "startend:quotation"]
    >>> constraints = constraints_of(write_constraints(ids, [{}, {}]))
    >>> follows('"No"', constraints), follows("No, no", constraints), follows(" ", constraints)
    ((True, True), (False, False), (False, False))
    >>> follows('Sure, here:\n"No"', constraints), follows('Sure, here:\n"No"', constraints, loose=True)
    ((False, False), (True, True))
    """
    texts = [text for text in (_readings(response) if loose else [response]) if text.strip()]
    return tuple(any(map(constraint.check, texts)) for constraint in constraints)


def _readings(response: str) -> list[str]:
    lines = response.split("\n")
    parts = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    return [text for part in (response, *parts) for text in (part, part.replace("*", ""))]


def _checked(ids: object, kwargs: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each instruction with its arguments; an argument of None counts as not given."""
    id_field, kwargs_field = FIELDS
    if not isinstance(ids, list) or not 1 <= len(ids) <= _MOST:
        raise ConstraintError(id_field, f"needs a list of 1 to {_MOST} instructions", ids)
    if not isinstance(kwargs, list) or len(kwargs) != len(ids):
        raise ConstraintError(
            kwargs_field, f"needs a list of {len(ids)} objects, one per instruction", kwargs
        )
    for id_, given in zip(ids, kwargs, strict=True):
        if not isinstance(id_, str) or id_ not in TYPES:
            hint = did_you_mean(str(id_)[:80], TYPES, f"docs/instructions.md lists all {len(TYPES)}")
            raise ConstraintError(id_field, f"{shorten(id_)} is not a known instruction; {hint}", id_)
        if given is not None and not isinstance(given, Mapping):
            raise ConstraintError(kwargs_field, f"{id_} needs an object of arguments", given)
        yield id_, _arguments(id_, given or {})


def _arguments(id_: str, given: Mapping[str, object]) -> dict[str, object]:
    if id_ in DETECTED:
        require_detector()
    readers = TYPES[id_].readers
    present = {name: value for name, value in given.items() if value is not None}
    for name in present:
        if name not in readers:
            known = ", ".join(readers) or "none"
            raise ConstraintError("kwargs", f"{id_} takes no {shorten(name)}, only: {known}", present[name])
    arguments: dict[str, object] = {}
    for name, read in readers.items():
        if name not in present:
            raise ConstraintError("kwargs", f"{id_} lacks {name!r}", dict(present))
        try:
            arguments[name] = read(present[name])
        except Unfit as fault:
            raise ConstraintError("kwargs", f"{id_}: {name!r} {fault}", present[name]) from fault
    for name, limit in _AT_MOST:
        value, most = arguments.get(name), arguments.get(limit)
        if isinstance(value, int) and isinstance(most, int) and value > most:
            raise ConstraintError("kwargs", f"{id_}: {name!r} is greater than {limit}={most}", value)
    return arguments
