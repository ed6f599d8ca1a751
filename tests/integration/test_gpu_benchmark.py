"""What the benchmarks of a GPU do there, done on a CPU with a small shape."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from argparse import Namespace
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
def test_the_smoke_test_of_a_gpu_runs_without_one(tmp_path):
    path = tmp_path / "smoke.json"
    command = [sys.executable, HOME / "benchmarks/gpu_smoke.py", "--device", "cpu", "--json", path]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    names = "room, rounding, few tokens, tiny vocabulary, noise, shared rows, shared step, resume"
    assert [row["name"] for row in json.loads(path.read_text())] == names.split(", ")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * 8


def test_a_check_that_misses_its_bounds_or_raises_is_a_failure(benchmark, monkeypatch, capsys, tmp_path):
    smoke, path = benchmark("gpu_smoke"), tmp_path / "smoke.json"

    def few(_):
        return smoke.Found(0.04, high=0.05, more="words")

    def many(_):
        return smoke.Found(0.06, high=0.05)

    def broken(_):
        raise RuntimeError("derivative for aten::mm is not implemented\nand more")

    def result(*checks):
        monkeypatch.setattr(smoke, "ANYWHERE", checks)
        monkeypatch.setattr(sys, "argv", ["gpu_smoke.py", "--device", "cpu", "--json", str(path)])
        with pytest.raises(SystemExit) as ended:
            smoke.main()
        return int(ended.value.code), [line.split()[:2] for line in capsys.readouterr().out.splitlines()]

    assert result(few) == (0, [["ok", "few"]])
    assert result(many, few) == (1, [["FAILED", "many"], ["ok", "few"]])
    assert result(few, broken) == (1, [["ok", "few"], ["FAILED", "broken"]])
    row = json.loads(path.read_text())[1]
    assert row == {
        "name": "broken",
        "ok": False,
        "value": None,
        "low": 0.0,
        "high": None,
        "more": "RuntimeError: derivative for aten::mm is not implemented",
    }


def test_a_gradient_that_points_the_other_way_is_apart_though_its_norm_is_the_same(benchmark):
    def learner(*gradients):
        named = dict(enumerate(torch.tensor([one]) for one in gradients))
        state = {name: {"exp_avg": 0.1 * value} for name, value in named.items()}
        return Namespace(
            parameters=[*named], optimizer=Namespace(state=state), step=lambda _: {"grad_norm": 5.0}
        )

    smoke = benchmark("gpu_smoke")
    assert smoke.apart(learner(3.0, 4.0), learner(3.0, 4.0), []).value == 0
    found = smoke.apart(learner(-3.0, 4.0), learner(3.0, 4.0), [])
    assert (found.value, found.ok) == (pytest.approx(6 / 5), False)
