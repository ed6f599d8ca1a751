"""What --json writes of the commands whose figures are few: train, play, keys and export."""

from __future__ import annotations

import json


def test_train_writes_why_it_ended_and_its_last_figures(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, _ = debate_command(
        "train", tiny_recipe, "run.dir=runs/{seed}", "train.steps=1", "--json", "t.json"
    )
    said = json.loads((tmp_path / "t.json").read_text())
    assert code == 0
    assert (said["run"], said["steps"], said["end"]["reason"]) == ("runs/0", 1, "steps")
    assert said["wall_seconds"] > 0
    assert said["metrics"]["step"] == 0
    code, _, _ = debate_command("export", "runs/0", "--json", "e.json")
    assert code == 0
    assert json.loads((tmp_path / "e.json").read_text()) == {
        "folder": "runs/0/export",
        "kind": "full",
        "checkpoint": "runs/0/checkpoints/step_000001",
    }


def test_play_writes_the_debate_and_keys_their_meaning(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, _ = debate_command(
        "solve play", tiny_recipe, "What is 3 + 4?", "--answer", "7", "--json", "p.json"
    )
    assert code == 0
    said = json.loads((tmp_path / "p.json").read_text())
    assert said["debate"]["problem"]["question"] == "What is 3 + 4?"
    assert len(said["debate"]["turns"]) == 9
    code, _, _ = debate_command("keys", "train.hours", "--json", "k.json")
    [key] = json.loads((tmp_path / "k.json").read_text())["keys"]
    assert (key["name"], key["default"], key["type"]) == ("train.hours", "none", "float or none")
    assert key["meaning"].startswith("Hours of wall time")
