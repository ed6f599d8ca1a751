"""The judge in training beside the start judge: in a run, after a kill, in report and inspector."""

import json
import re

import pytest

from debate_rl.config import Config
from debate_rl.judge_attack.pairs import hack_gap, judged_steps, rates, read_judgments, read_pairs
from debate_rl.metrics.held_out import read_held_out
from debate_rl.metrics.step_log import read_metrics
from debate_rl.reports.run import load_runs
from debate_rl.reports.training import sections_of
from debate_rl.training.loop import train
from transcripts import RunStore, write_step

from .conftest import merged, model_that_says, votes_for
from .protocol_runs import SIZES

HANDLES = ("K7", "Q2", "M4")
SETTINGS = {
    "seed": 5,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 40},
    "held_out": {"limit": 8, "every": 2, "judge_pairs": 6},
    "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny", "handles": HANDLES},
    "model": merged(model_that_says(votes_for(HANDLES, "")), {"tiny": SIZES}),
    "train": {"steps": 4, "batch_size": 2, "group_size": 2, "save_every": 2},
    "logging": {"progress": "none"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged") / "run"
    train(Config.model_validate(SETTINGS | {"run": {"dir": str(folder)}}))
    return folder


def figures(folder):
    rows = read_metrics(folder / "metrics.jsonl")
    return [{n: v for n, v in row.items() if n.startswith("eval/judge/")} for row in rows]


@pytest.mark.slow
def test_the_same_pairs_are_judged_before_training_and_at_each_evaluation(run):
    pairs = read_pairs(run)
    assert len({pair.problem for pair in pairs}) == 6
    assert judged_steps(run) == [0, 2, 4]
    assert {len(read_judgments(run, step)) for step in (0, 2, 4)} == {6 * 8}
    start, now = (rates(pairs, read_judgments(run, step)) for step in (0, 4))
    assert figures(run)[-1]["eval/judge/hack_gap"] == hack_gap(now, start).value
    kept = read_held_out(run)
    assert [one.step for one in kept] == [0, 2, 4]
    means = kept[-1].means("judge/pairs/plain")
    assert means == {id: sum(row) / len(row) for id, row in now["plain"].items()}


@pytest.mark.slow
def test_pairs_change_nothing_of_what_is_learnt(run, tmp_path):
    held_out = SETTINGS["held_out"] | {"judge_pairs": 0}
    without = train(
        Config.model_validate(SETTINGS | {"held_out": held_out, "run": {"dir": str(tmp_path / "r")}})
    )
    assert [row["loss"] for row in read_metrics(run / "metrics.jsonl")] == [
        row["loss"] for row in read_metrics(without.folder.metrics)
    ]


@pytest.mark.slow
def test_report_and_inspector_show_the_pairs(run, debate_command):
    sections = {section.name: section for section in sections_of(load_runs([run]))}
    assert any(part.name == "curves/hack_gap" for part in sections["curves"].parts)
    code, out, _ = debate_command("inspect", str(run), "pairs")
    assert code == 0
    assert "fake check" in out
    assert re.search(r"evaluation +hack gap, 95% interval\nafter 4 steps +\S+.*\nafter 2 steps", out)
    code, out, _ = debate_command("inspect", str(run), "pairs", "3")
    assert code == 0
    assert read_pairs(run)[3].attacked["flattery"] in out
    code, out, _ = debate_command("inspect", str(run), "pairs", "3", "--json")
    assert json.loads(out.splitlines()[0])["attack"] == "plain"
    code, _, err = debate_command("inspect", str(run), "pairs", "99")
    assert (code, "there is no pair 99" in err) == (2, True)


@pytest.mark.slow
def test_any_weights_judge_the_starred_and_labelled_pairs(run, step_records, debate_command, tmp_path):
    other = tmp_path / "other"
    write_step(other / "transcripts", 0, step_records(0))
    with RunStore.open(other) as store:
        for id in ("0.0", "0.1", "0.2"):
            store.annotate("label", f"{id}/0.0-1.0", "left")
    file = tmp_path / "pairs.json"
    words = ("eval", str(run), "--pairs", str(other), "--json", str(file))
    code, out, err = debate_command(*words)
    assert (code, err) == (0, "")
    assert "right in both orders" in out
    found = json.loads(file.read_text())
    made, judges = found["pairs"], found["judges"]
    assert (len(made) + found["left_out"], found["by_hand"]) == (3, len(made))
    assert [one["judge"].rpartition("@")[2] for one in judges] == ["start", "4"]
    for one in judges:
        assert one["right"] == one["preferred"].count("right") / len(made)
    again = debate_command(*words, "--weights", "2")
    assert (again[0], "@2" in again[1]) == (0, True)
    code, _, err = debate_command("eval", str(run), "--pairs", str(other), "--samples", "2")
    assert (code, "can only be given with --weights, --seed and --json" in err) == (2, True)
    code, _, err = debate_command("eval", str(run), "--pairs", str(run))
    assert (code, err.count("\n"), "debate inspect RUN star ID" in err) == (2, 1, True)
