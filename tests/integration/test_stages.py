import json

import pytest
import torch
from safetensors.torch import load_file

from debate_rl.curriculum.record import read_curriculum
from debate_rl.metrics.step_log import read_metrics

from .conftest import left_by, write_recipe

REPLIES = {"limit": 64, "max_tokens": 128, "batch_size": 16}
RECIPE = {
    "seed": 3,
    "env": {"kind": "products", "levels": [1], "limit": 40},
    "held_out": {"limit": 8, "every": 2},
    "debate": {"num_agents": 1, "num_rounds": 1, "max_tokens": 32, "prompts": "problem_solution"},
    "rewards": {"truth_weight": 1.0, "truth_wrong": -0.5, "truth_missing": -0.5, "form_bonus": 0.1},
    "grader": {"mode": "lenient"},
    "model": {
        "device": "cpu",
        "chat": False,
        "tiny": {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48,
                 "context_tokens": 128, "fallback": "none", "pieces": ["Problem: ", "\n\nSolution:"]},
    },
    "learner": {"lr": 3e-3, "warmup_steps": 1},
    "train": {"batch_size": 2, "group_size": 4, "save_every": 1},
    "logging": {"progress": "none"},
    "stages": [
        {"name": "cot", "sft": REPLIES | {"data": ["products"], "epochs": 1}},
        {"name": "tir", "max_steps": 3, "sft": REPLIES | {"data": ["products_tir"]}},
        {"name": "rl", "max_steps": 2},
    ],
}  # fmt: skip
STAGES = {"01_cot": 4, "02_tir": 3, "03_rl": 2}
"""The run of each stage, and its steps: one epoch of 64 replies is 4 steps of 16."""


def written(folder, name):
    return write_recipe(folder / f"{name}.toml", RECIPE, {"run": {"dir": str(folder / name)}})


def weights(run, step):
    return load_file(run / f"checkpoints/step_{step:06d}/model/model.safetensors")


@pytest.fixture(scope="module")
def straight(tmp_path_factory, debate_command):
    """The recipe, done by one command, with what it printed."""
    folder = tmp_path_factory.mktemp("straight")
    done = debate_command("train", str(written(folder, "run")), "--json", str(folder / "run.json"))
    assert done.code == 0, done.err
    return folder / "run", done.out


@pytest.mark.slow
def test_each_stage_begins_with_the_last_weights_of_the_one_before(straight):
    run, said = straight
    assert [(v.folder, v.steps, v.end) for v in read_curriculum(run).visits] == [
        (name, steps, "done") for name, steps in STAGES.items()
    ]
    for (before, steps), after in zip(STAGES.items(), list(STAGES)[1:], strict=False):
        last = weights(run / "stages" / before, steps)
        first = load_file(next((run / "stages" / after / "warm_start").glob("*/model/model.safetensors")))
        assert all(torch.equal(last[name], first[name]) for name in first)
    assert "03_rl: done, after 2 steps" in said
    assert f"done: the curriculum is complete, in {run}" in " ".join(said.split())
    stages = json.loads(run.with_suffix(".json").read_text())["stages"]
    assert [one["steps"] for one in stages] == list(STAGES.values())


@pytest.mark.slow
def test_supervised_stages_learn_and_the_last_one_has_debates(straight):
    run, _ = straight
    for name, steps in STAGES.items():
        assert len(read_metrics(run / "stages" / name / "metrics.jsonl")) == steps
        assert any((run / "stages" / name / "transcripts").glob("step_*")) == (name == "03_rl")
    first, last = (read_metrics(run / "stages/01_cot/metrics.jsonl")[at]["loss"] for at in (0, -1))
    assert last < first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stage=rl"], "stage=rl: needs the weights of 'cot', which has not ended"),
        (["stage=tri"], "stage=tri: did you mean 'tir'?"),
        (['sft.data=["gsm8k"]'], "sft.data: each stage has its own replies"),
    ],
)
def test_what_cannot_be_run_is_a_line(debate_command, tmp_path, words, said):
    done = debate_command("train", str(written(tmp_path, "run")), *words)
    assert done.code != 0
    assert said in done.err


@pytest.mark.slow
def test_stages_one_by_one_end_as_all_at_once(straight, debate_command, tmp_path):
    path = written(tmp_path, "run")
    for name in ("cot", "tir", "rl"):
        done = debate_command("train", str(path), f"stage={name}")
        assert done.code == 0, done.err
    for name in STAGES:
        assert left_by(tmp_path / "run/stages" / name) == left_by(straight[0] / "stages" / name)
