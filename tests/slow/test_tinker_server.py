"""Training by SkyRL's server of the Tinker API, on a CPU: lost on either side, resumed and exported."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from debate_rl.metrics.step_log import read_rows
from transcripts import RunStore

from ..integration.conftest import wait_until, write_recipe
from .test_verl import RECIPE as VERL

HOME = Path(__file__).parents[2]
SKYRL = HOME / ".venv-skyrl"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SKYRL / "installed").exists(), reason="no SkyRL in .venv-skyrl; make engines"),
]
IMPATIENT = """
import sys
from debate_rl.backends import tinker_api
tinker_api.PATIENCE_S = 60.0
from debate_rl.commands.main import run
sys.argv = ["debate", *sys.argv[1:]]
run()
"""
RECIPE = VERL | {
    "debate": VERL["debate"] | {"seats": ["learning", "learning", "frozen"]},
    "model": {"chat": True, "lora_rank": 8},
    "engine": {"kind": "tinker"},
    "learner": {"lr": 3e-3, "warmup_steps": 0, "loss": "dapo", "beta": 0.02},
}


class Server:
    """SkyRL's server and its engine, in a process group of their own."""

    def __init__(self, folder: Path, model: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder, self._model = folder, model

    def start(self) -> None:
        uv, python = (SKYRL / "bin" / name for name in ("uv", "python"))
        options = {
            "base-model": self._model,
            "backend": "jax",
            "backend-config": '{"max_lora_adapters": 32, "max_lora_rank": 16}',
            "checkpoints-base": self._folder / "kept",
            "database-url": f"sqlite:///{self._folder}/server.db",
            "host": "127.0.0.1",
            "port": self.port,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        call = [uv, "run", "--no-project", "--python", python, "-m", "skyrl.tinker.api", *words]
        path = f"{SKYRL / 'bin'}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                call,
                env=kept | {"PATH": path, "JAX_PLATFORMS": "cpu"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers, self._process)

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.url}/api/v1/healthz", timeout=5).status == 200
        except OSError:
            return False

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory, start_model):
    found = Server(tmp_path_factory.mktemp("skyrl"), start_model)
    found.start()
    yield found
    found.kill()


def test_a_run_survives_the_loss_of_either_side_and_is_exported(server, tmp_path, debate_command):
    run = tmp_path / "run"
    own = {"model": {"name_or_path": str(server._model)}, "engine": {"base_url": server.url}}
    recipe = write_recipe(tmp_path / "recipe.toml", RECIPE, own)

    def train() -> subprocess.Popen[str]:
        call = [sys.executable, "-c", IMPATIENT, "train", str(recipe), f"run.dir={run}"]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def saved(step: int) -> bool:
        return (run / "checkpoints" / f"step_{step:06}").exists()

    process = train()
    wait_until(lambda: saved(1), process)
    server.kill()
    _, err = process.communicate(timeout=400)
    assert process.returncode == 2
    assert "Traceback" not in err
    [line] = [line for line in err.splitlines() if line.startswith("debate: ")]
    assert "the Tinker server did not answer" in line
    assert "1 of 3 steps are saved" in line

    server.start()
    process = train()
    wait_until(lambda: saved(2), process)
    process.kill()
    process.communicate()
    process = train()
    _, err = process.communicate(timeout=400)
    assert process.returncode == 0, err

    steps = read_rows(run / "metrics.jsonl")
    assert [row["step"] for row in steps] == [0, 1, 2]
    assert max(row["mismatch_max"] for row in steps) < 1e-4
    assert steps[0]["kl_mean"] == pytest.approx(0, abs=1e-6)
    assert steps[2]["kl_mean"] > 1e-6
    versions = {
        (record.step, turn.id.agent, turn.completion.policy_version)
        for _, record in RunStore.open(run).records()
        for turn in record.debate.turns
    }
    assert versions == {(step, agent, 0 if agent == 2 else step) for step in range(3) for agent in range(3)}
    assert debate_command("replay", run).code == 0

    out, written = tmp_path / "exported", tmp_path / "logprobs.npz"
    subprocess.run([sys.executable, "-m", "debate_rl", "export", run, "--out", out], check=True)
    script = Path(__file__).with_name("served_logprobs.py")
    subprocess.run([sys.executable, script, recipe, run, out, written], check=True)
    with np.load(written) as found:
        np.testing.assert_allclose(found["exported"], found["served"], atol=1e-4)
        assert np.abs(found["base"] - found["served"]).max() > 1e-3
