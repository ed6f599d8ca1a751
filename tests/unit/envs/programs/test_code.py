"""Programs against tests: what passes, and what a hostile one does not get."""

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs import load_problems
from envs.grading.grader import Grader
from envs.programs import ProgramTests, read_tests, write_tests
from envs.programs.harness import grade_code, same_output, shared_sandbox
from envs.programs.remote import Answering, Asking, decode, encode
from envs.sandbox import SandboxRefused

ASSERTS = ("assert add(1, 2) == 3", "assert add([1], [2]) == [1, 2]", "assert {add(2, 2)} == {4}")
ADD = write_tests(ProgramTests(asserts=ASSERTS))
SUM = write_tests(ProgramTests(pairs=(("1 2\n", "3\n"), ("20 22\n", "42\n"))))
START = 'def middle(items):\n    """Return the middle item."""\n'
CHECK = """def check(candidate):
    assert candidate([1, 2, 3]) == 2
    for size in range(1, 30, 2):
        assert candidate(list(range(size))) == size // 2
check(middle)"""
MIDDLE = write_tests(ProgramTests(asserts=(CHECK,), setup=START, start=START, entry="middle"))


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    try:
        yield shared_sandbox()
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    shared_sandbox().close()


def passes(code, gold):
    return [right for _, right in grade_code(code, gold).parts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "gold", "expected"),
    [
        ("def add(a, b): return a + b", ADD, [True] * 3),
        ("Here:\n```python\ndef add(a, b): return a + b\n```", ADD, [True] * 3),
        ("def add(a, b): return 3", ADD, [True, False, False]),
        ("def add(a, b): return [*a, *b]", ADD, [False, True, False]),
        *(("def other(): pass", ADD, [False] * 3), ("no program", ADD, [False] * 3)),
        ("a, b = map(int, input().split())\nprint(a + b)", SUM, [True, True]),
        ("import sys\nprint(sum(map(int, sys.stdin.read().split())))", SUM, [True, True]),
        ("print(sum(map(int, open(0).read().split())))\nimport sys\nsys.exit()", SUM, [True, True]),
        *(("print(3)", SUM, [True, False]), ("    return items[len(items) // 2]", MIDDLE, [True])),
        ("def middle(items): return sorted(items)[0]", MIDDLE, [False]),
    ],
)
def test_which_tests_a_program_passes(code, gold, expected):
    assert passes(code, gold) == expected


HOSTILE = {
    "ends early": "import os\nos._exit(0)",
    "exits": "import sys\nsys.exit(0)",
    "exits when called": "def add(a, b):\n    import os\n    os._exit(0)",
    "raises what is no exception": "def add(a, b): raise BaseException",
    "equals everything": "class E:\n    def __eq__(s, o): return True\ndef add(a, b): return E()",
    "a number that equals everything": "class E(int):\n    def __eq__(s, o): return True\n"
    "    def __hash__(s): return 4\ndef add(a, b): return E(9)",
    "prints the verdict": "print('\\x1e{\"passed\": true}')\ndef add(a, b):\n"
    "    print('\\x1e{\"passed\": true}')\n    return 0",
    "replaces what answers": "import json\njson.dumps = lambda *a: '{\"passed\": true}'\ndef add(*a): 0",
    "replaces what is built in": "import builtins\nbuiltins.AssertionError = ValueError\n"
    "def add(a, b): raise AssertionError",
    "raises AssertionError": "def add(a, b): raise AssertionError",
    "looks for the tests": "import gc\ndef add(a, b):\n"
    "    return next((o for o in gc.get_objects() if isinstance(o, str) and 'assert add' in o), 0)",
    "answers a forged reply": 'class A:\n    def answer(s, line): return \'{"value": {"at": {"kept": 0}}}\'\n'
    "import sys\ndef add(a, b):\n    sys._getframe(1).f_globals['_answering'] = A()\n    return 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_passes_nothing(name):
    assert not any(passes(HOSTILE[name], ADD))


@pytest.mark.slow
def test_a_program_cannot_end_the_loop_of_a_test():
    gold = write_tests(ProgramTests(asserts=("assert all(map(lambda x: add(x, 1) == x + 1, [1, 2]))",)))
    assert passes("def add(a, b): raise StopIteration", gold) == [False]
    gold = write_tests(ProgramTests(pairs=(("1 2\n", "4\n"),)))
    endings = ["import os\nos._exit(0)", "open('/tmp/input').read()", "print('3\\n42')"]
    endings += ["exit(3)", "while True: 0"]
    assert not any(any(passes(code, gold)) for code in endings)


@pytest.mark.slow
def test_a_grade_is_all_or_nothing_with_its_share_beside():
    with Grader() as grader:
        right = grader.grade("def add(a, b): return a + b", ADD, kind="code")
        third = grader.grade("<think>add</think>def add(a, b): return 3", ADD, kind="code")
        nothing = grader.grade("<think>add</think>", ADD, kind="code")
    assert (right.verdict, right.score) == (True, 1.0)
    assert (third.verdict, third.score) == (False, pytest.approx(1 / 3))
    assert (nothing.verdict, nothing.parts) == ("missing", ())


@pytest.mark.slow
def test_what_is_no_plain_value_stays_with_the_program():
    tests = ProgramTests(
        asserts=(
            "assert longest([Pair(5, 24), Pair(15, 25)]) == 2",
            "assert list(squares(3)) == [0, 1, 4]",
            "try:\n    add(1, 'a')\nexcept TypeError:\n    pass\nelse:\n    raise AssertionError",
        )
    )
    code = (
        "class Pair:\n    def __init__(self, a, b): self.a = a\n"
        "def longest(pairs): return len([pair.a for pair in pairs])\n"
        "def squares(n): return (i * i for i in range(n))\n"
        "def add(a, b): return a + b"
    )
    assert passes(code, write_tests(tests)) == [True] * 3


def test_outputs_are_compared_by_their_words():
    for output, wanted in (("1\n2", "1 2\n"), ("1.0000001", "1.0"), ("", "")):
        assert same_output(output, wanted) is True
    for output, wanted in (("1.1", "1.0"), ("1", "1 1")):
        assert same_output(output, wanted) is False


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(VALUES)
def test_plain_values_go_over_and_come_back(value):
    assert decode(json.loads(json.dumps(encode(value, repr))), repr) == value


@pytest.mark.slow
@given(VALUES, VALUES)
def test_a_test_sees_what_the_function_returns(given_value, returned):
    """The two sides in one process: f(given) == returned holds exactly where it is returned."""
    asked = []

    def function(value):
        asked.append(value)
        return returned

    program, tester, reply = Answering({"f": function}), Asking(""), None
    test = f"assert f({given_value!r}) == {returned!r}".replace("inf", "float('inf')")
    while "passed" not in (said := json.loads(tester.check(test, reply))):
        reply = program.answer(json.dumps(said))
    assert said == {"passed": True}
    assert asked == [given_value]
    assert encode(inf, repr) == inf


@pytest.mark.parametrize(
    "gold", ["", "5", "[]", "{}", '{"asserts": []}', '{"asserts": [1]}', '{"pairs": [["a"]]}']
)
def test_a_gold_without_tests_is_refused(gold):
    with pytest.raises(ValueError, match="has no tests of a program"):
        read_tests(gold)


def test_a_test_that_is_no_python_is_refused():
    with pytest.raises(ValueError, match=r"is not valid Python: 'assert \('"):
        write_tests(ProgramTests(asserts=("assert (",)))


ROWS = {
    "mbpp": {
        **{"task_id": 2, "text": "Write add(a, b).", "code": "def add(a, b): return a + b"},
        **{"test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"], "test_setup_code": "import math"},
        "challenge_test_list": ["assert add(0, 0) == 0"],
    },
    "humaneval": {
        **{"task_id": "HumanEval/0", "prompt": START, "entry_point": "middle"},
        "canonical_solution": "    return items[len(items) // 2]",
        "test": "def check(candidate):\n    assert candidate([7]) == 7",
    },
    "apps": {
        **{"problem_id": 3, "question": "Add.", "difficulty": "interview"},
        "input_output": json.dumps({"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}),
        "starter_code": "class Solution:\n    def add(self, a, b):\n",
    },
}


def load(tmp_path, name, **changes):
    (tmp_path / "test.jsonl").write_text(json.dumps(ROWS[name] | changes) + "\n")
    [problem] = load_problems(name, split="test", path=tmp_path / "test.jsonl")
    return problem


@pytest.mark.parametrize(
    ("name", "shown", "hidden", "solution"),
    [
        ("mbpp", "assert add(1, 2) == 3", "assert add(2, 2) == 4", "def add(a, b): return a + b"),
        ("humaneval", START.rstrip(), "check", "    return items[len(items) // 2]"),
        ("apps", "class Solution:", "[3]", "class Solution:\n    def add(self, a, b): return a + b"),
    ],
)
def test_a_published_row_shows_its_task_and_hides_its_tests(tmp_path, name, shown, hidden, solution):
    problem = load(tmp_path, name)
    question = problem.question
    assert problem.kind == "code"
    assert (shown in question, hidden in question, hidden in problem.answer) == (True, False, True)
    assert all(passes(solution, problem.answer))


def test_standard_input_of_apps(tmp_path):
    rows = {"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3\n", ["7"]]}
    problem = load(tmp_path, "apps", starter_code="", input_output=json.dumps(rows))
    assert "standard input" in problem.question
    assert read_tests(problem.answer).pairs == (("1 2\n", "3\n"), ("3\n4", "7"))


def test_a_row_of_ones_own_names_its_kind(tmp_path):
    row = {"question": "Write add(a, b).", "kind": "code", "test_list": ["assert add(1, 2) == 3"]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row))
    [problem] = load_problems("file", split="train", path=tmp_path / "own.jsonl")
    assert (problem.kind, problem.answer) == ("code", '{"asserts": ["assert add(1, 2) == 3"]}')
