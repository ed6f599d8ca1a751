"""The Python of docs/inspector.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import debate_rl
from debate_rl.inspector.plain import json_of
from transcripts import write_step

PAGE = (Path(debate_rl.__file__).parents[1] / "docs/inspector.md").read_text(encoding="utf-8")


@pytest.fixture
def run(circle, tmp_path):
    write_step(tmp_path / "runs/quickstart-pair_sum-0/transcripts", 5, [circle])
    return tmp_path / "runs/quickstart-pair_sum-0"


def test_a_value_of_json_is_of_json(circle):
    assert json_of(circle.debate.turns[0].id) == [0, 0]
    assert json_of({"span": circle.debate.votes[0].span})["span"][0] > 0


def test_its_python_runs(run, monkeypatch, capsys):
    monkeypatch.chdir(run.parents[1])
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(snippet, {})
    assert "TurnId(agent=2, round=0)" in capsys.readouterr().out
