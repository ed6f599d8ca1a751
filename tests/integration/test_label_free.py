"""Training without labels, by the whole loop: what is hidden stays hidden, and the ledger is exact."""

import json

import pytest

from debate_rl.config import Config
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import replay_step, scheme_of, score_step
from debate_rl.training.loop import train
from rewards import RewardConfig
from rewards.labels import OF_TRUTH, is_labelled
from transcripts import read_records

from .conftest import merged, same_weights, train_killed, weights_of
from .protocol_runs import PARITY, Parity, Reader

TRAIN = {"steps": 4, "batch_size": 3, "group_size": 2, "save_every": 1}
BASE = merged(PARITY, {"held_out": {"limit": 0}, "train": TRAIN})


def config_of(folder, **changes):
    return Config.model_validate(merged(BASE, {"run": {"dir": str(folder)}, **changes}))


EVERYTHING = {
    "rewards": {"labels": 0.0, "pseudo": "majority", "judge_pseudo": True, "peer_weight": "routed"},
    "advantages": {"judge": {"key": "pair"}},
    "sampling": {"towards_half": True, "retry_steps": 2},
    "train": {"dynamic_sampling": 2, "adaptive": {"chunk": 1, "right": 1, "wrong": 1}},
}


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.filterwarnings("ignore::debate_rl.preflight.start.SchemeWarning")
def test_grades_without_a_label_train_nothing(hidden, tmp_path, monkeypatch):
    """With every gate and rule that reads grades: all of them turned round give the same weights."""
    changes = merged(EVERYTHING, {"rewards": {"labels": 0.0 if hidden else 0.99}})
    one = train(config_of(tmp_path / "one", **changes))
    monkeypatch.setattr(Parity, "turned", True)
    other = train(config_of(tmp_path / "other", **changes))
    assert same_weights(weights_of(one), weights_of(other)) == hidden
    assert not hidden or not (one.folder.path / "labels.jsonl").exists()


@pytest.mark.slow
def test_the_ledger_names_each_label_once_and_is_exact_after_a_stop(tmp_path):
    changes = {"rewards": {"labels": 0.5, "pseudo": "majority"}}
    whole = train(config_of(tmp_path / "whole", **changes))
    ledger = [json.loads(line) for line in whole.folder.labels.read_text().splitlines()]
    records = list(read_records(whole.folder.transcripts))
    used = {}
    for record in records:
        if is_labelled(record.debate.problem, RewardConfig(labels=0.5), 5):
            used.setdefault(record.debate.problem.id, record.step)
        assert (not record.credit) == is_labelled(record.debate.problem, RewardConfig(labels=0.5), 5)
    assert {row["problem"]: row["step"] for row in ledger} == used
    assert len(ledger) == len(used) > 1
    rows = read_metrics(whole.folder.metrics)
    assert rows[-1]["labels/used"] == len(used)
    assert {"labels/share", "labels/pseudo", "audit/pseudo_right"} <= rows[0].keys()

    parts = config_of(tmp_path / "parts", **changes)
    train_killed(parts, 1)  # labels are noted, and nothing is saved
    again = train(parts)
    assert again.folder.labels.read_text() == whole.folder.labels.read_text()
    assert same_weights(weights_of(again), weights_of(whole))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"rewards": {"labels": 0.3, "pseudo": "anchored", "judge_pseudo": True}},
        {"rewards": {"labels": 0.5, "peer_weight": "routed"}},
        {
            "rewards": {"labels": 0.0, "pseudo": "verified", "judge_pseudo": True},
            "endpoints": {"judge": {"policy": f"{Reader.__module__}:Reader"}},
            "verifier": {"endpoint": "judge", "beside_truth": True, "max_tokens": 4000},
        },
        {
            "debate": {"ask_swapped": True},
            "rewards": {"labels": 0.0, "swap_weight": 0.5},
            "held_out": {"limit": 2, "every": 1},  # solutions of one agent alone, without a ballot
        },
        {"rewards": {"labels": 0.9, "peer_weight": "measured"}},
        {"train": {"control": "random_reward"}},
        {"train": {"control": {"flipped_votes": 0.3}}},
        {"train": {"control": {"shared_errors": 0.3}}},
    ],
)
def test_what_was_rewarded_is_replayed_as_it_was(changes, tmp_path):
    session = train(config_of(tmp_path / "run", **merged({"train": {"steps": 2}}, changes)))
    scheme, state = scheme_of(session.config), {}
    for step in range(2):
        records = [one for one in read_records(session.folder.transcripts) if one.step == step]
        scored = score_step(records, scheme)
        assert list(scored.rewards) == [record.rewards for record in records]
        assert list(scored.credits) == [record.credit or OF_TRUTH for record in records]
        replayed = replay_step(scored, scheme, state)
        assert [one.advantages for one in replayed] == [record.advantages for record in records]
        if session.config.verifier.endpoint:
            labels = {label for credit in scored.credits for label in credit.labels}
            assert labels == {"1", None}  # what the verifier model does not hold for right is no label
    if session.config.debate.ask_swapped:
        assert any(value is not None for one in scored.rewards for row in one.judge for value in row)


@pytest.mark.slow
def test_the_measured_weight_of_votes_is_exact_after_a_stop_and_reads_labels_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("rewards.measured.LEAST", 2.0)
    many = {"steps": 3, "save_every": 2, "batch_size": 8, "group_size": 4}
    changes = {"rewards": {"labels": 0.9, "peer_weight": "measured"}, "train": many}
    whole = train(config_of(tmp_path / "whole", **changes))
    assert any(name.startswith("measured/") for name in whole.ema)
    rows = read_metrics(whole.folder.metrics)
    assert rows[0]["labels/vote_weight"] == 0
    assert "labels/votes_right" in rows[-1]
    parts = config_of(tmp_path / "parts", **changes)
    train_killed(parts, 2)  # the votes are measured, and nothing is saved
    again = train(parts)
    assert again.ema == whole.ema
    assert same_weights(weights_of(again), weights_of(whole))
