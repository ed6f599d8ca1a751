import json
import pickle
import re
import sys

import pytest

from envs import DataError, load_problems
from envs.data.catalog import DATA_SETS
from envs.errors import EnvironmentSpecError, MissingPackageError

GSM8K = [{"question": f"{i} + 1,000?", "answer": f"think\n#### {i + 1000:,}"} for i in range(10)]


def test_limit_and_seed(load):
    problems = load("gsm8k", *GSM8K, split="test")
    assert [p.answer for p in problems] == [str(1000 + i) for i in range(10)]
    third = problems[3]
    assert (third.id, third.kind, third.source) == ("gsm8k-test-3", "number", "gsm8k")

    def ids(**options):
        return [p.id for p in load("gsm8k", *GSM8K, split="test", **options)]

    everything = ids()
    assert ids(limit=3) == everything[:3]
    assert ids(limit=99) == everything
    assert sorted(ids(seed=1)) == sorted(everything)
    assert ids(seed=1) != everything
    assert ids(seed=1, limit=4) == ids(seed=1)[:4]
    assert ids(seed=1) != ids(seed=2)
    with pytest.raises(DataError, match="limit"):
        ids(limit=0)


def test_math_answers_come_from_the_box_where_the_field_is_empty(load):
    rows = [
        {"problem": "p", "solution": r"so \boxed{\frac{1}{2}}", "answer": "", "level": "Level 3"},
        {"problem": "q", "solution": r"\boxed{4}", "answer": "4", "level": 5, "type": "Number Theory"},
        {"problem": "r", "solution": r"\boxed{x}", "level": "Level 5", "type": "Counting & Probability"},
    ]
    problems = load("math", *rows)
    assert [(p.answer, p.level, p.kind) for p in problems] == [
        *((r"\frac{1}{2}", "3", "number"), ("4", "5", "number"), ("x", "5", "expression"))
    ]
    assert [p.answer for p in load("math", *rows, levels=["Level 5"])] == ["4", "x"]
    assert [p.answer for p in load("math", *rows, levels=[5], subjects=["number_theory"])] == ["4"]
    assert len(load("math", *rows, subjects=["Counting & Probability"])) == 1
    with pytest.raises(DataError, match="levels: 1 unmatched: 9; valid: 3, 5"):
        load("math", *rows, levels=[9])
    with pytest.raises(DataError, match="levels: 1 unmatched: 9; valid: none"):
        load("file", {"question": "1 + 1?", "answer": "2"}, levels=[9])
    with pytest.raises(DataError, match="no problem matches all"):
        load("math", *rows, levels=[3], subjects=["number theory"])


def test_own_file_with_named_fields(tmp_path, write_rows):
    one = {"q": "1+1?", "gold": 2, "key": "a", "hard": 3}
    rows = [one, {"q": "x?", "gold": "x+1", "key": "b", "hard": 1}]
    fields = {"question": "q", "answer": "gold", "id": "key", "level": "hard"}
    (tmp_path / "own.json").write_text(json.dumps(rows))
    for path in (write_rows(*rows), tmp_path / "own.json"):
        first, second = load_problems("file", path=path, fields=fields)
        assert (first.id, first.answer, first.kind, first.level) == ("a", "2", "number", "3")
        assert (second.answer, second.kind) == ("x+1", "expression")
    with pytest.raises(DataError, match=r"keys present: q, gold"):
        load_problems("file", path=path)
    with pytest.raises(DataError, match="fields: 'prompt'"):
        load_problems("file", path=path, fields={"prompt": "q"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question": "a", "answer": "1"}\n{"question": "b"}\n', r"line 2, field 'answer'.*: question\)"),
        (b'{"question": "a", "answer": ""}\n', r"line 1, field 'answer': is empty"),
        (b'{"question": " ", "answer": "1"}\n', r"is empty"),
        (b'{"question": "a", "answer": "none"}\n', r"line 1, field 'answer': has no number"),
        (b'{"question": "a", "answer": ["1"]}\n', r"is neither text nor a finite number"),
        (b'\n{"question": "a", \n', r"line 2: is not valid JSON"),
        *((b'{"question": "\xff"}\n', r"line 1: is not UTF-8 \(byte 0xff\)"), (b"", r"is empty")),
        (b"[1, 2]\n", r"line 1: needs an object"),
    ],
)
def test_bad_files_name_file_line_and_field(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load_problems("gsm8k", path=path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_duplicate_and_unmatched_ids(load):
    rows = [{"id": name, "question": "q", "answer": "1"} for name in "aba"]
    with pytest.raises(DataError, match=r"line 3, field 'id': is a duplicate of .*line 1"):
        load("file", *rows)
    assert [p.id for p in load("file", *rows[:2], ids=["b"])] == ["b"]
    with pytest.raises(DataError, match="ids: 2 unmatched: x, y; valid: a, b"):
        load("file", *rows[:2], ids=["b", "x", "y"])


def test_unknown_names(tmp_path):
    for name, options, said in (
        ("gsm9k", {}, "not a known data set; valid: gsm8k"),
        ("gsm8k", {"path": tmp_path / "nowhere.jsonl"}, "no such file"),
        ("jsonl", {}, "give path="),
        ("aime24", {"split": "train"}, "split: aime24 has test"),
    ):
        with pytest.raises(DataError, match=said):
            load_problems(name, **options)


def test_hub_ids_and_configurations(hub):
    row = {"problem": "p", "question": "p", "solution": r"\boxed{7}", "answer": "7", "level": "Level 1"}
    for area in DATA_SETS["math"].configs:
        hub["EleutherAI/hendrycks_math", area, "test"] = [row | {"unique_id": area}]
    hub["openai/gsm8k", "main", "train"] = [row]
    hub["HuggingFaceH4/MATH-500", None, "test"] = [row | {"unique_id": "a"}]
    hub["HuggingFaceH4/aime_2024", None, "train"] = [row | {"id": 1}]
    for part in ("I", "II"):
        hub["opencompass/AIME2025", f"AIME2025-{part}", "test"] = [row | {"id": part}]
    assert load_problems("gsm8k", split="train")[0].answer == "7"
    assert len(load_problems("math", split="test")) == 7
    assert load_problems("math500", split="test")[0].id == "math500-a"
    assert load_problems("aime24", split="test")[0].answer == "7"
    assert len(load_problems("aime25", split="test")) == 2


def test_a_hub_without_its_client_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingPackageError, match=r"pip install .\.\[train\]"):
        load_problems("gsm8k")


@pytest.mark.parametrize("field", ["level", "subject", "choices", "id"])
def test_half_and_control_characters_in_a_name_are_refused(load, field):
    good = {"question": "q", "answer": "1"}
    for mark in ("\ud800", "\x1b", "\x00", "\n", "\x85", "\u2028"):
        bad = {field: ["1", f"a{mark}b"] if field == "choices" else f"a{mark}b"}
        kind = "half a character" if mark == "\ud800" else "a control character"
        match = rf"rows\.jsonl, line 2, field '{field}': contains {kind} \("
        with pytest.raises(DataError, match=match) as caught:
            load("file", good, good | bad)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["own.jsonl", "own.json"])
def test_a_key_that_stands_twice_is_named(tmp_path, name):
    path = tmp_path / name
    row = '{"question": "q", "answer": "1", "meta": {"a": 1, "a\\nb": 2}}'
    twice = row.replace('"a": 1', '"a\\nb": 1')
    path.write_text(f"[{row}, {twice}]" if name.endswith("json") else f"{row}\n{twice}\n")
    place = path if name.endswith("json") else f"{path}, line 2"
    said = f"^{place}.*" + re.escape(r"has the key 'a\nb' twice in one object")
    with pytest.raises(DataError, match=said):
        load_problems("file", path=path)
    path.write_text(row)
    assert len(load_problems("file", path=tmp_path / name)) == 1 if name.endswith("jsonl") else True


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        *(("fields", {"question": ["a"]}, "['a']"), ("fields", {"question": ""}, "''")),
        *(("fields", {3: "a"}, "3"), ("fields", ["q"], "['q']"), ("levels", [None], "None")),
        *(("levels", 5, "5"), ("levels", "12", "'12'")),
        *(("levels", [["1"]], "['1']"), ("subjects", [3], "3"), ("subjects", "algebra", "'algebra'")),
        *(("ids", [3], "3"), ("ids", 3, "3"), ("limit", "3", "'3'"), ("limit", 2.5, "2.5")),
    ],
)
def test_an_option_of_a_wrong_type_is_named_with_its_value(load, option, value, shown):
    with pytest.raises(DataError, match=rf"^{option}: .*{re.escape(shown)}"):
        load("file", {"question": "q", "answer": "1", "level": "1", "subject": "a"}, **{option: value})
    if option == "levels":
        with pytest.raises(DataError, match=r"^levels: needs a list of "):
            load_problems("words", limit=1, levels=value)


def test_a_message_is_one_line_whatever_it_names():
    for error in (DataError, EnvironmentSpecError, MissingPackageError):
        assert str(error("a\nb\x1b\ud800 é")) == r"a\nb\x1b\ud800 é"
    assert pickle.loads(pickle.dumps(DataError("a\nb"))).args == (r"a\nb",)
