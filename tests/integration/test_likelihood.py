"""A run that is rewarded by the likelihood of the gold answer: its baselines, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from pydantic import ValidationError

from debate_rl.config import Config
from debate_rl.training.loop import train
from transcripts import read_records

from .conftest import merged
from .protocol_runs import COMMON, RUNS

BASE: dict[str, Any] = merged(COMMON, RUNS["likelihood"])


def config_of(folder: Path, **changes: Any) -> Config:
    return Config.model_validate(BASE | changes | {"run": {"dir": str(folder)}})


def train_of(steps: int, **more: Any) -> dict[str, Any]:
    return {"train": BASE["train"] | {"steps": steps, **more}}


@pytest.mark.parametrize(("baseline", "zero"), [("empty", False), ("none", True)])
def test_other_baselines_need_no_solution_of_the_reference(tmp_path: Path, baseline: str, zero: bool):
    changes = {"likelihood": BASE["likelihood"] | {"baseline": baseline}}
    session = train(config_of(tmp_path / "run", **changes, **train_of(1)))
    record = next(iter(read_records(session.folder.path)))
    assert record.likelihoods is not UNSET
    assert (record.likelihoods.baseline is None) is zero
    assert not (session.folder.path / "likelihood.jsonl").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner": {}}, "set learner.keep_reference = true"),
        ({"learner": {"beta": 0.1, "reference_every": 5}}, "learner.reference_every = 5"),
        (train_of(1, dynamic_sampling=2), "train.dynamic_sampling = 2"),
        ({"rewards": {"likelihood_weight": -1.0}}, "greater than or equal to 0"),
        ({"likelihood": {"prompt": "$question $answer"}}, "must contain"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(tmp_path: Path, changes: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        config_of(tmp_path / "run", **changes)


def test_problems_without_a_gold_answer_are_refused_by_name(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "t1", "question": "Write a poem."}\n')
    config = config_of(tmp_path / "run", env={"kind": "open", "path": str(path)})
    with pytest.raises(ValueError, match=r"but the problem 't1' of kind 'open' has none"):
        train(config)
