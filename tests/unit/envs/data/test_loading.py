import json
import pickle
import re
import sys
import types

import pytest

from envs import DataError, load_problems
from envs.errors import EnvironmentSpecError, MissingPackageError


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def gsm8k(tmp_path):
    rows = [{"question": f"{i} + 1,000?", "answer": f"think\n#### {i + 1000:,}"} for i in range(10)]
    return write(tmp_path / "gsm8k.jsonl", rows)


def test_gsm8k(gsm8k):
    problems = load_problems("gsm8k", split="test", path=gsm8k)
    assert [p.answer for p in problems] == [str(1000 + i) for i in range(10)]
    assert problems[3].id == "gsm8k-test-3"
    assert (problems[3].kind, problems[3].source) == ("number", "gsm8k")


def test_limit_and_seed(gsm8k):
    def ids(**options):
        return [p.id for p in load_problems("gsm8k", split="test", path=gsm8k, **options)]

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
        {
            "problem": "p",
            "solution": r"so \boxed{\frac{1}{2}}",
            "answer": "",
            "level": "Level 3",
            "type": "A",
        },
        {
            "problem": "q",
            "solution": r"\boxed{4}",
            "answer": "4",
            "level": "Level 5",
            "type": "Number Theory",
        },
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
    with pytest.raises(DataError, match="no problem has all"):
        load("math", *rows, levels=[3], subjects=["number theory"])


def test_own_file_with_named_fields(tmp_path):
    rows = [
        {"q": "1+1?", "gold": 2, "key": "a", "hard": 3},
        {"q": "x?", "gold": "x+1", "key": "b", "hard": 1},
    ]
    fields = {"question": "q", "answer": "gold", "id": "key", "level": "hard"}
    (tmp_path / "own.json").write_text(json.dumps(rows))
    for path in (write(tmp_path / "own.jsonl", rows), tmp_path / "own.json"):
        first, second = load_problems("file", path=path, fields=fields)
        assert (first.id, first.answer, first.kind, first.level) == ("a", "2", "number", "3")
        assert (second.answer, second.kind) == ("x+1", "expression")
    with pytest.raises(DataError, match=r"keys present: q, gold"):
        load_problems("file", path=path)
    with pytest.raises(DataError, match="fields: 'prompt'"):
        load_problems("file", path=path, fields={"prompt": "q"})


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "own.parquet"
    parquet.write_table(pa.table({"question": ["a", "b"], "answer": ["1", "2"]}), path)
    assert [p.answer for p in load_problems("file", path=path)] == ["1", "2"]
    path.write_bytes(b"no parquet")
    with pytest.raises(DataError, match="not a readable Parquet"):
        load_problems("file", path=path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'{"question": "a", "answer": "#### 1"}\n{"question": "b"}\n',
            r"line 2, field 'answer'.*keys present: question",
        ),
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
    with pytest.raises(DataError, match="not a known data set; valid: gsm8k"):
        load_problems("gsm9k")
    with pytest.raises(DataError, match="no such file"):
        load_problems("gsm8k", path=tmp_path / "nowhere.jsonl")
    with pytest.raises(DataError, match="give path="):
        load_problems("jsonl")
    with pytest.raises(DataError, match="split: aime24 has test"):
        load_problems("aime24", split="train")


def fake_hub(monkeypatch, tables):
    calls = []

    def load_dataset(hub_id, config, *, split):
        calls.append((hub_id, config, split))
        return tables(hub_id, config, split)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return calls


def test_hub_ids_and_configurations(monkeypatch):
    row = {
        "problem": "p",
        "question": "p",
        "solution": r"\boxed{7}",
        "answer": "7",
        "level": "Level 1",
        "type": "A",
    }
    calls = fake_hub(
        monkeypatch, lambda hub_id, config, split: [row | {"id": config or "1", "unique_id": f"{config}"}]
    )
    assert load_problems("gsm8k", split="train")[0].answer == "7"
    assert len(load_problems("math", split="test")) == 7
    assert load_problems("math500", split="test")[0].id == "math500-None"
    assert load_problems("aime24", split="test")[0].answer == "7"
    assert len(load_problems("aime25", split="test")) == 2
    assert calls[0] == ("openai/gsm8k", "main", "train")
    assert calls[1] == ("EleutherAI/hendrycks_math", "algebra", "test")
    assert calls[8] == ("HuggingFaceH4/MATH-500", None, "test")
    assert calls[9] == ("HuggingFaceH4/aime_2024", None, "train")
    assert calls[10:] == [("opencompass/AIME2025", f"AIME2025-{part}", "test") for part in ("I", "II")]


def test_hub_errors_are_one_line(monkeypatch):
    def offline(hub_id, config, split):
        raise ConnectionError("no route\nto host")

    fake_hub(monkeypatch, offline)
    monkeypatch.setattr("envs.data.records.is_reachable", lambda: True)
    with pytest.raises(DataError, match=r"openai/gsm8k/main\[train\]: could not be loaded") as caught:
        load_problems("gsm8k")
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install .\.\[train\]"):
        load_problems("gsm8k")


@pytest.mark.parametrize("field", ["level", "subject", "choices", "id"])
def test_half_and_control_characters_in_a_name_are_refused(load, field):
    good = {"question": "q", "answer": "1"}
    for mark in ("\ud800", "\x1b", "\x00", "\n", "\x85", "\u2028"):
        bad = {field: ["1", f"a{mark}b"] if field == "choices" else f"a{mark}b"}
        kind = "half a character" if mark == "\ud800" else "a control character"
        with pytest.raises(
            DataError, match=rf"rows\.jsonl, line 2, field '{field}': contains {kind} \("
        ) as caught:
            load("file", good, good | bad)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["own.jsonl", "own.json"])
def test_a_key_that_stands_twice_is_named(tmp_path, name):
    path = tmp_path / name
    row = '{"question": "q", "answer": "1", "meta": {"a": 1, "a\\nb": 2}}'
    twice = row.replace('"a": 1', '"a\\nb": 1')
    path.write_text(f"[{row}, {twice}]" if name.endswith("json") else f"{row}\n{twice}\n")
    with pytest.raises(DataError) as caught:
        load_problems("file", path=path)
    place = str(path) if name.endswith("json") else f"{path}, line 2"
    assert str(caught.value).startswith(place)
    assert r"has the key 'a\nb' twice in one object" in str(caught.value)
    path.write_text(row)
    assert len(load_problems("file", path=tmp_path / name)) == 1 if name.endswith("jsonl") else True


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        *(
            ("fields", {"question": ["a"]}, "['a']"),
            ("fields", {"question": ""}, "''"),
            ("fields", {3: "a"}, "3"),
        ),
        *(
            ("fields", ["q"], "['q']"),
            ("levels", 5, "5"),
            ("levels", "12", "'12'"),
            ("levels", [None], "None"),
        ),
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
