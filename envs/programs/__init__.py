"""Programs as answers: the tests of a problem of kind "code", as the text that is its gold answer.

``harness.py`` finds the program of a reply and runs it in the sandbox, ``remote.py`` is the protocol of its
two sessions.
"""

from __future__ import annotations

import ast
import json
from functools import lru_cache

import msgspec


class ProgramTests(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tests of a program: statements that must not raise, or inputs with the outputs that are wanted.

    ``setup`` is run before the program, and again before the tests where they are run; what it defines as
    ``entry`` is the program's to define. A reply may go on from ``start``, as from HumanEval's prompt.
    """

    asserts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    setup: str = ""
    start: str = ""
    entry: str = ""


def write_tests(tests: ProgramTests) -> str:
    """Return tests as a gold answer; ValueError if there are none, or one is no Python.

    >>> write_tests(ProgramTests(asserts=("assert add(1, 2) == 3",)))
    '{"asserts": ["assert add(1, 2) == 3"]}'
    """
    if not (tests.asserts or tests.pairs):
        raise ValueError("has no tests")
    for text in (tests.setup, *tests.asserts):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"has a test that is no Python: {text[:200]!r}") from error
    return json.dumps(msgspec.to_builtins(tests))


@lru_cache(maxsize=4096)
def read_tests(gold: str) -> ProgramTests:
    """Return the tests of a gold answer; ValueError if it is none.

    >>> read_tests('{"pairs": [["1 2", "3"]]}').pairs
    (('1 2', '3'),)
    """
    try:
        tests = msgspec.json.decode(gold, type=ProgramTests)
    except (ValueError, RecursionError):
        tests = ProgramTests()
    if not (tests.asserts or tests.pairs):
        raise ValueError(f"gold: {gold[:60]!r} has no tests of a program")
    return tests
