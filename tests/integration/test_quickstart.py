"""The quick-start as a user runs it, with wide margins; the figures are benchmarks/quickstart_seeds.py."""

import json

import pytest

from .conftest import python


@pytest.mark.slow
def test_one_quick_start_learns_by_debate(tmp_path):
    figures, output = quick_start(tmp_path, "pair_sum", "--seed", "7")

    assert figures["accuracy_round_0_after"] - figures["accuracy_round_0_before"] > 0.05
    assert figures["winner_accuracy_before"] - figures["accuracy_round_0_before"] > 0.1
    assert figures["winner_accuracy_after"] - figures["accuracy_round_0_after"] > 0.05
    assert figures["judge_accuracy_after"] > 0.9
    assert figures["judge_accuracy_after_sampled"] > 0.8
    assert figures["valid_xml"] > 0.9
    assert "Try next:" in output
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") > 3


@pytest.mark.slow
def test_word_problems_learn_too(tmp_path):
    brief = ("warm_start.debate_steps=350", "train.steps=6", "held_out.limit=60", "held_out.every=0")
    figures, _ = quick_start(tmp_path, "words", "--seed", "7", *brief)

    assert figures["accuracy_round_0_after"] - figures["accuracy_round_0_before"] > 0.15
    assert figures["judge_accuracy_after"] > 0.7


@pytest.mark.slow
def test_a_finished_one_shows_its_figures_again_and_says_so(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    brief = ["warm_start.solve_steps=1", "warm_start.debate_steps=1", "held_out.limit=4", "train.steps=1"]
    run = "runs/quickstart-pair_sum-0"
    _, first, err = debate_command("quickstart", *brief)
    assert [line for line in err.splitlines() if line.startswith("warm start 0/2")]
    for command in ("inspect", "report"):
        assert f" {command} {run}\n" in first
    with monkeypatch.context() as patch:
        patch.setattr(
            "debate_rl.training.open_or_resume.open_training", None
        )  # whoever loads the model fails
        _, again, _ = debate_command("quickstart", *brief, "logging.progress=none", "--json", "f.json")
    told, *table = again.splitlines()
    assert told.startswith(
        f"{run} already contains this finished run; these are its figures from quickstart.json. "
    )
    assert table == first.splitlines()[-len(table) :]
    assert " about as often as one agent in round 0: +" in again  # four problems
    assert json.loads((tmp_path / "f.json").read_text())[0]["name"] == "accuracy_round_0_before"
    kept = tmp_path / run / "quickstart.json"
    kept.write_text(kept.read_text().replace('"weights": "', '"weights": "other'))
    _, measured, _ = debate_command("quickstart", *brief)
    assert f"{run} already contains this finished run; it is only evaluated again" in measured
    code, _, err = debate_command("quickstart", *brief, "learner.lr=1.0")
    assert (code, "contains a run with another configuration: learner.lr" in err) == (2, True)


def quick_start(tmp_path, family, *options):
    words = ("-m", "debate_rl", "quickstart", "--family", family, *options)
    done = python(*words, "--json", "figures.json", f"run.dir={tmp_path / 'run'}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text())
    return {row["name"]: row["value"] for row in rows}, done.stdout
