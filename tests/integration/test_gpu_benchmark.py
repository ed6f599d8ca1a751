"""What ``benchmarks/gpu.py`` does on a GPU, done on a CPU with a small shape."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_gpu_benchmark_runs_whole_without_a_gpu(tmp_path):
    path = tmp_path / "figures.json"
    command = [sys.executable, HOME / "benchmarks/gpu.py", "--device", "cpu", "--shapes", "toy", "--alone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [*command, "--shrink", "32", "--repeats", "1", "--json", path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    value = {row["name"]: row["value"] for row in json.loads(path.read_text())}
    assert value["toy: |dlogp|, end to beginning"] < 1.5
    assert 0 < value["toy: |dlogp| from 0"] < 0.01
    for way in ("LoRA", "full"):
        for case in ("plain", "debate", "debate, shared"):
            assert value[f"toy {way}, {case}: tokens a second"] > 0
            assert 0 < value[f"toy {way}, {case}: of the peak"] < 1


@pytest.mark.slow
def test_without_a_gpu_the_benchmark_says_what_to_do():
    command = [sys.executable, HOME / "benchmarks/gpu.py"]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HOME)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "torch sees no GPU here; --device cpu --shapes toy --shrink 16 --alone runs this without one"
    )
