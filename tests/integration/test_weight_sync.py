"""New weights in the real vLLM: the canary names each of eight faults at once, and whole weights are sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HERE = Path(__file__)


@pytest.mark.slow
def test_every_fault_is_named_and_no_healthy_update_is(bench_python, tmp_path):
    figures = tmp_path / "figures.json"
    benchmark = HERE.parents[2] / "benchmarks/weight_sync.py"
    done = bench_python.run(benchmark, "--updates", 10, "--no-step", "--json", figures, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    assert (rows["faults_found"]["value"], rows["faults_found"]["n"]) == (8, 12), done.stdout
    assert rows["faults_found"]["unit"] == "of 8"
    assert rows["false_alarms"]["value"] == 0
    assert rows["false_alarms"]["n"] > 20


@pytest.mark.slow
def test_whole_weights_are_sent_by_vllms_own_transfer(bench_python, tmp_path):
    """64 requests at once, to two engines. What moves the bytes on a GPU is replaced, and nothing else."""
    done = bench_python.run(HERE.with_name("vllm_transfer.py"), tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["packed"] == [True, 5]  # chunks of the largest matrix's size, bit for bit
    assert found["ipc"] == {"rank": 0, "packed": True, "packed_buffer_size_bytes": 2**30 + 1}
    assert 0 < found["nccl"].pop("master_port") < 2**16
    assert found["nccl"] == {
        "rank": 0,
        "master_address": "127.0.0.1",
        "world_size": 3,
        "packed": True,
        "packed_buffer_size_bytes": 2**28,
        "packed_num_buffers": 2,
    }
    for name in ("first", "second", "third", "fourth"):  # every matrix in both engines is the model's
        assert found[name] == [True, True], name
    assert found["meanwhile"] == [64, [1]]  # replies under way go on, and keep the version they began with
    assert found["after_a_death"] == [2]  # an engine that was restarted has the present weights
    assert found["files"] == []
    assert found["refused"].startswith("engine 0 did not get the weights: AssertionError")
