import os
import signal
import time
from pathlib import Path

import pytest

from .conftest import BY_VLLM, WHOLE, children, running, steps_of, wait_until, write_recipe

pytestmark = pytest.mark.slow
QUICK_TO_RESTART = """\
from debate_rl.commands.main import run
from debate_rl.inference import engine_pool
engine_pool.SILENT_S = 20
run()
"""


@pytest.fixture
def recipe(tmp_path, base_model, request) -> Path:
    adapter = {"name_or_path": str(base_model), "lora_rank": 4}
    model = adapter if request.param == "adapter" else WHOLE
    return write_recipe(tmp_path / "recipe.toml", BY_VLLM, {"model": model, "train": {"async_level": 1}})


@pytest.fixture
def training(bench_python, recipe):
    """Return what starts the recipe's training."""
    command = ("-c", QUICK_TO_RESTART, "train", recipe.name, "run.dir=run")
    return lambda *overrides: bench_python.start(*command, *overrides, cwd=recipe.parent)


def engines_of(pid: int) -> list[int]:
    """Return an engine and what holds the debates: engines come first."""
    return children(pid, "serve_forever")


@pytest.mark.parametrize("recipe", ["adapter", "whole"], indirect=True)
def test_a_run_survives_its_engine_and_is_resumed_after_its_own_death(training, tmp_path):
    run = tmp_path / "run"
    with training("train.steps=50") as process:
        wait_until(lambda: len(steps_of(run)) >= 1, process)
        served = engines_of(process.pid)
        assert len(served) == 2  # an engine, and what holds the debates
        os.kill(engines_of(process.pid)[0], signal.SIGKILL)
        wait_until(lambda: len(steps_of(run)) >= 4, process)
        assert len(engines_of(process.pid)) == 2
        process.kill()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: not running(served))

    with training("train.steps=6", "run.allow_changes=['train.steps']") as process:
        _, err = process.communicate()
    assert process.returncode == 0, err
    steps = steps_of(run)
    assert [row["step"] for row in steps] == list(range(6))
    for row in steps:
        assert row["mismatch_max"] < 3e-5 or row["staleness_max"] > 0  # older weights have other odds
        assert row["staleness_max"] <= 1
        assert row["stale_rows"] == 0
    assert max(row["staleness_max"] for row in steps) == 1


@pytest.mark.parametrize("recipe", ["adapter"], indirect=True)
def test_a_silent_engine_is_started_anew_and_one_that_always_ends_ends_the_run(training, tmp_path):
    run = tmp_path / "run"
    with training("train.steps=50", "train.async_level=0", "model.vllm.engines=1") as process:
        wait_until(lambda: len(steps_of(run)) >= 1, process)
        silent = engines_of(process.pid)[0]
        os.kill(silent, signal.SIGSTOP)
        wait_until(lambda: len(steps_of(run)) >= 3, process)
        assert not running([silent])
        while process.poll() is None:
            for engine in engines_of(process.pid):
                os.kill(engine, signal.SIGKILL)
            time.sleep(1)
        _, err = process.communicate()
    assert process.returncode == 2
    last = err.splitlines()[-1]
    assert "3 engines of model.policy=vllm had to be restarted within 10 minutes; process " in last
    assert "was ended by signal 9 (see run/engines.log)" in last
    saved = max(int(path.name.removeprefix("step_")) for path in (run / "checkpoints").glob("step_*"))
    assert saved == len(steps_of(run)) >= 3
