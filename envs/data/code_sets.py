"""The tests of a programming problem, as MBPP, HumanEval and APPS have them.

MBPP: Austin et al. 2021, arXiv 2108.07732. HumanEval: Chen et al. 2021, arXiv 2107.03374. APPS: Hendrycks et
al. 2021, arXiv 2105.09938.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from envs.data.questions import texts
from envs.data.records import Record
from envs.programs.gold import ProgramTests, write_tests

_SAME = """\
def same(got, wanted):
    def plain(value):
        return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
    return plain(got) == plain(wanted) or [plain(got)] == plain(wanted)
"""
"""APPS wraps some of the values that a function is to return in a list of one."""


def any_tests(row: Record, choices: tuple[str, ...]) -> str:
    """The tests of a user's row, by the fields that one of the sets has: test_list, test or input_output."""
    for field, read in (("test_list", mbpp), ("entry_point", humaneval), ("input_output", apps)):
        if row.values.get(field) is not None:
            return read(row, choices)
    raise row.error("test_list", "is missing; kind 'code' needs it, or test and entry_point, or input_output")


def mbpp(row: Record, choices: tuple[str, ...]) -> str:
    """The statements of test_list and challenge_test_list, with what they need before them."""
    tests = (*texts(row, "test_list"), *texts(row, "challenge_test_list"))
    setup = "\n".join((*texts(row, "test_setup_code"), *texts(row, "test_imports")))
    return _written(row, "test_list", ProgramTests(asserts=tests, setup=setup))


def humaneval(row: Record, choices: tuple[str, ...]) -> str:
    """The function check of the field test, called with the entry point."""
    start = row.whole("prompt", str(row.value("prompt", "prompt")))
    entry = row.value("entry_point", "entry_point")
    if not isinstance(entry, str) or not entry.isidentifier():
        raise row.error("entry_point", "is no name of a function", entry)
    test = f"{row.value('test', 'test')}\n\ncheck({entry})"
    return _written(row, "test", ProgramTests(asserts=(test,), setup=start, start=start, entry=entry))


def apps(row: Record, choices: tuple[str, ...]) -> str:
    """The inputs and outputs of input_output: of a program, or where it has fn_name, of a function."""
    field = "input_output"
    given = _mapping(row, field)
    inputs, outputs = given.get("inputs"), given.get("outputs")
    if not isinstance(inputs, Sequence) or not isinstance(outputs, Sequence) or len(inputs) != len(outputs):
        raise row.error(field, "needs as many inputs as outputs")
    name = given.get("fn_name")
    pairs = tuple(zip(inputs, outputs, strict=True))
    if name is None:
        return _written(row, field, ProgramTests(pairs=tuple((_lines(a), _lines(b)) for a, b in pairs)))
    if not isinstance(name, str) or not name.isidentifier():
        raise row.error(field, "has a fn_name that is no name", name)
    function = f"Solution().{name}" if "class Solution" in str(row.values.get("starter_code", "")) else name
    calls = tuple(f"assert same({function}(*{given!r}), {wanted!r})" for given, wanted in pairs)
    return _written(row, field, ProgramTests(asserts=calls, setup=_SAME))


def _written(row: Record, field: str, tests: ProgramTests) -> str:
    try:
        return write_tests(tests)
    except ValueError as error:
        raise row.error(field, str(error)) from error


def _mapping(row: Record, field: str) -> Mapping[str, object]:
    """Return a field that holds JSON, as a text or as it is."""
    value = row.value(field, field)
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise row.error(field, "is no JSON", value) from error
    if not isinstance(found, Mapping):
        raise row.error(field, "needs inputs and outputs", value)
    return found


def _lines(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
