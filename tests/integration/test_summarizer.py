"""A summariser of the recipe's own, in training, evaluation and on resume; and what is refused."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from pydantic import ValidationError

from debate.policies.scripted import ScriptedPolicy
from debate.types import SUMMARIZER
from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError
from debate_rl.evaluation.folder import identity
from debate_rl.training.loop import evaluate_first, finish_step, train
from debate_rl.training.run import open_training
from transcripts import read_records

from .conftest import model_that_says

GIST = "The others are not sure."
PIECES = ["<solution>\\boxed{1 + 2}</solution>", "<solution>\\boxed{3 + 4}</solution>", GIST]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "limit": 8},
    "held_out": {"limit": 2, "every": 1},
    "debate": {
        "num_rounds": 2,
        "max_tokens": 24,
        "prompts": "tiny",
        "summary": {"enabled": True, "max_tokens": 8},
    },
    "model": model_that_says(PIECES),
    "train": {"steps": 2, "batch_size": 2, "group_size": 2, "save_every": 1},
    "endpoints": {"short": {"policy": "my_summarizer:make"}},
    "summarizer": {"endpoint": "short"},
    "logging": {"progress": "none"},
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedPolicy]:
    """The summarisers that were made, in order."""
    made: list[ScriptedPolicy] = []

    def make() -> ScriptedPolicy:
        made.append(ScriptedPolicy(lambda request: GIST))
        return made[-1]

    make.__annotations__["return"] = ScriptedPolicy
    module = types.ModuleType("my_summarizer")
    make.__module__ = "my_summarizer"
    module.make = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_summarizer", module)
    return made


def config_of(folder: Path, **tables: object) -> Config:
    return Config.model_validate(BASE | {"run": {"dir": str(folder)}} | tables)


def test_the_recipes_summariser_writes_every_summary_and_nothing_else(
    tmp_path: Path, asked: list[ScriptedPolicy]
):
    config = config_of(tmp_path / "run")
    train(config)
    [summarizer] = asked  # one for training and evaluations
    assert {request.turn.agent for request in summarizer.requests} == {SUMMARIZER}
    records = list(read_records(tmp_path / "run"))
    assert len(records) == 8
    for record in records:
        # round 1 and the ballot show something
        assert [summary.text for summary in record.debate.summaries] == [GIST, GIST]
        assert all(turn.id.agent != SUMMARIZER for turn in record.debate.turns)
    held_out = 3 * 2  # before the first step and after each of two, two problems
    assert len(summarizer.requests) == 2 * (8 + held_out)


@pytest.mark.slow
def test_a_resumed_run_is_the_straight_one(tmp_path: Path, asked: list[ScriptedPolicy]):
    train(config_of(tmp_path / "straight"))
    stopped = config_of(tmp_path / "stopped")
    from debate_rl.training.loop import train_step

    with open_training(stopped) as session:
        evaluate_first(session)
        finish_step(session, 0, train_step(session, 0))
        session.save_finished()
    train(stopped)
    lines = [
        [(one.debate, one.rewards, one.advantages) for one in read_records(tmp_path / name) if one.step == 1]
        for name in ("straight", "stopped")
    ]
    assert lines[0] == lines[1]
    assert len(asked) == 3


def test_without_one_the_policy_writes_them(tmp_path: Path, asked: list[ScriptedPolicy]):
    config = config_of(
        tmp_path / "run", summarizer={}, train=BASE["train"] | {"steps": 1}, held_out={"every": 0}
    )
    train(config)
    assert asked == []
    records = list(read_records(tmp_path / "run"))
    assert all(len(record.debate.summaries) == 2 for record in records)


def test_evaluations_by_another_summariser_are_others(tmp_path: Path):
    own, other = config_of(tmp_path), config_of(tmp_path, summarizer={})
    assert "summarizer" in identity(own, [], None, [0])
    assert "summarizer" not in identity(other, [], None, [0])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"debate": {}},
            "summarizer.endpoint: is not used",
        ),
        ({"endpoints": {"short": {"policy": "gpt"}}}, "unknown policy 'gpt'"),
        ({"endpoints": {"short": {"policy": "local"}}}, "model: is missing"),
        ({"endpoints": {"short": {"model": "m"}}}, "base_url: is missing"),
        ({"endpoints": {"short": {"model": "m", "base_url": "host"}}}, "must begin with http"),
        ({"summarizer": {"endpoint": "shrot"}}, "did you mean 'short'"),
        ({"endpoints": {"short": {"policy": "local", "modle": "m"}}}, "did you mean 'model'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, tables: dict[str, object], message: str):
    with pytest.raises(ValidationError, match=message):
        config_of(tmp_path, **tables)


def test_a_runs_own_code_is_not_loaded(
    tmp_path: Path, asked: list[ScriptedPolicy], monkeypatch: pytest.MonkeyPatch
):
    from debate_rl.config.recipes import read_run_config

    train(config_of(tmp_path / "run", train=BASE["train"] | {"steps": 0}))
    monkeypatch.delenv("DEBATE_OWN_CODE", raising=False)
    with pytest.raises(ConfigError, match=r"endpoints.short.policy='my_summarizer:make' names code"):
        read_run_config(tmp_path / "run")


def test_the_summariser_may_think_as_long_as_it_is_told():
    from debate.config import DebateConfig

    assert DebateConfig(thinking_tokens=9).summary_thinking == 9
    assert DebateConfig(thinking_tokens=9, summary={"thinking_tokens": 0}).summary_thinking == 0  # type: ignore[arg-type]
