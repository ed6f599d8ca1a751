"""A run whose loss gives no numbers, as a process of its own: one line, exit code 2, all its steps kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import debate_rl
from debate_rl.metrics.step_log import read_metrics
from transcripts import read_records

HOME = Path(debate_rl.__file__).parents[1]
BROKEN = """\
from learner.losses import LossOutputs


def loss(inputs, config):
    return LossOutputs((inputs.logprobs * float("nan")).sum())
"""


def debate(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(HOME), str(cwd)])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-m", "debate_rl.commands.main", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_run_that_no_longer_learns_ends_in_one_line_and_goes_on_when_mended(tiny_recipe, tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    steps = ("logging.progress=none", "train.steps=5", "learner.max_bad_steps=2")
    ended = debate("train", tiny_recipe, "learner.loss=broken:loss", *steps, cwd=tmp_path)
    assert ended.returncode == 2
    assert "done: " not in ended.stdout
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stderr.startswith(
        "debate: step 2: 2 steps in a row had no finite gradient or reward (learner."
    )
    assert "; 2 of 5 steps are saved in runs/debate/checkpoints; " in ended.stderr
    run = tmp_path / "runs/debate"
    assert [row["bad_steps"] for row in read_metrics(run / "metrics.jsonl")] == [1, 2]
    assert len(list(read_records(run))) == 8
    allowed = "run.allow_changes=['learner.loss']"
    mended = debate("train", tiny_recipe, "learner.loss=grpo", allowed, *steps, cwd=tmp_path)
    assert mended.returncode == 0, mended
    assert "done: 5 steps in runs/debate" in mended.stdout.splitlines()
    assert [row["bad_steps"] for row in read_metrics(run / "metrics.jsonl")][:2] == [1, 2]
