"""Our losses and TRL's on the same rows, in the environment that ``make bench`` sets up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import debate_rl

HOME = Path(debate_rl.__file__).parents[1]
BENCH = HOME / ".venv-bench"


@pytest.mark.slow
@pytest.mark.skipif(not (BENCH / "installed").exists(), reason="no .venv-bench; make bench")
def test_losses_and_gradients_agree_with_trl(tmp_path):
    figures = tmp_path / "figures.json"
    command = [BENCH / "bin/python", HOME / "benchmarks/trl_losses.py", "--json", figures]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    losses = ("grpo", "dr_grpo", "dapo", "gspo", "cispo")
    for case in (f"{loss}, {what}" for loss in losses for what in ("beta 0", "beta 0.1", "entropy and TIS")):
        ours, theirs = rows[f"{case}: ours"]["value"], rows[f"{case}: TRL"]["value"]
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert abs(theirs) > 0.01
        assert rows[f"{case}: gradients apart"]["value"] < 1e-4
