"""Instructions: cases worked out by hand, both ways, and what no row may ask for."""

import gc
import json
import sys
from pathlib import Path

import pytest

from envs import DataError, GradeStatus, grade, load_problems, same_answer
from envs.errors import MissingPackageError
from envs.instructions import ConstraintError, constraints_of, follows
from envs.instructions.constraints import write_constraints
from envs.instructions.ifeval import DETECTED, IFEVAL
from envs.instructions.text import LANGUAGES, _detector, language_of

AT_LEAST = "at least"
TABLE = Path(__file__).parents[3] / "data" / "instruction_cases.tsv"
"""An instruction, its arguments, responses that follow it, and others; the last three as JSON."""
ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()]
CASES = [(id_, *map(json.loads, rest)) for id_, *rest in ROWS]


def met(id_: str, arguments: dict[str, object], response: str) -> bool:
    [outcome] = follows(response, constraints_of(write_constraints([id_], [arguments])))
    return outcome


@pytest.mark.parametrize(("id_", "arguments", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_a_constraint(id_, arguments, good, bad):
    if id_ in DETECTED:
        pytest.importorskip("py3langid")
    assert [response for response in good if not met(id_, arguments, response)] == []
    assert [response for response in bad if met(id_, arguments, response)] == []
    assert not met(id_, arguments, " \n ")


def test_loose_takes_the_best_of_eight_readings():
    written = write_constraints(["startend:quotation", "punctuation:no_comma"], [{}, None])
    constraints = constraints_of(written)
    response = 'Sure, here it is:\n*"Yes"*\nBye, now'
    assert follows(response, constraints) == (False, False)
    assert follows(response, constraints, loose=True) == (True, True)


def test_a_grade_lists_every_outcome():
    gold = write_constraints(["punctuation:no_comma", "startend:quotation"], [{}, {}])
    half = same_answer("fine", gold, kind="instructions")
    assert (half.status, half.score, half.method) == (GradeStatus.WRONG, 0.5, "instructions")
    assert half.parts == (("punctuation:no_comma", True), ("startend:quotation", False))
    whole = grade('<think>commas, commas</think> "fine"', gold, kind="instructions")
    assert (whole.status, whole.score, whole.extracted) == (GradeStatus.CORRECT, 1.0, '"fine"')
    missing = grade("<think>never done", gold, kind="instructions")
    assert (missing.status, missing.score) == (GradeStatus.MISSING, 0.0)


def row(ids, kwargs, **more):
    return {"key": 7, "prompt": "Write.", "instruction_id_list": ids, "kwargs": kwargs, **more}


def load(tmp_path, *rows, name="ifeval", **options):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return load_problems(name, split="test", path=path, **options)


def test_a_row_of_the_published_form(tmp_path):
    gaps = {"num_words": 30.0, "relation": "at least", "language": None, "keywords": None}
    [problem] = load(tmp_path, row(["length_constraints:number_words"], [gaps]))
    assert (problem.id, problem.question, problem.kind) == ("ifeval-7", "Write.", "instructions")
    assert json.loads(problem.answer)["kwargs"] == [{"num_words": 30, "relation": "at least"}]


def test_languages_are_those_of_the_benchmark(tmp_path):
    pytest.importorskip("py3langid")
    with pytest.raises(DataError, match=r"'language' needs one of ar, bg, bn.*value 'tlh'"):
        load(tmp_path, row(["language:response_language"], [{"language": "tlh"}]))
    with pytest.raises(DataError, match="needs one of ar"):
        load(tmp_path, row(["language:response_language"], [{"language": []}]))
    assert len(LANGUAGES) == 30
    assert language_of("\ud800 the cat is on the mat") == "en"
    assert language_of("12 \ud800") is None


@pytest.mark.parametrize("id_", sorted(DETECTED & set(IFEVAL)))
def test_without_the_package_a_row_that_needs_it_is_refused_at_load(tmp_path, monkeypatch, id_):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    _detector.cache_clear()
    kwargs = {"language": "de"} if id_ == "language:response_language" else {}
    with pytest.raises(MissingPackageError, match=r"pip install .\.\[ifeval\]"):
        load(tmp_path, row([id_], [kwargs]))
    assert len(load(tmp_path, row(["punctuation:no_comma"], [{}]))) == 1


@pytest.fixture
def no_garbage_collection():
    """Nothing of other tests is finalized where the stack is full: its error would be this test's."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("gold", ["", "5", "[", "[" * 100_000, "{}", '{"kwargs": []}', "9" * 5000])
def test_a_gold_that_holds_no_constraints_is_a_mistake(gold):
    with pytest.raises((ConstraintError, ValueError)):
        same_answer("x", gold, kind="instructions")


def test_keywords_ignore_case_and_forbidden_words_are_trimmed():
    assert not met("keywords:forbidden_words", {"forbidden_words": [" word "]}, "a word b")
    assert met("keywords:forbidden_words", {"forbidden_words": [" word "]}, "a wordy b")
    assert met("keywords:forbidden_words", {"forbidden_words": ["b.c", "-", "a b"]}, "xb.c, x-a bc")
    for hit in ("A B", "x. - y", "b.C!", "(b.c)"):
        assert not met("keywords:forbidden_words", {"forbidden_words": ["b.c", "-", "a b"]}, hit), hit
    assert met("keywords:existence", {"keywords": ["ΟΔΟΣ"]}, "οδοσα")
    assert met("keywords:frequency", {"keyword": " aa ", "frequency": 2, "relation": AT_LEAST}, "aAaAa")
    assert not met("keywords:frequency", {"keyword": "aa", "frequency": 3, "relation": AT_LEAST}, "aaaaa")


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        *(("9" * 5000, True), ('{"a": -' + "9" * 5000 + "}", True), ("[1.5e3, true, null]", True)),
        *(("NaN", False), ("[Infinity]", False), ('{"a": -Infinity}', False), ("01", False), ("", False)),
    ],
)
def test_json_is_what_its_standard_says(text, is_json):
    assert met("detectable_format:json_format", {}, text) == is_json
    assert met("detectable_format:json_format", {}, f"```json\n{text}\n```") == is_json


@pytest.mark.slow
@pytest.mark.parametrize("keyword", ["a" * 199 + "b", "b" + "a" * 199, "a " * 99 + "b", "ab" * 99])
@pytest.mark.parametrize("piece", ["a", "a ", "ab"])
@pytest.mark.usefixtures("ends")
def test_keywords_are_looked_for_in_linear_time(keyword, piece):
    text = piece * (1_000_000 // len(piece))
    met("keywords:existence", {"keywords": [keyword + "x"[: 200 - len(keyword)]] * 64}, text)
    met("keywords:forbidden_words", {"forbidden_words": [keyword] * 64}, text)
    met("keywords:frequency", {"keyword": keyword, "frequency": 1, "relation": AT_LEAST}, text)
