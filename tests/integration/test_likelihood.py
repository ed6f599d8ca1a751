"""A run that is rewarded by the likelihood of the gold answer: stored, replayed, explained, resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec import UNSET
from pydantic import ValidationError

from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.inspector.views.why import why
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import Scheme, replay_run, scheme_of
from debate_rl.training.loop import DEBATES, train, train_step, train_steps
from debate_rl.training.run import open_training
from rewards import RewardConfig
from transcripts import RunStore, read_records

from .conftest import model_that_says

PIECES = ["<solution> 8 + 3. \\boxed{1 + 2}</solution>", "<solution> 2 + 5. \\boxed{3 + 4}</solution>", "x"]
BASE: dict[str, Any] = {
    "seed": 3,
    "env": {"kind": "pair_sum", "limit": 8},
    "held_out": {"every": 0},
    "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny"},
    "rewards": {"truth_weight": 0.5, "likelihood_weight": [[0, 1.0], [2, 0.5]]},
    "likelihood": {"prompt": "$reasoning \\boxed{ $answer}"},
    "learner": {"keep_reference": True, "lr": 1e-3, "warmup_steps": 0},
    "model": model_that_says(PIECES),
    "train": {"steps": 3, "batch_size": 2, "group_size": 2, "save_every": 1},
    "logging": {"progress": "none"},
}
LORA = {"model": BASE["model"] | {"lora_rank": 2}}


def config_of(folder: Path, **changes: Any) -> Config:
    return Config.model_validate(BASE | changes | {"run": {"dir": str(folder)}})


def train_of(steps: int, **more: Any) -> dict[str, Any]:
    return {"train": BASE["train"] | {"steps": steps, **more}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Config]:
    config = config_of(tmp_path_factory.mktemp("likelihood") / "run")
    train(config)
    return Path(config.run.dir), config


def test_likelihoods_are_stored_with_each_debate_and_are_its_reward(run: tuple[Path, Config]):
    records = list(read_records(run[0]))
    assert len(records) == 3 * 2 * 2
    for record in records:
        assert record.likelihoods is not UNSET
        assert record.rewards is not None
        assert record.rewards.likelihood is not UNSET
        read, baseline = record.likelihoods.logprobs, record.likelihoods.baseline
        assert baseline is not None
        assert baseline < 0
        for row, rewarded in zip(read, record.rewards.likelihood, strict=True):
            assert [value - baseline for value in row if value is not None] == list(rewarded)


def test_metrics_have_the_weight_of_each_step_the_reward_and_what_it_is_made_of(run: tuple[Path, Config]):
    rows = read_metrics(run[0] / "metrics.jsonl")
    assert [row["schedule/likelihood_weight"] for row in rows] == [1.0, 0.75, 0.5]
    for row in rows:
        difference = row["likelihood/logprob"] - row["likelihood/baseline"]
        assert row["reward/likelihood/mean"] == pytest.approx(difference)  # all debates have as many turns
        assert row["reward/likelihood/n"] == 2 * 2 * 3 * 2
        assert row["kl_mean"] is not None  # the reference is there, with beta 0


def test_replay_gives_what_was_stored_and_the_inspector_explains_it(run: tuple[Path, Config]):
    folder, config = run
    own = scheme_of(config)
    with RunStore.open(folder) as store:
        assert not any(change.differs for change in replay_run(store, own, own))
        without = Scheme(RewardConfig(truth_weight=0.5), own.advantages, own.group_size)
        assert any(change.change for change in replay_run(store, own, without))
        found = why(store, config, "1.0", TurnId(0, 0))
    assert found.matches is True
    stream = next(stream for stream in found.streams if stream["name"] == "likelihood")
    assert eval(stream["reward"].formula) == pytest.approx(stream["reward"].value)
    assert found.total["likelihood"] is not None
    assert eval(found.total["generator"].formula) == pytest.approx(found.total["generator"].value)
    assert "A_likelihood" in found.total["generator"].source


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, LORA], ids=["full", "lora"])
def test_a_run_that_resumes_ends_as_one_that_was_left_alone(tmp_path: Path, changes: dict[str, Any]):
    straight = train(config_of(tmp_path / "straight", **changes, **train_of(4)))
    train(config_of(tmp_path / "resumed", **changes, **train_of(2)))
    resumed = train(config_of(tmp_path / "resumed", **changes, **train_of(4)))
    pairs = zip(straight.model.state_dict().values(), resumed.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    texts = [(tmp_path / name / "likelihood.jsonl").read_bytes() for name in ("straight", "resumed")]
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_a_run_that_ended_within_a_step_writes_its_baselines_again(tmp_path: Path):
    straight = train(config_of(tmp_path / "straight"))
    config = config_of(tmp_path / "stopped")

    def fails(session: Any, step: int, lapped: Any) -> dict[str, float]:
        figures = train_step(session, step, lapped)
        if step == 1:
            raise KeyboardInterrupt
        return figures

    with pytest.raises(KeyboardInterrupt), open_training(config) as session:
        train_steps(session, replace(DEBATES, step=fails))
    resumed = train(config)
    assert all(map(torch.equal, straight.model.state_dict().values(), resumed.model.state_dict().values()))
    texts = [(tmp_path / name / "likelihood.jsonl").read_bytes() for name in ("straight", "stopped")]
    assert texts[0] == texts[1]


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
        ({"likelihood": {"prompt": "$question $answer"}}, "needs"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(tmp_path: Path, changes: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        config_of(tmp_path / "run", **changes)


def test_problems_without_a_gold_answer_are_refused_by_name(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "t1", "question": "Write a poem."}\n')
    config = config_of(tmp_path / "run", env={"kind": "open", "path": str(path)})
    with pytest.raises(ValueError, match=r"is about the gold answer, and the problem 't1' of kind 'open'"):
        train(config)
