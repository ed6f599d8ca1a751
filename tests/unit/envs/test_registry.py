import json
import sys

import pytest

from debate.types import Problem
from envs import EnvironmentSpecError, Grade, GradeStatus, load_environment
from envs.registry import DataSetEnvironment

OWN = """
from shutil import rmtree

from debate.types import Problem
from envs import Grade, GradeStatus

class Parity:
    name = "parity"
    def __init__(self, largest=9):
        self.largest = largest
    def problems(self, *, split, limit=None, seed=None):
        sizes = range(limit or self.largest)
        return tuple(Problem(str(i), f"Is {i} odd?", "yes" if i % 2 else "no") for i in sizes)
    def grade(self, problem, answer):
        return Grade(GradeStatus.CORRECT if answer == problem.answer else GradeStatus.WRONG, "parity")

class NoGrade:
    name = "x"
    def problems(self, *, split, limit=None, seed=None): return ()

class OldGrade(NoGrade):
    def grade(self, answer): return None

class Nameless(Parity):
    name = None

def make(path=None, **rest):
    open(path, "w")

def make_parity(largest: int) -> Parity:
    return Parity(largest)

number = 5
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "my_own_env.py").write_text(OWN)
    (tmp_path / "broken_env.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_own_env", raising=False)


@pytest.mark.usefixtures("own")
def test_own_environment_by_dotted_path():
    environment = load_environment("my_own_env:Parity", largest=4, levels=None)
    assert [p.answer for p in environment.problems(split="train")] == ["no", "yes", "no", "yes"]
    assert environment.grade(Problem("1", "", "yes"), "yes") == Grade(GradeStatus.CORRECT, "parity")
    made = load_environment("my_own_env:make_parity", largest=2)
    assert [p.answer for p in made.problems(split="train")] == ["no", "yes"]


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("my_own_env:Nobody", {}, "has no 'Nobody'"),
        ("no_such_module_here:X", {}, "cannot import 'no_such_module_here'"),
        ("..:X", {}, "cannot import '..' of '..:X': TypeError"),
        ("broken_env:X", {}, "cannot import 'broken_env' of 'broken_env:X': ZeroDivisionError: "),
        *((f"my_own_env:{name}", {}, "neither a class with") for name in ("NoGrade", "make", "number")),
        *(
            (name, {"path": "x"}, f"'{name}' is part of Python itself")
            for name in ("shutil:rmtree", "os:remove", "my_own_env:rmtree", "pip.__main__:main")
        ),
        ("numpy:save", {"path": "x"}, "neither a class with"),
        ("my_own_env:OldGrade", {}, "grade has another signature"),
        ("my_own_env:Nameless", {}, "no text attribute 'name'"),
        ("my_own_env:Parity", {"smallest": 1}, "does not take these options.*smallest"),
        ("pair_sums", {}, "did you mean 'pair_sum'"),
        ("words", {"path": "x"}, "takes 'levels' and no 'path'"),
        ("gsm8k", {"pat": "x"}, "does not take these options"),
    ],
)
def test_what_is_wrong_with_an_environment(kind, options, message):
    for key in ("env.kind", "held_out.kind", "--on"):
        with pytest.raises(EnvironmentSpecError, match=message) as caught:
            load_environment(kind, key=key, **options)
        assert str(caught.value).startswith(f"{key}: ")


def test_data_set_environment(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "1/2"}) + "\n")
    environment = load_environment("file", path=str(path))
    (problem,) = environment.problems(split="train")
    grades = [environment.grade(problem, answer).status for answer in ("0.5", "2", None)]
    assert grades == ["correct", "wrong", "missing"]
    with pytest.raises(EnvironmentSpecError, match="no truth"):
        DataSetEnvironment("open").grade(Problem("o", "q"), "5")
