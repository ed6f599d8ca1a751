"""``debate train`` tells of held-out problems that training sees in part, and keeps them in run.json."""

import json

import pytest

from debate_rl.sampling.problems import OverlapWarning


def test_overlaps_and_checksums_are_told_and_kept(tiny_recipe, tmp_path, debate_command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [f"w{n}" for n in range(20)]  # 8 runs of 13 words
    question, start = " ".join(words), " ".join(words[:13])
    for name, asked in (("train", question), ("held", start)):
        row = {"id": name[0], "question": asked, "answer": "7"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    files = ["env.kind=file", "env.levels=none", "env.path=train.jsonl", "held_out.path=held.jsonl"]
    sizes = ["train.steps=0", "env.limit=none", "held_out.limit=5", "held_out.every=0", "run.dir=run"]
    note = r"1 of 1 held-out problems overlap with training \(0 the same, 1 by 13-word runs\): h \(1\.00\)"
    with pytest.warns(OverlapWarning, match=f"^{note}$"):
        code, _, err = debate_command("train", tiny_recipe, *files, *sizes)
    assert code == 0, err
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["overlaps"] == [{"held_out": "h", "train": "t", "kind": "ngram", "share": 1.0}]
    assert [name.split(":")[0] for name in facts["data"]] == [
        "train.jsonl",
        "held.jsonl",
        "prompts",
        "train",
        "held out",
    ]
