"""Programming problems: the tests of a row, and its question, as MBPP, HumanEval and APPS have them.

MBPP: Austin et al. 2021, arXiv 2108.07732. HumanEval: Chen et al. 2021, arXiv 2107.03374. APPS: Hendrycks et
al. 2021, arXiv 2105.09938.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from envs.data.records import Record
from envs.programs.gold import ProgramTests, write_tests

_SAME = """\
def same(got, wanted):
    def plain(value):
        return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
    return plain(got) == plain(wanted) or [plain(got)] == plain(wanted)
"""
"""APPS wraps some of the values that a function is to return in a list of one."""
BLOCK = "Write the whole program in one ```python block."


def any_tests(row: Record, choices: tuple[str, ...]) -> str:
    """The tests of a user's row, by the fields that one of the sets has: test_list, test or input_output."""
    for field, read in (("test_list", mbpp), ("entry_point", humaneval), ("input_output", apps)):
        if row.values.get(field) is not None:
            return read(row, choices)
    raise row.error("test_list", "is missing; kind 'code' needs it, or test and entry_point, or input_output")


def mbpp(row: Record, choices: tuple[str, ...]) -> str:
    """The statements of test_list and challenge_test_list, with what they need before them."""
    tests = (*_texts(row, "test_list"), *_texts(row, "challenge_test_list"))
    setup = "\n".join((*_texts(row, "test_setup_code"), *_texts(row, "test_imports")))
    return _written(row, "test_list", ProgramTests(asserts=tests, setup=setup))


def mbpp_question(row: Record) -> str:
    """The task with its first test, which names the function; the others stay hidden."""
    task, tests = row.text("question", "text", "prompt"), _texts(row, "test_list")
    return f"{task}\n\n```python\n{tests[0]}\n```\n\n{BLOCK}" if tests else task


def humaneval(row: Record, choices: tuple[str, ...]) -> str:
    """The function check of the field test, called with the entry point."""
    start, entry = row.whole("prompt", str(row.value("prompt", "prompt"))), _name(row, "entry_point")
    test = f"{row.value('test', 'test')}\n\ncheck({entry})"
    return _written(row, "test", ProgramTests(asserts=(test,), setup=start, start=start, entry=entry))


def humaneval_question(row: Record) -> str:
    """The beginning of the program, with what it is to do."""
    start = str(row.value("prompt", "prompt")).rstrip()
    return f"Complete this program.\n\n```python\n{start}\n```\n\n{BLOCK}"


def apps(row: Record, choices: tuple[str, ...]) -> str:
    """The inputs and outputs of input_output: of a program, or where it has fn_name, of a function."""
    field = "input_output"
    given = _mapping(row, field, row.value(field, field))
    inputs, outputs = given.get("inputs"), given.get("outputs")
    if not isinstance(inputs, Sequence) or not isinstance(outputs, Sequence) or len(inputs) != len(outputs):
        raise row.error(field, "needs as many inputs as outputs")
    name = given.get("fn_name")
    if name is None:
        pairs = tuple((_lines(one), _lines(other)) for one, other in zip(inputs, outputs, strict=True))
        return _written(row, field, ProgramTests(pairs=pairs))
    if not isinstance(name, str) or not name.isidentifier():
        raise row.error(field, "has a fn_name that is no name", name)
    function = f"Solution().{name}" if "class Solution" in str(row.values.get("starter_code", "")) else name
    calls = tuple(
        f"assert same({function}(*{one!r}), {other!r})" for one, other in zip(inputs, outputs, strict=True)
    )
    return _written(row, field, ProgramTests(asserts=calls, setup=_SAME))


def apps_question(row: Record) -> str:
    """The question, and what form the program has: it reads standard input, or begins as starter_code."""
    start = row.values.get("starter_code")
    form = (
        f"Begin with this code.\n\n```python\n{start.rstrip()}\n```\n\n"
        if isinstance(start, str) and start.strip()
        else "The program reads standard input and writes to standard output. "
    )
    return f"{row.text('question', 'question')}\n\n{form}{BLOCK}"


def _written(row: Record, field: str, tests: ProgramTests) -> str:
    try:
        return write_tests(tests)
    except ValueError as error:
        raise row.error(field, str(error)) from error


def _texts(row: Record, field: str) -> tuple[str, ...]:
    value = row.values.get(field)
    items = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []
    texts = tuple(item for item in items if isinstance(item, str) and item.strip())
    if len(texts) < len(items) and not isinstance(value, str):
        raise row.error(field, "needs texts, none of them empty", value)
    return texts


def _name(row: Record, field: str) -> str:
    value = row.value(field, field)
    if not isinstance(value, str) or not value.isidentifier():
        raise row.error(field, "is no name of a function", value)
    return value


def _mapping(row: Record, field: str, value: object) -> Mapping[str, object]:
    """Return a field that holds JSON, as a text or as it is."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise row.error(field, "is no JSON", value) from error
    if not isinstance(found, Mapping):
        raise row.error(field, "needs inputs and outputs", value)
    return cast(Mapping[str, object], found)


def _lines(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
