"""What ``benchmarks/gpu.py`` does on a GPU, done on a CPU with a small shape."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HOME = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch):
    """Return import_(name) of a benchmark, imported anew."""
    monkeypatch.syspath_prepend(str(HOME / "benchmarks"))

    def import_(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return import_


def test_each_figure_is_written_as_it_comes_and_none_is_lost_to_what_fails(benchmark, tmp_path, capsys):
    gpu = benchmark("gpu")
    path = tmp_path / "figures.json"
    log = gpu.Log(path)

    def raises(error):
        raise error

    def names():
        return [row["name"] for row in json.loads(path.read_text())]

    log.add("a", lambda: [gpu.Figure("a", 1.5, "s", 1)])
    assert names() == ["a"]
    log.add("large", lambda: raises(torch.OutOfMemoryError("CUDA out of memory.\nTried")))
    assert (log.failed, names()) == (False, ["a"])
    log.add("wrong", lambda: raises(RuntimeError("no kernel")))
    log.add("b", lambda: [gpu.Figure("b", 2.0, "s", 1)])
    assert (log.failed, names()) == (True, ["a", "b"])
    out, err = capsys.readouterr()
    assert out.splitlines() == ["a: 1.5 s", "large: left out, CUDA out of memory.", "wrong: FAILED", "b: 2 s"]
    assert err.endswith("RuntimeError: no kernel\n")


def test_what_would_fill_a_card_to_the_brim_is_left_out(benchmark, monkeypatch):
    gpu = benchmark("gpu")
    monkeypatch.setattr(gpu, "memory_there", lambda _: 84.9e9)  # an H100
    assert not gpu.fits(48.3e9 + 31.3e9, None)  # 4B, full weights: .94 of it, .95 with a GiB beside
    assert gpu.fits(73.6e9, None)  # .88 * 84.9 - 1.07 = 73.64
    assert not gpu.fits(73.7e9, None)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835e12),
        ("NVIDIA GeForce RTX 4090", 165e12),
        ("another card", 7.0),
    ],
)
def test_a_card_counts_by_its_own_data_sheet(name, peak, benchmark):
    assert benchmark("gpu").peak_of(name, 7.0) == peak


@pytest.mark.parametrize("on_gpu", [True, False])
def test_an_engine_on_a_gpu_is_not_given_the_settings_of_a_cpu(on_gpu, benchmark, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: on_gpu)
    found = benchmark("cpu_engine").FOR_VLLM
    assert ("TORCH_COMPILE_DISABLE" in found) is not on_gpu
    assert (found == {}) is on_gpu


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
