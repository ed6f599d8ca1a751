"""A run whose rewards change with the step: resumed, replayed and explained as it was trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.inspector.views.why import why
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import Scheme, replay_run, scheme_of
from debate_rl.training.loop import finish_step, train, train_step
from debate_rl.training.run import open_training
from rewards import RewardConfig
from transcripts import RunStore, read_records

from .conftest import model_that_says

PIECES = ["<solution>\\boxed{1 + 2}</solution>", "<solution>\\boxed{3 + 4}</solution>", "x"]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "limit": 8},
    "held_out": {"every": 0},
    "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny", "temperature": [[0, 1.2], [4, 1.0]]},
    "rewards": {
        "truth_weight": [[0, 1.0], [4, 0.5]],
        "novelty_bonus": [[0, 0.3], [2, 0.0]],
        "copy_penalty": -0.1,
        "truth_rounds": "last",
        "judge_ties": "reward",
        "peer": "net_wins",
    },
    "advantages": {"discount": 0.7, "lambda_judge": [[0, 0.0], [3, 1.0]]},
    "model": model_that_says(PIECES),
    "train": {"steps": 3, "batch_size": 2, "group_size": 2, "save_every": 1},
    "logging": {"progress": "none"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Config]:
    folder = tmp_path_factory.mktemp("changing") / "run"
    config = Config.model_validate(BASE | {"run": {"dir": str(folder)}})
    train(config)
    return folder, config


def learnt_from(folder: Path) -> list[tuple[object, ...]]:
    return [(one.debate, one.correct, one.rewards, one.advantages) for one in read_records(folder)]


def test_a_resumed_run_is_the_straight_one(run: tuple[Path, Config], tmp_path: Path):
    config = Config.model_validate(BASE | {"run": {"dir": str(tmp_path / "stopped")}})
    with open_training(config) as session:
        finish_step(session, 0, train_step(session, 0))
        session.save_finished()
    train(config)
    assert learnt_from(tmp_path / "stopped") == learnt_from(run[0])


def test_every_step_is_logged_with_its_weights(run: tuple[Path, Config]):
    lines = list(read_metrics(run[0] / "metrics.jsonl"))
    assert [line["schedule/truth_weight"] for line in lines] == [1.0, 0.875, 0.75]
    assert [line["schedule/novelty_bonus"] for line in lines] == [0.3, 0.15, 0.0]
    assert [line["schedule/temperature"] for line in lines] == pytest.approx([1.2, 1.15, 1.1])
    temperatures = {(one.step, one.debate.personas[0].temperature) for one in read_records(run[0])}
    assert sorted(temperatures) == [(0, 1.2), (1, pytest.approx(1.15)), (2, pytest.approx(1.1))]


def test_every_number_of_every_turn_is_explained_as_stored(run: tuple[Path, Config]):
    folder, config = run
    explained = 0
    with RunStore.open(folder) as store:
        for id, record in store.records():
            for turn in record.debate.turns:
                found = why(store, config, id, turn.id)
                assert found.matches is not False, (id, turn.id)
                explained += found.matches is True
        first = why(store, config, "0.0", TurnId(0, 0))
    assert explained > 12
    assert first.truth is not None
    assert first.truth["reward"].value is None
    assert first.truth["reward"].source == 'not the last round, by rewards.truth_rounds = "last"'


def test_a_replay_gives_what_was_stored_and_another_ramp_something_else(run: tuple[Path, Config]):
    folder, config = run
    scheme = scheme_of(config)
    tables = config.rewards.model_dump() | {"truth_weight": [[0, 0.0], [2, 1.0]]}
    other = Scheme(RewardConfig.model_validate(tables), scheme.advantages, scheme.group_size)
    with RunStore.open(folder) as store:
        same = list(replay_run(store, scheme, scheme))
        changed = list(replay_run(store, scheme, other))
    assert len(same) == 12
    assert not any(one.differs or one.change for one in same)
    assert all(one.checked for one in same)
    assert not any(one.differs for one in changed)
