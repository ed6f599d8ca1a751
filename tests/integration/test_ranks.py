"""Several processes that learn together, by torchrun and gloo on a CPU: what one process does, they do."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from .conftest import UNCOMPARED, children, python, running, start, steps_of, wait_until, write_recipe

HERE = Path(__file__)
pytestmark = pytest.mark.slow
ROUNDED = ("adapter, bfloat16", "products in bfloat16")


def torchrun(count: int, *command: object) -> list[str]:
    return ["-m", "torch.distributed.run", "--nproc-per-node", str(count), *map(str, command)]


def test_ranks_learn_what_one_process_does_and_take_up_its_state(tmp_path):
    out = tmp_path / "apart.json"
    done = python(*torchrun(3, HERE.with_name("rank_learner.py"), out), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, found in json.loads(out.read_text()).items():
        assert bool(found["updates"]) == (name != "not finite")
        if name in ROUNDED:  # a gradient near 0 may turn its sign, and Adam then steps the other way
            assert found["of_what_moved"] < 0.1, name
            assert found["resumed"] < 0.1, name
            assert found["metrics"] < 0.05, name
        else:
            assert found["weights"] < 1e-5, name
            assert found["resumed"] < 1e-4, name
            assert found["metrics"] < 1e-3, name


RECIPE = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 40},
    "held_out": {"every": 0},
    "debate": {
        "num_agents": 2,
        "num_rounds": 2,
        "max_tokens": 12,
        "prompts": "tiny",
        "handles": ["K7", "Q2"],
    },
    "rewards": {"truth_weight": 0.5, "overlong": {"tokens": 8}},
    "advantages": {"shaping": UNCOMPARED["format"]},  # nearly all replies are overlong
    "model": {
        "device": "cpu",
        "tiny": {
            **{"hidden_size": 16, "layers": 2, "heads": 2, "intermediate_size": 24},
            **{"context_tokens": 512, "init_std": 0.3},
            "pieces": ["<solution>\\boxed{5}</solution>", "<solution>\\boxed{7}</solution>"],
        },
    },
    "learner": {"lr": 1e-2, "warmup_steps": 0, "beta": 0.01, "minibatches": 2, "micro_batch_tokens": 1000},
    "train": {"steps": 4, "batch_size": 2, "group_size": 2, "save_every": 1, "keep_last": 10},
    "logging": {"progress": "none"},
}
TRAIN = ("-m", "debate_rl", "train", "recipe.toml")
KINDS = {
    "whole": (),
    "adapter": ("model.lora_rank=4", "learner.share_prefixes=true", "learner.gradient_checkpointing=true"),
}


@pytest.fixture
def home(tmp_path) -> Path:
    return write_recipe(tmp_path / "recipe.toml", RECIPE).parent


def training(home: Path, count: int, run: str, *overrides: str) -> subprocess.Popen[str]:
    arguments = (*TRAIN, f"run.dir={run}", *overrides)
    return start(*(arguments if count == 1 else torchrun(count, *arguments)), cwd=home)


def trained(home: Path, count: int, run: str, *overrides: str) -> str:
    with training(home, count, run, *overrides) as process:
        _, err = process.communicate()
    assert process.returncode == 0, err
    return err


def has_saved(run: Path, step: int) -> bool:
    return (run / f"checkpoints/step_{step:06d}").is_dir()


def saved(run: Path, step: int) -> dict[str, torch.Tensor]:
    """Everything that a checkpoint holds of weights and optimizer."""
    folder = run / f"checkpoints/step_{step:06d}"
    (weights,) = folder.glob("model/*.safetensors")
    state = torch.load(folder / "trainer.pt", weights_only=True)["parts"]["learner"]["optimizer"]["state"]
    moments = {f"{at} {name}": value for at, each in state.items() for name, value in each.items()}
    return load_file(weights) | moments


def ranks_of(pid: int) -> list[int]:
    return children(pid, "debate_rl")


def our_lines(err: str) -> list[str]:
    lines = [line for line in err.splitlines() if line.startswith("debate: ")]
    return [line for line in lines if not line.startswith("debate: note: ")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_two_ranks_is_that_of_one_and_each_goes_on_with_the_others_checkpoint(kind, home):
    trained(home, 1, "one", *KINDS[kind])
    trained(home, 2, "two", *KINDS[kind], "train.steps=2")
    for run, copied in (("one", "to_three"), ("two", "to_one")):
        shutil.copytree(home / run, home / copied)
    for path in (home / "to_three/checkpoints").glob("step_00000[34]"):
        shutil.rmtree(path)
    more = "run.allow_changes=['train.steps']"
    trained(home, 1, "to_one", *KINDS[kind], "train.steps=4", more)
    trained(home, 3, "to_three", *KINDS[kind], "train.steps=4", more)
    for run, step in (("two", 2), ("to_one", 4), ("to_three", 4)):
        own, other = saved(home / "one", step), saved(home / run, step)
        assert own.keys() == other.keys()
        for name in own:
            torch.testing.assert_close(own[name], other[name], rtol=1e-3, atol=1e-5)
    for one, two in zip(steps_of(home / "one"), steps_of(home / "two"), strict=False):
        assert one.keys() == two.keys()
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-3)
        assert one["grad_norm"] == pytest.approx(two["grad_norm"], rel=1e-3)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_ends_the_run_and_what_is_saved_is_said(rank, home):
    with training(home, 3, "run", "train.steps=1000") as process:
        wait_until(lambda: has_saved(home / "run", 2), process)
        ranks = ranks_of(process.pid)
        assert len(ranks) == 3
        os.kill(ranks[rank], signal.SIGKILL)
        _, err = process.communicate()
    assert process.returncode != 0
    assert not running(ranks)
    newest = max(int(path.name[-6:]) for path in (home / "run/checkpoints").glob("step_*"))
    *_, line = our_lines(err)
    assert "rank 0 has ended" in line if rank == 0 else "rank 1 of 3 has ended" in line
    assert f"{newest} of 1000 steps are saved in run/checkpoints; the same command resumes from there" in line
    trained(home, 1, "run", f"train.steps={newest + 1}", "run.allow_changes=['train.steps']")


def test_what_ranks_cannot_do_is_one_line_that_names_the_key(home):
    with training(home, 2, "run", "model.dtype=float16") as process:
        _, err = process.communicate()
    assert process.returncode != 0
    assert "model.dtype=float16: cannot be trained by several ranks" in our_lines(err)[0]
    assert not (home / "run").exists()


def test_ranks_learn_from_an_engine_which_ends_with_the_first_of_them(home, bench_python):
    engine = ("model.policy=vllm", "model.tiny.hidden_size=64", "model.vllm.enforce_eager=true")
    words = (*torchrun(2, *TRAIN), "run.dir=run", *engine, "train.async_level=1", "train.steps=1000")
    with bench_python.start(*words, cwd=home) as process:
        wait_until(lambda: has_saved(home / "run", 3), process)
        ranks = ranks_of(process.pid)
        served = children(ranks[0], "serve_forever")
        assert len(served) == 2  # an engine, and what holds the debates
        os.kill(ranks[0], signal.SIGKILL)
        process.communicate()
    wait_until(lambda: not running([*ranks, *served]))
    first, *later = steps_of(home / "run")
    assert first["mismatch_max"] < 3e-5
    for row in (first, *later):
        assert row["canary/weights_compared"] == 1
        assert row["canary/logprob_difference"] < 1e-5
