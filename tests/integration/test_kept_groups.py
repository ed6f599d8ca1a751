"""``logging.transcript_groups``: a run that keeps the debates of some problems of a step, or of none."""

from __future__ import annotations

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train
from transcripts import RunStore


def test_so_many_problems_of_each_step_are_kept_and_metrics_are_of_all(tiny_run, tiny_recipe, tmp_path):
    """Of two steps of two problems with two debates each: all, one and no problem are kept."""
    runs, like_tiny_run = {"all": tiny_run}, ("logging.progress=none", 'advantages.peer.baseline="rae"')
    for name, kept in (("one", 1), ("nothing", 0)):
        runs[name] = tmp_path / name
        more = (f"run.dir={runs[name]}", f"logging.transcript_groups={kept}", *like_tiny_run)
        train(load_config(Config, tiny_recipe, more))
    kept, figures = {}, {}
    for name, run in runs.items():
        with RunStore.open(run) as store:
            kept[name] = {id: record.debate for id, record in store.records()}
        lines = read_metrics(run / "metrics.jsonl")
        figures[name] = [{key: line[key] for key in ("accuracy", "loss", "votes/cast")} for line in lines]
    assert list(kept["one"]) == ["0.0", "0.1", "1.0", "1.1"]
    assert len(kept["all"]) == 8
    assert kept["one"].items() <= kept["all"].items()
    assert not kept["nothing"]
    assert figures["one"] == figures["nothing"] == figures["all"]
