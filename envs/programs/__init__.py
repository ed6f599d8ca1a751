"""Programs as answers: the gold answer of a problem of kind "code" is the text of its tests.

``harness.py`` finds the program in a reply and runs it in the sandbox, and ``remote.py`` is the protocol
between the two sessions of the harness.
"""

from __future__ import annotations

import ast
import json
from functools import lru_cache

import msgspec


class ProgramTests(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tests of a program: statements that must not raise, or inputs with the expected outputs.

    ``setup`` runs before the program and also before the tests in their own session. The tests call the
    program's ``entry``, even if ``setup`` also defines this name. A reply may continue the text ``start``,
    such as HumanEval's prompt.
    """

    asserts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    setup: str = ""
    start: str = ""
    entry: str = ""


def write_tests(tests: ProgramTests) -> str:
    """Return tests as a gold answer; raise ValueError if there are none, or if one is not valid Python.

    >>> write_tests(ProgramTests(asserts=("assert add(1, 2) == 3",)))
    '{"asserts": ["assert add(1, 2) == 3"]}'
    """
    if not (tests.asserts or tests.pairs):
        raise ValueError("has no tests")
    for text in (tests.setup, *tests.asserts):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"has a test that is not valid Python: {text[:200]!r}") from error
    return json.dumps(msgspec.to_builtins(tests))


@lru_cache(maxsize=4096)
def read_tests(gold: str) -> ProgramTests:
    """Return the tests in a gold answer; raise ValueError if it has no tests.

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
