"""The tests of a problem of kind "code", as the text that is its gold answer."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import cast


@dataclass(frozen=True, slots=True)
class ProgramTests:
    """Tests of a program: statements that must not raise, or inputs with the outputs that are wanted.

    ``setup`` is run before the program, and again before the tests where they are run; what it defines as
    ``entry`` is the program's to define. A reply may go on from ``start``, as from HumanEval's prompt.
    """

    asserts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    setup: str = ""
    start: str = ""
    entry: str = ""

    def __len__(self) -> int:
        return len(self.asserts) + len(self.pairs)


def write_tests(tests: ProgramTests) -> str:
    """Return tests as a gold answer; ValueError where there are none, or one is no Python.

    >>> write_tests(ProgramTests(asserts=("assert add(1, 2) == 3",)))
    '{"asserts": ["assert add(1, 2) == 3"]}'
    """
    if not len(tests):
        raise ValueError("has no tests")
    for text in (tests.setup, *tests.asserts):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"has a test that is no Python: {text[:200]!r}") from error
    return json.dumps({name: value for name, value in asdict(tests).items() if value})


@lru_cache(maxsize=4096)
def read_tests(gold: str) -> ProgramTests:
    """Return the tests of a gold answer; ValueError where it is none.

    >>> read_tests('{"pairs": [["1 2", "3"]]}').pairs
    (('1 2', '3'),)
    """
    try:
        values = json.loads(gold)
        if not isinstance(values, Mapping):
            raise TypeError
        found = cast(Mapping[str, object], values)
        tests = ProgramTests(
            asserts=tuple(_text(one) for one in cast(list[object], found.get("asserts", ()))),
            pairs=tuple((_text(a), _text(b)) for a, b in cast(list[list[object]], found.get("pairs", ()))),
            setup=_text(found.get("setup", "")),
            start=_text(found.get("start", "")),
            entry=_text(found.get("entry", "")),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"gold: {gold[:60]!r} has no tests of a program") from error
    if not len(tests):
        raise ValueError(f"gold: {gold[:60]!r} has no tests of a program")
    return tests


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
