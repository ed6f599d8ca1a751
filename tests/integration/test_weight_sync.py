"""The canary beside the real vLLM: each of eight faults is named at once, and healthy updates are not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
BENCH = HOME / ".venv-bench"


@pytest.mark.slow
@pytest.mark.skipif(
    not list(BENCH.glob("lib/python*/site-packages/vllm")), reason="no vLLM in .venv-bench; make bench"
)
def test_every_fault_is_named_and_no_healthy_update_is(tmp_path):
    figures = tmp_path / "figures.json"
    command = [BENCH / "bin/python", HOME / "benchmarks/weight_sync.py", "--updates", "10", "--no-step"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [*command, "--json", figures],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    assert (rows["faults_found"]["value"], rows["faults_found"]["n"]) == (8, 12), done.stdout
    assert rows["faults_found"]["unit"] == "of 8"
    assert rows["false_alarms"]["value"] == 0
    assert rows["false_alarms"]["n"] > 20
