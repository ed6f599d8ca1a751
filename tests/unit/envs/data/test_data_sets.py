"""Each data set by name, from files and a hub that the tests make; the rows have the published shapes."""

import sys
from pathlib import Path

import pytest

from envs import DataError, load_environment, load_problems
from envs.data.catalog import DATA_SETS
from envs.errors import DataWarning


def test_every_data_set_is_in_the_docs():
    text = (Path(__file__).parents[4] / "docs" / "data.md").read_text(encoding="utf-8")
    for entry in DATA_SETS.values():
        assert f"`{entry.name}`" in text
        assert entry.hub_id in text


def test_arc_keys_are_labels_and_no_places(hub):
    options = ["ice", "snow", "fire", "rain"]
    hub["allenai/ai2_arc", "ARC-Challenge", "validation"] = [
        {"id": key, "question": "Hot?", "choices": {"text": options, "label": list(labels)}, "answerKey": key}
        for labels, key in (("ABCD", "C"), ("1234", "3"))
    ]
    first, second = load_problems("arc_challenge", split="validation")
    assert (first.answer, second.answer, first.choices) == ("C", "C", tuple(options))
    assert (first.kind, first.id) == ("choice", "arc_challenge-C")


def test_mmlu_is_all_subjects_and_its_mathematics_four(hub):
    row = {"question": "1+1?", "choices": ["1", "2"], "answer": 1}
    hub["cais/mmlu", "all", "test"] = [row | {"subject": name} for name in ("anatomy", "abstract_algebra")]
    sources = [p.source for p in load_problems("mmlu", split="test")]
    assert sources == ["mmlu/anatomy", "mmlu/abstract_algebra"]
    assert len(load_problems("mmlu", split="test", subjects=["anatomy"])) == 1
    kinds = (f"{kind}_mathematics" for kind in ("college", "elementary", "high_school"))
    for name in ("abstract_algebra", *kinds):
        hub["cais/mmlu", name, "test"] = [row | {"subject": name}]
    assert [p.answer for p in load_problems("mmlu_math", split="test")] == ["B"] * 4


def numina(n):
    return {"source": "amc" if n % 2 else "cn_k12", "problem": f"What is {n}?", "solution": rf"\boxed{{{n}}}"}


def test_numinamath_is_streamed_as_far_as_it_is_asked_for(hub):
    hub["AI-MO/NuminaMath-CoT", None, "train"] = [numina(n) for n in range(100)]
    problems = load_problems("NuminaMath-CoT", limit=3)
    assert [p.answer for p in problems] == ["0", "1", "2"]
    assert sys.modules["datasets"].Stream.read == 3
    assert problems[1].source == "numinamath_cot/amc"
    assert [p.answer for p in load_problems("numinamath_cot", limit=3, subjects=["amc"])] == ["1", "3", "5"]
    assert len(load_problems("numinamath_cot")) == 100
    with pytest.raises(DataError, match="subjects: 1 unmatched: gsm8k; valid: amc, cn_k12"):
        load_problems("numinamath_cot", limit=3, subjects=["gsm8k"])


def test_a_streams_order_is_of_its_seed_and_its_ids_of_the_questions(hub):
    hub["AI-MO/NuminaMath-CoT", None, "train"] = [numina(n) for n in range(50)]
    one, longer = (load_problems("numinamath_cot", limit=n, seed=1) for n in (5, 9))
    assert longer[:5] == one
    assert load_problems("numinamath_cot", limit=5, seed=2) != one
    by_id = {problem.id: problem for problem in load_problems("numinamath_cot")}
    assert len(by_id) == 50
    assert all(by_id[problem.id] == problem for problem in longer)


def test_rows_without_an_answer_are_left_out_and_told(hub):
    proof = {"source": "amc", "problem": "Prove it.", "solution": "Clear."}
    hub["AI-MO/NuminaMath-CoT", None, "test"] = [numina(1), proof, proof, numina(2)]
    with pytest.warns(DataWarning, match=r"numinamath_cot: 2 rows left out, 2 read; .*row 1, field 'answer'"):
        assert len(load_problems("numinamath_cot", split="test")) == 2
    hub["AI-MO/NuminaMath-CoT", None, "test"] = [proof]
    with pytest.raises(DataError, match="1 rows left out, 0 read"):
        load_problems("numinamath_cot", split="test")


def test_openmathreasoning_has_each_problem_once(hub):
    row = {"problem": "p", "expected_answer": "5", "problem_source": "aops_c4", "generated_solution": "..."}
    other = row | {"problem": "q", "expected_answer": r"\frac{1}{2}"}
    unknown = row | {"problem": "r", "expected_answer": "n/a"}
    hub["nvidia/OpenMathReasoning", None, "cot"] = [row, row | {"generated_solution": "or"}, unknown, other]
    with pytest.warns(DataWarning, match="1 rows left out, 2 read; .*says that there is no answer"):
        problems = load_problems("nvidia/OpenMathReasoning")
    assert [p.answer for p in problems] == ["5", r"\frac{1}{2}"]
    assert problems[0].source == "openmathreasoning/aops_c4"


def test_a_large_set_from_a_local_file_is_shuffled_as_any_other(load):
    rows = [numina(n) for n in range(300)]
    drawn = load("numinamath_cot", *rows, seed=1, limit=20)
    assert load("numinamath_cot", *rows, seed=1, limit=5) == drawn[:5]
    assert max(int(p.answer) for p in drawn) > 100
    assert [p.answer for p in load("numinamath_cot", *rows, limit=2)] == ["0", "1"]


def test_own_rows_that_name_their_split_are_kept_apart(load):
    rows = [{"question": f"q{n}", "answer": n, "split": "test" if n > 3 else "train"} for n in range(6)]
    assert [p.answer for p in load("file", *rows)] == ["0", "1", "2", "3"]
    assert [p.answer for p in load("file", *rows, split="test")] == ["4", "5"]
    assert len(load("file", *rows, split="all")) == 6
    with pytest.raises(DataError, match="no row of split 'validation'; the file has test, train"):
        load("file", *rows, split="validation")
    row = {"question": "q", "answer": 1, "fold": "a"}
    assert len(load("gsm8k", row, split="a", fields={"split": "fold"})) == 1


def test_any_set_of_the_hub_is_read_by_field_names(hub):
    row = {"prompt": "1+1?", "gold": 2, "options": ["1", "2"]}
    hub["someone/sums", None, "dev"] = [row]
    hub["someone/sums", "hard", "train"] = [row | {"gold": r"\frac12"}]
    fields = {"question": "prompt", "answer": "gold"}
    [problem] = load_problems("someone/sums", split="dev", fields=fields)
    assert (problem.id, problem.answer, problem.kind) == ("someone--sums-dev-0", "2", "number")
    environment = load_environment("someone/sums/hard", fields=fields)
    assert environment.problems(split="train")[0].answer == r"\frac12"
    with pytest.raises(DataError, match=r"someone/sums\[dev\], row 0, field 'answer or .*': is missing"):
        load_problems("someone/sums", split="dev")
    hub["someone/sums", None, "test"] = [row | {"kind": name} for name in ("easy", "hard")]
    by_kind = fields | {"subject": "kind"}
    chosen = load_problems("someone/sums", split="test", fields=by_kind, subjects=["hard"])
    assert [problem.source for problem in chosen] == ["someone--sums/hard"]
    choices = fields | {"choices": "options"}
    assert load_problems("someone/sums", split="dev", fields=choices)[0].answer == "B"
