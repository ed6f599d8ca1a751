"""A run in which not everybody learns: rows and weights, and what is refused."""

from __future__ import annotations

import shutil

import pytest
import torch
from pydantic import ValidationError

from debate.policies.scripted import ScriptedPolicy
from debate_rl.config import Config
from debate_rl.engines import open_policy, with_remote
from debate_rl.inference.wrapped import engine_of
from debate_rl.metrics.step_log import read_metrics
from debate_rl.runs.weights import newest_weights
from debate_rl.training.loop import train, train_steps
from debate_rl.training.run import open_training
from transcripts import read_records

from .conftest import merged
from .protocol_runs import COMMON, RUNS, SAID

SEATS = RUNS["seats"]["debate"]["seats"]


def config_of(folder, **tables) -> Config:
    return Config.model_validate(merged(COMMON, RUNS["seats"]) | {"run": {"dir": str(folder)}} | tables)


def weights_of(session) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in session.model.named_parameters()}


def frozen_of(session) -> dict[str, torch.Tensor]:
    return dict(engine_of(session.policy)._frozen[0])


def test_frozen_weights_are_those_of_the_start_and_only_learning_seats_are_learnt_from(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    config = config_of(tmp_path / "run")
    with open_training(config) as session:
        start = weights_of(session)
        rows = []
        learn = session.learner.step
        session.learner.step = lambda given: rows.extend(given) or learn(given)
        train_steps(session)
    assert rows
    assert {row.turn.agent for row in rows} <= {0, 2}
    assert any(not torch.equal(start[name], value) for name, value in weights_of(session).items())
    assert all(torch.equal(start[name], value) for name, value in frozen_of(session).items())
    for record in read_records(tmp_path / "run"):
        assert {part.turn.agent for part in record.advantages} <= {0, 2}
        assert all(turn.parsed.answer == "3 4" for turn in record.debate.turns if turn.id == (1, 0))
    opened = engine_of(open_policy(config, newest_weights(tmp_path / "run")))
    assert all(torch.equal(start[name], value) for name, value in opened._frozen[0].items())
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]
    assert {f"seat/{seat}/accuracy" for seat in SEATS} <= line.keys()
    assert "eval/debate/seat/frozen/accuracy" in line


@pytest.mark.slow
def test_a_resumed_run_whose_start_is_gone_takes_no_other_weights_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    train(config_of(tmp_path / "first"))
    own = {"warm_start": {"from_run": f"{tmp_path / 'first'}@newest"}}
    train(config_of(tmp_path / "run", **own))
    shutil.rmtree(tmp_path / "run" / "warm_start")
    with pytest.raises(ValueError, match=r"run/warm_start: the weights that this run began with are gone"):
        train(config_of(tmp_path / "run", **own, train=COMMON["train"] | {"steps": 3}))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"remote": {}}, r'debate.seats: agent 1 is "remote", but no endpoint is named; set remote.endpoint'),
        ({"debate": {"num_agents": 4}}, "remote.endpoint: is not used"),
        (
            {
                "model": {"policy": "vllm", "name_or_path": "m", "lora_rank": 2},
                "warm_start": {"from_run": "runs/other"},
            },
            r"warm_start.from_run = 'runs/other' starts from a trained adapter",
        ),
    ],
)
def test_seats_that_nobody_can_take_are_refused(tmp_path, tables, message):
    with pytest.raises(ValidationError, match=message):
        config_of(tmp_path, **tables)


def test_a_remote_model_that_is_not_there_is_named_by_its_own_key(tmp_path):
    other = {"policy": "local", "model": str(tmp_path / "nowhere")}
    with pytest.raises(ValueError, match=r"^endpoints\.other\.model: no model in '.*nowhere' \(neither "):
        with_remote(config_of(tmp_path / "run", endpoints={"other": other}), ScriptedPolicy(lambda _: SAID))
