"""Several sets as one environment, and the training problems of a mixture."""

import json

import pytest

from debate_rl.config import Config
from debate_rl.evaluation.grading import grade_text
from debate_rl.sampling.load_problems import load_run_problems, load_trained
from envs import DataError


def rows(path, *names):
    lines = [{"id": name, "question": f"what is {name}?", "answer": name[-1]} for name in names]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def config(*mix):
    tables = {"model": {"name_or_path": "none"}, "env": {"mix": mix}, "held_out": {"limit": 0}}
    return Config.model_validate(tables)


@pytest.fixture
def two(tmp_path):
    own = {"name": "own", "kind": "file", "path": rows(tmp_path / "a.jsonl", "a1", "a2", "a3")}
    return own, {"name": "sums", "kind": "pair_sum", "levels": [1], "limit": 4}


def test_a_mixture_has_the_problems_of_its_sets_and_grades_each_by_its_own(two):
    data = load_run_problems(config(*two))
    assert [data.set_of[problem.id] for problem in data.train] == ["own"] * 3 + ["sums"] * 4
    assert load_trained(config(*two)) == data.train
    own, pair = data.train[0], data.train[-1]
    assert data.environment.grade(own, own.answer).verdict is True
    assert data.environment.grade(pair, pair.answer).verdict is True
    assert data.environment.grade(pair, "1").method == "pair_sum"
    assert grade_text(data.environment, own, rf"\boxed{{{own.answer}}}", "boxed").verdict is True
    assert any(name.endswith("a.jsonl") for name in data.checksums)


def test_a_problem_in_two_sets_is_refused(two, tmp_path):
    other = {"name": "other", "kind": "file", "path": rows(tmp_path / "b.jsonl", "b1", "a2")}
    with pytest.raises(DataError, match=r"env.mix: the problem 'a2' is in own and in other"):
        load_run_problems(config(two[0], other))


def test_an_unknown_set_is_named_by_its_key(two):
    with pytest.raises(ValueError, match=r"env.mix.1.kind: 'gsm9k' is not known; did you mean 'gsm8k'"):
        load_run_problems(config(two[0], {"name": "typo", "kind": "gsm9k"}))
