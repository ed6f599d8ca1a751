"""labels.jsonl as it was written, and as somebody has edited it."""

from debate_rl.rollouts.records import LabelLedger


def test_a_problem_that_stands_there_twice_is_one(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"step": 0, "problem": "a"}\n{"step": 1, "problem": "b"}\n{"step": 1, "problem": "a"}\n')
    assert LabelLedger(path, 2).used == ["a", "b"]
    assert LabelLedger(path, 1).used == ["a"]
