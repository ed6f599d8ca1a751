"""The Python of docs/inspector.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import debate_rl
from transcripts import write_step

PAGE = (Path(debate_rl.__file__).parents[1] / "docs/inspector.md").read_text(encoding="utf-8")


def test_its_python_runs(circle, tmp_path, monkeypatch, capsys):
    write_step(tmp_path / "runs/quickstart-pair_sum-0/transcripts", 5, [circle])
    monkeypatch.chdir(tmp_path)
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(snippet, {})
    assert "TurnId(agent=2, round=0)" in capsys.readouterr().out
