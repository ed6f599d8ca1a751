"""A run in which not everybody learns: rows, weights, resume, evaluation, pages; what is refused."""

from __future__ import annotations

import json
import shutil
import sys
import types

import pytest
import torch
from pydantic import ValidationError

from debate.policies.scripted import ScriptedPolicy
from debate_rl.config import Config
from debate_rl.engines import open_policy, with_remote
from debate_rl.inference.wrapped import engine_of
from debate_rl.metrics.step_log import read_metrics
from debate_rl.runs.weights import newest_weights
from debate_rl.training.loop import finish_step, train_step, train_steps
from debate_rl.training.run import Run, open_training
from transcripts import RunStore, read_records

from .conftest import model_that_says

SEATS = ["learning", "remote", "learning", "frozen"]
HANDLES = ("K7", "Q2", "M4", "T9")
PIECES = [
    *(f"<solution>\\boxed{{{a} {b}}}</solution>" for a, b in ((1, 2), (3, 4))),
    *(f"<comparison>{a} > {b}</comparison>" for a in HANDLES for b in HANDLES if a != b),
]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 8},
    "held_out": {"limit": 2, "every": 1},
    "debate": {
        "num_agents": 4,
        "num_rounds": 1,
        "max_tokens": 12,
        "prompts": "tiny",
        "handles": HANDLES,
        "seats": SEATS,
    },
    "model": model_that_says(PIECES),
    "learner": {"lr": 0.01},
    "train": {"steps": 2, "batch_size": 2, "group_size": 4, "save_every": 1},
    "endpoints": {"other": {"policy": "my_remote:make"}},
    "remote": {"endpoint": "other"},
    "logging": {"progress": "none"},
}
SAID = "<solution>\\boxed{3 4}</solution>"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedPolicy]:
    """The remote models that were made, in order."""
    made: list[ScriptedPolicy] = []

    def make() -> ScriptedPolicy:
        made.append(ScriptedPolicy(lambda _: SAID))
        return made[-1]

    make.__annotations__["return"] = ScriptedPolicy
    module = types.ModuleType("my_remote")
    make.__module__ = "my_remote"
    module.make = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_remote", module)
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    return made


def config_of(folder, **tables) -> Config:
    return Config.model_validate(BASE | {"run": {"dir": str(folder)}} | tables)


def trained(config: Config) -> Run:
    with open_training(config) as session:
        train_steps(session)
        return session


def weights_of(session: Run) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in session.model.named_parameters()}


def frozen_of(session: Run) -> dict[str, torch.Tensor]:
    return dict(engine_of(session.policy)._frozen[0])  # type: ignore[attr-defined]


def test_frozen_weights_are_those_of_the_start_and_only_learning_seats_are_learnt_from(tmp_path, asked):
    config = config_of(tmp_path / "run")
    with open_training(config) as session:
        start = weights_of(session)
        rows = []
        learn = session.learner.step
        session.learner.step = lambda given: rows.extend(given) or learn(given)  # type: ignore[method-assign]
        train_steps(session)
    assert rows
    assert {row.turn.agent for row in rows} <= {0, 2}
    assert any(not torch.equal(start[name], value) for name, value in weights_of(session).items())
    assert all(torch.equal(start[name], value) for name, value in frozen_of(session).items())
    assert {request.turn.agent for request in asked[0].requests} == {1}
    for record in read_records(tmp_path / "run"):
        assert {part.turn.agent for part in record.advantages} <= {0, 2}
        assert all(turn.parsed.answer == "3 4" for turn in record.debate.turns if turn.id == (1, 0))
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]
    assert {f"seat/{seat}/accuracy" for seat in SEATS} <= line.keys()
    assert "eval/debate/seat/frozen/accuracy" in line


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_and_resumed_run_is_the_unkilled_one(tmp_path, asked, rank):
    own = {"model": BASE["model"] | {"lora_rank": rank}}
    straight = trained(config_of(tmp_path / "straight", **own))
    with open_training(config_of(tmp_path / "killed", **own)) as session:
        finish_step(session, 0, train_step(session, 0))
        train_step(session, 1)  # and it ends before this step is finished
    resumed = trained(config_of(tmp_path / "killed", **own))
    for one, other in ((weights_of, weights_of), (frozen_of, frozen_of)):
        assert all(torch.equal(value, other(resumed)[name]) for name, value in one(straight).items())
    assert [list(read_records(tmp_path / name)) for name in ("straight",)] == [
        list(read_records(tmp_path / "killed"))
    ]


@pytest.mark.slow
def test_a_resumed_run_whose_start_is_gone_takes_no_other_weights_for_it(tmp_path, asked):
    trained(config_of(tmp_path / "first"))
    own = {"warm_start": {"from_run": f"{tmp_path / 'first'}@newest"}}
    trained(config_of(tmp_path / "run", **own))
    shutil.rmtree(tmp_path / "run" / "warm_start")
    with pytest.raises(ValueError, match=r"run/warm_start: the weights that this run began with are gone"):
        trained(config_of(tmp_path / "run", **own, train=BASE["train"] | {"steps": 3}))


@pytest.mark.slow
def test_an_evaluation_has_the_same_seats_and_weights(tmp_path, asked, debate_command):
    config = config_of(tmp_path / "run")
    session = trained(config)
    policy = open_policy(config, newest_weights(tmp_path / "run"))
    opened = engine_of(policy)
    assert all(torch.equal(value, frozen_of(session)[name]) for name, value in opened._frozen[0].items())  # type: ignore[attr-defined]
    code, out, err = debate_command("eval", tmp_path / "run")
    assert code == 0, err
    assert "debate seat frozen accuracy" in out
    for words in (("report", tmp_path / "run"), ("replay", tmp_path / "run"), ("inspect", tmp_path / "run")):
        code, out, err = debate_command(*words)
        assert code == 0, (words, err)


@pytest.mark.slow
def test_pages_say_who_sits_where_and_why_nothing_is_learnt_from_a_seat(tmp_path, asked, debate_command):
    trained(config_of(tmp_path / "run"))
    run = str(tmp_path / "run")
    with RunStore.open(run) as store:
        id, record = next(iter(store.records()))
    assert record.debate.protocol.seats == tuple(SEATS)
    code, out, err = debate_command("inspect", run, "show", id)
    assert code == 0, err
    assert "(frozen)" in out
    assert "(remote)" in out
    assert "(learning)" not in out
    code, out, err = debate_command("inspect", run, "why", id, "--turn", "3.0")
    assert code == 0, err
    assert "the seat is frozen: nothing is learnt from this turn" in out
    code, out, err = debate_command("inspect", run, "show", id, "--json")
    assert json.loads(out)["seats"] == SEATS


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"remote": {}}, r'debate.seats: agent 1 is "remote", and nobody is named; set remote.endpoint'),
        ({"debate": {"num_agents": 4}}, "remote.endpoint: nobody asks it"),
        (
            {"model": {"policy": "vllm", "name_or_path": "m"}},
            r'debate.seats: "frozen" with model.policy = "vllm" needs an adapter',
        ),
        (
            {
                "model": {"policy": "vllm", "name_or_path": "m", "lora_rank": 2},
                "warm_start": {"from_run": "runs/other"},
            },
            r"warm_start.from_run = 'runs/other' begins with one that has learnt",
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
