"""What the benchmarks of GPUs, weights and losses do, at a small size on a CPU; some want ``make bench``."""

import importlib
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from .conftest import BENCH, ENVIRONMENT, HOME, python


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
    words = ("--device", "cpu", "--shapes", "toy", "--alone", "--shrink", 32, "--repeats", 1, "--json", path)
    done = python(HOME / "benchmarks/gpu.py", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    value = {row["name"]: row["value"] for row in json.loads(path.read_text())}
    assert value["toy: |dlogp|, end to beginning"] < 1.5
    assert 0 < value["toy: |dlogp| from 0"] < 0.01
    for way in ("LoRA", "full"):
        for case in ("plain", "debate", "debate, shared"):
            assert value[f"toy {way}, {case}: tokens a second"] > 0
            assert value[f"toy {way}, {case}: of the peak"] > 0


@pytest.mark.slow
def test_the_smoke_test_of_a_gpu_runs_without_one(tmp_path):
    path = tmp_path / "smoke.json"
    done = python(HOME / "benchmarks/gpu_smoke.py", "--device", "cpu", "--json", path, cwd=tmp_path)
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
    more = json.loads(path.read_text())[1]["more"]
    assert more == "RuntimeError: derivative for aten::mm is not implemented"


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


@pytest.mark.slow
@pytest.mark.skipif(not (BENCH / "installed").exists(), reason="no .venv-bench; make bench")
def test_losses_and_gradients_agree_with_trl(tmp_path):
    figures = tmp_path / "figures.json"
    command = [BENCH / "bin/python", HOME / "benchmarks/trl_losses.py", "--json", figures]
    done = subprocess.run(
        command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    losses = ("grpo", "dr_grpo", "dapo", "gspo", "cispo")
    for case in (f"{loss}, {what}" for loss in losses for what in ("beta 0", "beta 0.1", "entropy and TIS")):
        ours, theirs = rows[f"{case}: ours"]["value"], rows[f"{case}: TRL"]["value"]
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert abs(theirs) > 0.01
        assert rows[f"{case}: gradients apart"]["value"] < 1e-4


@pytest.mark.slow
def test_every_fault_is_named_and_no_healthy_update_is(bench_python, tmp_path):
    figures = tmp_path / "figures.json"
    done = bench_python.run(
        HOME / "benchmarks/weight_sync.py", "--updates", 10, "--no-step", "--json", figures, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    assert (rows["faults_found"]["value"], rows["faults_found"]["n"]) == (8, 12), done.stdout
    assert rows["faults_found"]["unit"] == "of 8"
    assert rows["false_alarms"]["value"] == 0
    assert rows["false_alarms"]["n"] > 20


@pytest.mark.slow
def test_whole_weights_are_sent_by_vllms_own_transfer(bench_python, tmp_path):
    """64 requests at once, to two engines. What moves the bytes on a GPU is replaced, and nothing else."""
    done = bench_python.run(Path(__file__).with_name("vllm_transfer.py"), tmp_path, cwd=tmp_path)
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
