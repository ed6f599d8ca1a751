"""vLLM beside LocalPolicy: the same prompts, greedy replies and log-probabilities, also after updates."""

import json
import re
from pathlib import Path

import pytest

from debate_rl.inference.vllm import _lora_settings
from debate_rl.inference.vllm_engines import model_files
from debate_rl.metrics.step_log import read_metrics
from debate_rl.smollm2 import find_smollm2

from .conftest import BY_VLLM, WHOLE, write_recipe

HERE = Path(__file__)
CHOSEN = r"vLLM [\d.]+\S*: model runner V1, synchronous scheduling, a cache of [\d,]{6,} tokens\n"
"""What vLLM is on a CPU."""
PLAYED = {
    "debate": {"num_rounds": 1, "max_tokens": 12},
    "model": {"policy": "vllm", "dtype": "float32", "vllm": {"enforce_eager": True}},
}


@pytest.mark.slow
def test_vllm_says_what_the_local_policy_says(bench_python, tmp_path):
    done = bench_python.run(HERE.with_name("vllm_debate.py"), tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["context"] == 1024
    assert found["greedy"]  # prompts, tokens, texts, offsets
    assert found["abandoned"] == [True, False]
    assert found["turns"] == 2 * 3 * 3
    assert found["repeated"]
    assert found["temperatures"] == [0.6, 0.9, 1.0]
    for name in ("debate", "talk", "hot", "likely", "adapter", "second_adapter", "frozen", "musing"):
        assert found[name] < 3e-5, name
    assert found["talk_goes_on"] == [True] * 6
    assert found["stopped"] > 5
    assert found["stops_end"]
    assert found["reasons"] == ["length", "stop"]
    assert found["different"] == 60
    assert found["other"]  # other weights, and the first ones again
    assert found["back"]
    assert found["adapter_counts"]
    assert found["frozen_version"]  # the base, beside an adapter that has learnt
    assert (found["version"], found["version_after"]) == (3, 4)
    assert found["thinking"]
    assert found["forced"] == 4 * 4
    assert found["not_stopped_thinking"]
    nothing, cold, none, long = found["refused"]
    assert nothing == "vLLM has its own weights: update needs the folder of an export, got None"
    assert "0.01 and more" in cold
    assert "max_tokens 0 must be 1 or more" in none
    assert "does not fit a context of 1024" in long


@pytest.mark.slow
def test_programs_run_in_replies_of_vllm_and_nobody_waits_for_another_ones(bench_python, tmp_path):
    done = bench_python.run(HERE.with_name("vllm_tools.py"), tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["calls"]
    assert found["waited"]  # all other replies ended while the first program ran
    assert found["difference"] < 3e-5
    assert found["read"]
    assert found["greedy"]


@pytest.mark.slow
def test_play_speaks_through_vllm(bench_python, tmp_path, base_model):
    write_recipe(tmp_path / "served.toml", PLAYED)
    play = ["solve", "play", "served.toml", "What is 2 + 2?"]
    done = bench_python.debate(*play, f"model.name_or_path={base_model}", cwd=tmp_path)
    assert (done.returncode, done.stdout.count("round 0 ·")) == (0, 3), done.stderr
    assert "INFO" not in done.stdout
    assert re.search(CHOSEN, done.stderr)
    done = bench_python.debate(*play, "model.name_or_path=./nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("debate: vLLM cannot serve './nowhere': ")


@pytest.mark.slow
@pytest.mark.parametrize("engines", [0, 2])
@pytest.mark.parametrize("lora", [False, True], ids=["whole", "adapter"])
def test_training_samples_through_vllm(bench_python, tmp_path, base_model, lora, engines):
    """64 debates at once. After each update vLLM samples from what was learnt: the trainer's own odds.

    Beside an adapter one seat is frozen: the base, by the same engine.
    """
    sizes = {"held_out": {"limit": 24}, "debate": {"max_tokens": 40}, "train": {"batch_size": 16}}
    model = {"name_or_path": str(base_model), "lora_rank": 4} if lora else WHOLE
    write_recipe(tmp_path / "trained.toml", BY_VLLM, sizes, {"model": model})
    train = ["train", "trained.toml", "run.dir=run", f"model.vllm.engines={engines}"]
    train += ['debate.seats=["learning", "frozen", "learning"]'] if lora else []
    for steps in (2, 3):  # the second time it resumes
        done = bench_python.debate(*train, f"train.steps={steps}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [0, 1, 2]
    said = (tmp_path / "run/engines.log").read_text() if engines else done.stderr
    assert re.search(CHOSEN, said)
    for line in lines:
        assert line.get("mismatch_max", 0.0) < 3e-4
    assert all(line["updates"] == 1 for line in lines if "loss" in line)
    done = bench_python.debate("eval", "run", "--table", "figures.md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "24" in (tmp_path / "figures.md").read_text()


@pytest.mark.slow
def test_an_evaluation_of_100_problems_reads_more_prompts_than_fit_one_step(
    bench_python, tmp_path, base_model
):
    """64 debates at once. Seeded requests whose prompts are read in parts would end it on a CPU."""
    many = {
        "env": {"kind": "pair_sum", "levels": [1]},
        "held_out": {"limit": 100},
        "debate": {"num_rounds": 2, "max_tokens": 40, "prompts": "tiny"},
        "model": {"name_or_path": "base"},
        "train": {"max_live": 64},
    }
    write_recipe(tmp_path / "evaluated.toml", PLAYED, many)
    done = bench_python.debate("eval", "evaluated.toml", "--out", "evaluation", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "evaluation/figures.json").read_text())
    assert {row["n"] for row in figures if row["name"] == "debate/majority"} == {100}


def test_the_folder_of_an_adapter_tells_its_base(tmp_path):
    assert model_files("some/hub-id") == {"model_path": "some/hub-id"}
    assert model_files(str(tmp_path)) == {"model_path": str(tmp_path)}
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "base", "r": 4}')
    assert model_files(str(tmp_path)) == {"model_path": "base", "adapter": tmp_path, "max_lora_rank": 4}
    (tmp_path / "adapter_config.json").write_text("[]")
    with pytest.raises(ValueError, match="must have base_model_name_or_path and r"):
        model_files(str(tmp_path))


def test_ranks_that_vllm_knows():
    assert [_lora_settings(rank)["max_lora_rank"] for rank in (1, 2, 8, 9, 512)] == [1, 8, 8, 16, 512]
    with pytest.raises(ValueError, match="max_lora_rank 513: vLLM takes adapters up to 512"):
        _lora_settings(513)


@pytest.mark.slow
def test_vllm_computes_what_the_learner_computes_with_a_real_model(bench_python, tmp_path):
    """The canary compares weights and log-probabilities of SmolLM2 after a step, in float32."""
    try:
        model = find_smollm2()
    except ValueError as error:
        pytest.skip(str(error))
    changes = (
        *(f"model.name_or_path={model}", "model.policy=vllm", "model.dtype=float32"),
        *("model.vllm={enforce_eager=true}", "warm_start.from_run=none", "run.dir=run", "held_out.every=0"),
        *("train.steps=1", "train.batch_size=1", "train.group_size=2", "debate.max_tokens=32"),
    )
    done = bench_python.debate("train", "smollm2/debate", *changes, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    [row] = read_metrics(tmp_path / "run/metrics.jsonl")
    assert row["canary/weights_compared"] == 1
    assert row["canary/logprob_difference"] < 1e-4
