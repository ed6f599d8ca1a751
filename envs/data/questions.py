"""Parse the question and the tests of a row in each data set's format, and decide which rows to keep."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from debate.types import Kind
from envs.data.records import Record
from envs.programs import ProgramTests, write_tests

SHOWN, CONTINUED = 100, 50  # number of words of an article in the question, and in the continuation
BLOCK = "Write the whole program in one ```python block."
TASKS: Mapping[str, Kind] = {"gsm8k": "number", "math": "expression", "ifeval": "instructions"}
"""The kind of an Open-Instruct row, by its field "dataset"."""

_ASKED = re.compile(r"(?:^|\n\n)(?:Question|Problem):\s*")
_TO_ANSWER = re.compile(r"\s*\n\s*(?:Answer|Solution):\s*\Z")
_BOX_REQUEST = re.compile(r"\s*Present the answer in LaTex format: \\boxed\{Your answer\}\s*\Z")
_TOKENIZED = re.compile(r" @([-,.])@ ")
_BEFORE = re.compile(r" +([,.;:!?%)\]])")
_BEHIND = re.compile(r"([(\[]) +")


def of_fields(*names: str) -> Callable[[Record], str]:
    """Return a parser that takes the question from the first of these fields that a row has."""
    return lambda row: row.text("question", *names)


def question(row: Record) -> str:
    """Return the question or problem field; from a list of chat messages, the user's last message."""
    names = ("problem", "question", "Problem")
    found = row.find("question", *names)
    asked = last_of_user(found[1]) if found else None
    return row.text("question", *names) if asked is None else row.whole("question", asked.strip())


def last_of_user(value: object) -> str | None:
    """Return the content of the last message with role "user"; None if there is none.

    >>> last_of_user([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}])
    '1+1?'
    """
    turns = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    asked = [
        turn.get("content") for turn in turns if isinstance(turn, Mapping) and turn.get("role") == "user"
    ]
    return asked[-1] if asked and isinstance(asked[-1], str) else None


def message(row: Record) -> str:
    """Return the user's last message, without the request for a box that Eurus-2 adds."""
    names = ("messages", "prompt")
    field, value = row.field("question", *names), row.value("question", *names)
    content = last_of_user(value)
    if content is None:
        raise row.error(field, "needs a list of messages with one of role 'user'", value)
    text = _BOX_REQUEST.sub("", content).strip()
    if not text:
        raise row.error(field, "is empty", value)
    return row.whole(field, text)


def task(row: Record) -> Kind:
    """Return the kind of an Open-Instruct row; raise the row's error for a verifier that we do not have."""
    name = str(row.values.get("dataset", "")).lower()
    if name not in TASKS:
        known = ", ".join(TASKS)
        raise row.error("dataset", f"names an unknown verifier; known: {known}", name)
    return TASKS[name]


def without_shots(row: Record) -> str:
    """Return the user's last message; if it starts with worked examples, only its last question."""
    text = message(row)
    if task(row) == "instructions":
        return text
    return _TO_ANSWER.sub("", _ASKED.split(text)[-1]).strip() or text


def body_and_question(row: Record) -> str:
    """Return the story and the question, which SVAMP keeps in two fields."""
    if "question" in row.renamed:
        return row.text("question")
    body = row.text("body", "Body").rstrip()
    return f"{body}{'' if body[-1] in '.?!' else '.'} {row.text('question', 'Question')}"


def with_context(row: Record) -> str:
    """Return the question after its context, the field for shared premises in OlympiadBench."""
    context = row.find("context", "context")
    before = f"{context[1]}\n" if context and context[1] else ""
    return before + question(row)


def arc_question(row: Record) -> str:
    """Return the question's text, which ARC's original file keeps in the question's "stem"."""
    value = row.value("question", "question")
    stem = value.get("stem") if isinstance(value, Mapping) else None
    return stem.strip() if isinstance(stem, str) and stem.strip() else row.text("question", "question")


def mbpp_question(row: Record) -> str:
    """Return the task with its first test, which shows the function's name; the other tests stay hidden."""
    task, tests = row.text("question", "text", "prompt"), texts(row, "test_list")
    return f"{task}\n\n```python\n{tests[0]}\n```\n\n{BLOCK}" if tests else task


def humaneval_question(row: Record) -> str:
    """Return a request to complete the program's beginning, which describes the task."""
    start = str(row.value("prompt", "prompt")).rstrip()
    return f"Complete this program.\n\n```python\n{start}\n```\n\n{BLOCK}"


def apps_question(row: Record) -> str:
    """Return the question and the required program: one that reads standard input or extends starter_code."""
    start = row.values.get("starter_code")
    form = (
        f"Begin with this code.\n\n```python\n{start.rstrip()}\n```\n\n"
        if isinstance(start, str) and start.strip()
        else "The program reads standard input and writes to standard output. "
    )
    return f"{row.text('question', 'question')}\n\n{form}{BLOCK}"


def texts(row: Record, field: str) -> tuple[str, ...]:
    """Return the texts in a field, a list or a single text; raise the row's error if an item has no text."""
    value = row.values.get(field)
    items = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []
    found = tuple(item for item in items if isinstance(item, str) and item.strip())
    if len(found) < len(items) and not isinstance(value, str):
        raise row.error(field, "needs texts, none of them empty", value)
    return found


def to_be_continued(row: Record) -> str:
    """Return a request to continue a text, and the first words of the row's paragraph."""
    return f"Continue this text by about {CONTINUED} words:\n\n{_printed(_words(row)[:SHOWN])}"


def continuation(row: Record, choices: tuple[str, ...]) -> str:
    """Return the paragraph's words after the ones in the question, as its gold."""
    return _printed(_words(row)[SHOWN : SHOWN + CONTINUED])


def _words(row: Record) -> list[str]:
    return _TOKENIZED.sub(r"\1", row.text("question", "text")).split()


def _printed(words: list[str]) -> str:
    """Return the words as text, without the blanks that WikiText puts around punctuation."""
    return _BEHIND.sub(r"\1", _BEFORE.sub(r"\1", " ".join(words)))


def is_long(row: Record) -> bool:
    """Return whether a row has enough words for the question and the continuation, unlike a heading."""
    text = row.values.get("text")
    return isinstance(text, str) and len(text.split()) >= SHOWN + CONTINUED


def is_hardest(row: Record) -> bool:
    """Return whether a DeepMath problem has difficulty 9 or above."""
    value = row.values.get("difficulty")
    return isinstance(value, int | float) and value >= 9


def is_numerical(row: Record) -> bool:
    """Return whether all answers are numerical, as in OlympiadBench's benchmark of 572 problems."""
    return row.text("answer_type", "answer_type") == "Numerical"


def is_mathematics(row: Record) -> bool:
    """Return whether a Eurus-2 row is mathematics; we have no verifier for its code problems."""
    return row.values.get("ability") == "math"


_SAME = """\
def same(got, wanted):
    def plain(value):
        return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
    return plain(got) == plain(wanted) or [plain(got)] == plain(wanted)
"""
"""Code that compares return values. APPS wraps some expected values in a list of one item."""


def any_tests(row: Record, choices: tuple[str, ...]) -> str:
    """Return the tests of a user's row in the format of MBPP, HumanEval or APPS, chosen by its fields."""
    for field, read in (("test_list", mbpp), ("entry_point", humaneval), ("input_output", apps)):
        if row.values.get(field) is not None:
            return read(row, choices)
    raise row.error("test_list", "is missing; kind 'code' needs it, or test and entry_point, or input_output")


def mbpp(row: Record, choices: tuple[str, ...]) -> str:
    """Return the statements of test_list and challenge_test_list, with their setup code."""
    tests = (*texts(row, "test_list"), *texts(row, "challenge_test_list"))
    setup = "\n".join((*texts(row, "test_setup_code"), *texts(row, "test_imports")))
    return _written(row, "test_list", ProgramTests(asserts=tests, setup=setup))


def humaneval(row: Record, choices: tuple[str, ...]) -> str:
    """Return the field test with a call of its function ``check`` on the entry point."""
    start = row.whole("prompt", str(row.value("prompt", "prompt")))
    entry = row.value("entry_point", "entry_point")
    if not isinstance(entry, str) or not entry.isidentifier():
        raise row.error("entry_point", "is not a function name", entry)
    test = f"{row.value('test', 'test')}\n\ncheck({entry})"
    return _written(row, "test", ProgramTests(asserts=(test,), setup=start, start=start, entry=entry))


def apps(row: Record, choices: tuple[str, ...]) -> str:
    """Return the inputs and outputs in input_output as tests of a program, or of the function fn_name."""

    def lines(value: object) -> str:
        return "\n".join(map(str, value)) if isinstance(value, list) else str(value)

    field = "input_output"
    value = row.value(field, field)
    try:
        given = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise row.error(field, "is not JSON", value) from error
    if not isinstance(given, Mapping):
        raise row.error(field, "needs inputs and outputs", value)
    inputs, outputs = given.get("inputs"), given.get("outputs")
    if not isinstance(inputs, Sequence) or not isinstance(outputs, Sequence) or len(inputs) != len(outputs):
        raise row.error(field, "needs as many inputs as outputs")
    name = given.get("fn_name")
    pairs = tuple(zip(inputs, outputs, strict=True))
    if name is None:
        return _written(row, field, ProgramTests(pairs=tuple((lines(a), lines(b)) for a, b in pairs)))
    if not isinstance(name, str) or not name.isidentifier():
        raise row.error(field, "has a fn_name that is not a name", name)
    function = f"Solution().{name}" if "class Solution" in str(row.values.get("starter_code", "")) else name
    calls = tuple(f"assert same({function}(*{given!r}), {wanted!r})" for given, wanted in pairs)
    return _written(row, field, ProgramTests(asserts=calls, setup=_SAME))


def _written(row: Record, field: str, tests: ProgramTests) -> str:
    try:
        return write_tests(tests)
    except ValueError as error:
        raise row.error(field, str(error)) from error
