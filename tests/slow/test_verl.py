"""Training by verl on Ray, on a CPU: two FSDP2 workers, two servers, a killed worker, and our own update."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from debate_rl.metrics.step_log import read_rows
from learner import LearnerConfig
from learner.update.learner import Learner
from transcripts import RunStore

from ..integration.conftest import wait_until, write_recipe

HOME = Path(__file__).parents[2]
VERL = HOME / ".venv-verl"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (VERL / "installed").exists(), reason="no verl in .venv-verl; make engines"),
]
SPY = """
import pickle, sys
from pathlib import Path
from debate_rl.backends.learner import ServiceLearner
step, folder = ServiceLearner.step, sys.argv[1]
def spied(self, rows):
    Path(folder, f"{self.steps}.pickle").write_bytes(pickle.dumps(list(rows)))
    return step(self, rows)
ServiceLearner.step = spied
from debate_rl.commands.main import run
sys.argv = ["debate", *sys.argv[2:]]
run()
"""
ON_A_CPU = {
    "VERL_USE_EXTERNAL_MODULES": "verl_on_cpu",
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "VERL_ENGINE_VENDOR": "nvidia",
    "RAY_raylet_start_wait_time_s": "240",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": os.pathsep.join((str(HOME), str(Path(__file__).parent))),
}
OVERRIDES = [
    "trainer.device=cpu",
    "actor_rollout_ref.model.use_remove_padding=False",
    "+actor_rollout_ref.model.override_config.attn_implementation=eager",
    "actor_rollout_ref.model.external_lib=verl_on_cpu",
    "actor_rollout_ref.actor.use_torch_compile=False",
    "actor_rollout_ref.actor.fsdp_config.dtype=float32",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False",
    "actor_rollout_ref.ref.fsdp_config.dtype=float32",
    "actor_rollout_ref.ref.use_torch_compile=False",
    "actor_rollout_ref.rollout.name=transformers_cpu",
    "actor_rollout_ref.rollout.free_cache_engine=False",
    "actor_rollout_ref.rollout.load_format=auto",
    "ray_kwargs.ray_init.num_cpus=16",
    "+ray_kwargs.ray_init.resources.NPU=2",
    "+ray_kwargs.ray_init.include_dashboard=False",
    "+ray_kwargs.ray_init.object_store_memory=300000000",
]
LEARNER = {"lr": 3e-3, "warmup_steps": 0, "loss": "dapo", "beta": 0.02, "tis_cap": 2.0, "adam_eps": 1e-5}
LEARNER |= {"compute": "float32", "gradient_checkpointing": False}
RECIPE = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 100},
    "held_out": {"limit": 4, "every": 0},
    "debate": {
        **{"num_rounds": 1, "max_tokens": 48, "context_tokens": 256, "prompts": "tiny"},
        "handles": ["K7", "Q2", "M4"],
        "personas": [
            {"name": name, "instructions": name, "temperature": 1.0}
            for name in ("careful", "quick", "skeptic")
        ],
    },
    "model": {"chat": True},
    "engine": {
        "kind": "verl",
        "gpus_per_node": 2,
        "python": str(VERL / "bin" / "python"),
        "overrides": OVERRIDES,
    },
    "learner": LEARNER,
    "train": {"steps": 3, "batch_size": 2, "group_size": 3, "save_every": 1},
}


def workers_of(owner: int) -> list[int]:
    """Return the process ids of verl's workers among the descendants of a process."""
    listed = subprocess.run(["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    below = {owner}
    for _ in range(4):  # our process, verl's, Ray's, a worker
        below |= {int(pid) for pid, parent, _ in rows if int(parent) in below}
    return [int(pid) for pid, _, words in rows if int(pid) in below and "WorkerDict" in words]


def test_a_run_survives_the_loss_of_a_worker_and_learns_as_one_process(
    start_model, tmp_path, debate_command, monkeypatch
):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")  # the run names the Python that runs verl
    run, rows, out = tmp_path / "run", tmp_path / "rows", tmp_path / "exported"
    rows.mkdir()
    recipe = write_recipe(tmp_path / "recipe.toml", RECIPE, {"model": {"name_or_path": str(start_model)}})

    def train() -> subprocess.Popen[str]:
        call = [sys.executable, "-c", SPY, str(rows), "train", str(recipe), f"run.dir={run}"]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(call, **streams, text=True, env=os.environ | ON_A_CPU)

    process = train()
    wait_until(lambda: (run / "checkpoints" / "step_000001").exists(), process)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=400)
    assert process.returncode == 2
    assert "Traceback" not in err
    [line] = [line for line in err.splitlines() if line.startswith("debate: ")]
    assert "verl failed" in line
    assert "1 of 3 steps are saved" in line

    process = train()
    _, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    steps = read_rows(run / "metrics.jsonl")
    assert [row["step"] for row in steps] == [0, 1, 2]
    assert max(row["mismatch_max"] for row in steps) < 1e-4
    versions = {
        (record.step, turn.completion.policy_version)
        for _, record in RunStore.open(run).records()
        for turn in record.debate.turns
    }
    assert versions == {(step, step) for step in range(3)}
    assert debate_command("replay", run).code == 0

    model = AutoModelForCausalLM.from_pretrained(start_model)
    config = LearnerConfig.model_validate(LEARNER)
    ours = Learner(model, config, total_steps=3)
    for row in steps:
        done = ours.step(pickle.loads((rows / f"{row['step']}.pickle").read_bytes()))
        for name in ("loss", "grad_norm", "kl_mean"):
            assert row[name] == pytest.approx(done[name], rel=1e-4, abs=1e-5), name
    assert debate_command("export", run, "--out", out).code == 0
    begun, theirs = (AutoModelForCausalLM.from_pretrained(path) for path in (start_model, out))
    mine, first, their = (one.state_dict() for one in (model, begun, theirs))
    assert max(float((mine[name] - first[name]).abs().max()) for name in mine) > 1e-3
    assert max(float((mine[name] - their[name]).abs().max()) for name in mine) < 1e-5


def test_an_adapter_starts_from_the_seed_and_its_base_is_the_reference(
    start_model, tmp_path, debate_command, monkeypatch
):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    run, out = tmp_path / "run", tmp_path / "exported"
    own = {"model": {"name_or_path": str(start_model), "lora_rank": 8}, "train": {"steps": 2}}
    recipe = write_recipe(tmp_path / "recipe.toml", RECIPE, own)
    call = [sys.executable, "-m", "debate_rl", "train", str(recipe), f"run.dir={run}"]
    done = subprocess.run(call, capture_output=True, text=True, env=os.environ | ON_A_CPU, check=False)
    assert done.returncode == 0, done.stderr
    first, second = read_rows(run / "metrics.jsonl")
    assert first["kl_mean"] == 0 < second["kl_mean"]
    assert max(row["mismatch_max"] for row in (first, second)) < 0.2  # merged weights are rounded to bfloat16
    assert debate_command("export", run, "--out", out).code == 0
    base = AutoModelForCausalLM.from_pretrained(start_model)
    learned = PeftModel.from_pretrained(base, out).state_dict()
    assert max(float(value.abs().max()) for name, value in learned.items() if "lora_B" in name) > 1e-3
