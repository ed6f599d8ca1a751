"""Who writes the summaries of a run, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from debate_rl.config import Config
from debate_rl.evaluation.folder import identity
from debate_rl.training.loop import train

from .conftest import merged, records
from .protocol_runs import COMMON, RUNS


def config_of(folder, **tables):
    own = {"run": {"dir": str(folder)}, **tables}
    return Config.model_validate(merged(COMMON, RUNS["summarized"]) | own)


def test_without_an_endpoint_the_policy_writes_them_and_evaluations_are_others(tmp_path):
    config = config_of(tmp_path / "run", summarizer={}, train=COMMON["train"] | {"steps": 1})
    train(config)
    assert all(len(record.debate.summaries) == 2 for record in records(tmp_path / "run").values())
    assert "summarizer" not in identity(config, [], None, [0])
    assert "summarizer" in identity(config_of(tmp_path), [], None, [0])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"debate": {}}, "summarizer.endpoint: is not used"),
        ({"endpoints": {"other": {"policy": "gpt"}}}, "unknown policy 'gpt'"),
        ({"endpoints": {"other": {"policy": "local"}}}, "model: is missing"),
        ({"endpoints": {"other": {"model": "m"}}}, "base_url: is missing"),
        ({"endpoints": {"other": {"model": "m", "base_url": "host"}}}, "must begin with http"),
        ({"summarizer": {"endpoint": "otehr"}}, "did you mean 'other'"),
        ({"endpoints": {"other": {"policy": "local", "modle": "m"}}}, "did you mean 'model'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, tables, message):
    with pytest.raises(ValidationError, match=message):
        config_of(tmp_path, **tables)
