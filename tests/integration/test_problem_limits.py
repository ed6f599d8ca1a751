"""Epochs, long prompts and test-time learning, from the command to what a run keeps and reports."""

import json

import pytest

from debate_rl.metrics.step_log import read_metrics
from debate_rl.sampling.problems import OverlapWarning
from envs.errors import DataWarning

SIZES = ["run.dir=run", "train.batch_size=2", "train.steps=none", "env.levels=none", "env.limit=none"]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The settings of a file of seven problems, the last of them with a long question."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"q{n}", "question": f"{n} + 1?", "answer": n + 1, "level": n % 2} for n in range(7)]
    rows[6]["question"] += " and so on" * 50
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "short.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    return ["env.kind=file", "env.path=own.jsonl"]


@pytest.mark.slow
def test_two_epochs_without_the_long_prompt(file, tiny_recipe, tmp_path, debate_command):
    limits = ["train.epochs=2", "env.max_prompt_tokens=400", "held_out.limit=1", "held_out.every=0"]
    with pytest.warns(DataWarning, match=r"1 of 6 training problems left out \(16\.7%\)"):
        code, _, err = debate_command("train", tiny_recipe, *file, *SIZES, *limits)
    assert code == 0, err
    assert "problems: 5 to train on, 1 held out" in err
    assert "  levels, to train on: 0: " in err
    assert "an epoch is 2.5 steps of 2 problems; 5 steps are 2.00 epochs" in err
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["epoch"] for row in rows] == [0.4, 0.8, 1.2, 1.6, 2.0]
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["too_long"] == {"left_out": 1, "of": 6}
    assert facts["problems"]["train"]["problems"] == 5
    with pytest.warns(DataWarning, match="left out"):
        code, _, err = debate_command("train", "run")
    assert code == 0, err
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == 5
    with pytest.warns(DataWarning, match="left out"):
        code, _, err = debate_command("train", "run", "train.epochs=3")  # 7.5 steps
    assert code == 0, err
    assert "resuming after 5 of 7 steps" in err
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == 7


@pytest.mark.slow
def test_test_time_learning_is_said_everywhere(file, tiny_recipe, tmp_path, debate_command):
    both = ["env.test_time_learning=true", "env.path=short.jsonl", "held_out.path=short.jsonl"]
    both += ["held_out.limit=6", "train.epochs=1", "held_out.every=3"]
    note = "test-time learning: 6 of 6 held-out problems are trained on"
    with pytest.warns(OverlapWarning, match=note):
        code, out, err = debate_command("train", tiny_recipe, *file, *SIZES, *both)
    assert code == 0, err
    assert note in out
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["test_time_learning"] == {"trained_on": 6, "of": 6}

    code, out, err = debate_command("eval", "run", "--json", "figures.json")
    assert code == 0, err
    assert (
        out.count("test-time learning: run is trained on problems of ") == 1
    )  # of the run, not of its start
    assert all(
        row["test-time learning"] == "yes" for row in json.loads((tmp_path / "figures.json").read_text())
    )

    code, out, err = debate_command("report", "run", "--json", "report.json", "--out", "report")
    assert code == 0, err
    said = (tmp_path / "report.json").read_text()
    assert "test-time learning: the held-out figures are of problems that are trained on" in said
    assert "trained and evaluated on the same problems: test-time learning" in said
