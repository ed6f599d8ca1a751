"""Examples of a run: which problems have how many, and what must not be among them."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET

from debate_rl.config import Config
from debate_rl.rollouts.worker import shown_at
from debate_rl.sampling.problems import load_held_out, load_run_problems
from envs import DataError


def rows(path, numbers):
    lines = [{"question": f"{n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"} for n in numbers]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def config_of(tmp_path, **shots):
    tables = {
        "env": {"kind": "gsm8k", "path": rows(tmp_path / "train.jsonl", range(8))},
        "held_out": {"path": rows(tmp_path / "test.jsonl", range(50, 53))},
        "model": {"tiny": {}},
        "shots": shots,
    }
    return Config.model_validate(tables)


def test_examples_come_from_the_training_split_and_never_are_the_problem(tmp_path):
    data = load_run_problems(config_of(tmp_path, count=3))
    for problem in (*data.train, *data.held_out):
        assert len(problem.shots) == 3
        assert problem.question not in {shot.question for shot in problem.shots}


def test_examples_that_fade_are_in_no_evaluation(tmp_path):
    config = config_of(tmp_path, count=[[0, 2], [4, 0]])
    data = load_run_problems(config)
    assert {len(problem.shots) for problem in data.train} == {2}
    assert {problem.shots for problem in data.held_out} == {UNSET}
    counts = [
        [0 if p.shots is UNSET else len(p.shots) for p in shown_at(config, data.train[:1], step)]
        for step in range(5)
    ]
    assert counts == [[2], [2], [1], [1], [0]]


def test_a_file_that_holds_a_held_out_problem_is_refused(tmp_path):
    shots = rows(tmp_path / "shots.jsonl", [1, 2, 51])
    for count in (1, [[0, 1], [3, 0]]):
        for load in (load_run_problems, load_held_out):
            with pytest.raises(DataError, match=r"shots: .*shots\.jsonl holds the held-out problem gsm8k-"):
                load(config_of(tmp_path, count=count, path=shots))
