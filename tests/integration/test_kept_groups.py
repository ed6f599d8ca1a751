"""``logging.transcript_groups``: a run that keeps the debates of some problems of a step, or of none."""

from __future__ import annotations

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train
from transcripts import RunStore


@pytest.fixture(scope="module")
def home(tiny_recipe, tmp_path_factory):
    """Three runs of two steps of two problems with two debates each: all, one and no problem are kept."""
    home = tmp_path_factory.mktemp("runs")
    for name, kept in (("all", "none"), ("one", "1"), ("nothing", "0")):
        more = (f"run.dir={home / name}", "logging.progress=none", f"logging.transcript_groups={kept}")
        train(load_config(Config, tiny_recipe, more))
    return home


def test_so_many_problems_of_each_step_are_kept_and_metrics_are_of_all(home):
    kept, figures = {}, {}
    for name in ("all", "one", "nothing"):
        with RunStore.open(home / name) as store:
            kept[name] = {id: record.debate for id, record in store.records()}
        lines = read_metrics(home / name / "metrics.jsonl")
        figures[name] = [{key: line[key] for key in ("accuracy", "loss", "votes/cast")} for line in lines]
    assert list(kept["one"]) == ["0.0", "0.1", "1.0", "1.1"]
    assert len(kept["all"]) == 8
    assert kept["one"].items() <= kept["all"].items()
    assert not kept["nothing"]
    assert figures["one"] == figures["nothing"] == figures["all"]
