"""labels.jsonl as it was written, and as somebody has edited it."""

from __future__ import annotations

import pytest

from debate_rl.rollouts.records import LabelLedger


def test_a_problem_that_stands_there_twice_is_one(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"step": 0, "problem": "a"}\n{"step": 1, "problem": "b"}\n{"step": 1, "problem": "a"}\n')
    assert LabelLedger(path, 2).used == ["a", "b"]
    assert LabelLedger(path, 1).used == ["a"]


@pytest.mark.parametrize("line", ['{"step": 0}', '{"step": 0, "problem": 3}', '{"step": 0, "problem": null}'])
def test_a_line_without_a_problem_is_named(tmp_path, line):
    path = tmp_path / "labels.jsonl"
    path.write_text(f'{{"step": 0, "problem": "a"}}\n{line}\n')
    with pytest.raises(ValueError, match=r"labels.jsonl:2: not a line of labels: problem .* is not an id"):
        LabelLedger(path, 1)
