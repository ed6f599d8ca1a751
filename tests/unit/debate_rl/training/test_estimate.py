from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import debate_rl.training.estimate
from debate import Problem, run_debates
from debate.policies.local import LocalPolicy
from debate_rl.config import Config
from debate_rl.training.estimate import (
    Load,
    Memory,
    Seconds,
    Shape,
    Speed,
    in_words,
    load_of,
    memory_of,
    probe,
    seconds_of,
    shape_of,
)

HOME = Path(debate_rl.training.estimate.__file__).parents[2]
SHAPE = Shape(
    weight_bytes=4000,
    trained_bytes=4000,
    layers=2,
    hidden=8,
    inner=16,
    queries=8,
    keys=4,
    vocabulary=50,
    width=4,
)
LOAD = Load(rounds=((30, 10), (60, 10)), replies=6, sampled=4, micro_tokens=140)


def config_of(**learner_settings):
    return Config.model_validate({"model": {"tiny": {}}, "learner": learner_settings})


def test_memory_by_hand():
    memory = memory_of(SHAPE, LOAD, config_of(beta=0.1))
    assert (memory.weights, memory.reference, memory.optimizer, memory.gradients) == (4000, 4000, 8000, 4000)
    kept = 6 * 8 + 6 * 8 + 5 * 4 + 4 * 16  # 180 values a token and layer
    assert memory.activations == 140 * (2 + 2) * kept * 4 == 403_200
    assert memory.logits == 5 * 35 * 50 * 4  # a quarter of the first round's row is a reply
    assert memory.cache == 4 * 70 * 2 * 4 * 2 * 4
    assert memory.prompts == 4 * 60 * (3 * 8 + 3 * 16) * 4
    assert memory.learning == 4000 + 4000 + 8000 + 4000 + 403_200 + 35_000
    assert memory.sampling == 4000 + 4000 + 8000 + 17_920 + 69_120
    assert memory.peak == memory.learning


def test_what_saves_memory():
    plain = memory_of(SHAPE, LOAD, config_of())
    assert plain.reference == 0
    less = memory_of(SHAPE, LOAD, config_of(gradient_checkpointing=True))
    assert less.activations == 140 * (2 * 8 + 3 * 180) * 4 < plain.activations
    large = Shape(
        **{name: getattr(SHAPE, name) for name in Shape.__dataclass_fields__} | {"vocabulary": 2**22}
    )
    assert memory_of(large, LOAD, config_of()).logits == 5 * 16 * 2**22 * 4  # in parts of 2^26 logits


def test_time_by_hand():
    speed = Speed(read=100.0, score=50.0, step_s=0.1)
    took = seconds_of(LOAD, speed, config_of(), adapter=False)
    assert took.sampling == pytest.approx(6 * 90 / 100 + 2 * 20 * 0.1)  # two batches of 10 steps, twice
    assert took.learning == pytest.approx(6 * 110 * 3 / 50)
    more = {"beta": 0.1, "minibatches": 4, "epochs": 2, "gradient_checkpointing": True}
    took = seconds_of(LOAD, speed, config_of(**more), adapter=True)
    assert took.learning == pytest.approx(6 * 110 * (2 * 3 + 1 + 0.75) / 50)


def test_the_shape_of_a_model(make_tiny):
    model, _ = make_tiny(lora_rank=0)
    shape = shape_of(model)
    size = model.config.vocab_size * 32 + 2 * (32 * (32 + 16 + 16 + 32 + 3 * 48) + 2 * 8 + 2 * 32) + 32
    assert shape.weight_bytes == shape.trained_bytes == 4 * size
    assert (shape.layers, shape.hidden, shape.inner, shape.queries, shape.keys) == (2, 32, 48, 32, 16)
    model, _ = make_tiny(lora_rank=2)
    assert shape_of(model).adapter
    assert shape_of(model).trained_bytes == 4 * 2 * 2 * (64 + 48 + 48 + 64 + 80 + 80 + 80)


def test_a_layer_keeps_about_what_is_counted(make_tiny):
    model, _ = make_tiny(hidden_size=64, intermediate_size=192, layers=3)
    shape, kept = shape_of(model), {}
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.base_model(input_ids=torch.zeros(4, 100, dtype=torch.long), use_cache=False)
    found = sum(size for size, _ in kept.values())
    assert found == pytest.approx(3 * shape.saved_values * 400 * 4, rel=0.25)


@pytest.fixture(scope="module")
def played(make_tiny):
    """A policy, a configuration, and the debates it held."""
    model, tokenizer = make_tiny(["K7", "Q2", "M4"], context_tokens=700)
    policy = LocalPolicy(model, tokenizer, chat=True)
    debate = {"num_rounds": 2, "max_tokens": 16, "prompts": "tiny", "handles": ["K7", "Q2", "M4"]}
    train = {"problems_per_step": 2, "debates_per_problem": 2, "batch_size": 8}
    config = Config.model_validate({"model": {"tiny": {}}, "debate": debate, "train": train})
    problem = Problem("p", "Target 9. Numbers 4 5 1.", answer="4 5")
    return policy, config, problem, run_debates([problem] * 2, policy, config.debate, seed=1)


def test_the_load_of_a_step_covers_what_is_played(played):
    policy, config, problem, debates = played
    load = load_of(config, policy, problem)
    assert (load.replies, load.sampled, len(load.rounds)) == (12, 8, 3)
    for round_, (prompt, reply) in enumerate(load.rounds):
        turns = [turn for debate in debates for turn in debate.turns if turn.id.round == round_]
        longest = max(len(turn.completion.prompt_tokens) for turn in turns)
        assert max(len(turn.completion.tokens) for turn in turns) <= reply == 16
        assert (
            abs(prompt - longest) <= 48 + 40
        )  # three replies that may not be shown, and the task's own words
    assert load.micro_tokens == load.row_tokens < 8192


def test_prompts_end_where_the_context_does(played):
    policy, config, problem, _ = played
    narrow = config.model_copy(update={"debate": config.debate.model_copy(update={"context_tokens": 120})})
    assert max(load_of(narrow, policy, problem).rounds) == (104, 16)


def test_the_probe_measures_and_changes_nothing(played):
    policy, config, problem, debates = played
    model = policy._model
    before = torch.get_rng_state()
    speed = probe(model, load_of(config, policy, problem))
    assert min(speed.read, speed.score, speed.step_s) > 0
    assert torch.equal(before, torch.get_rng_state())
    assert run_debates([problem] * 2, policy, config.debate, seed=1) == debates


def test_what_does_not_fit_is_said_with_its_cure():
    memory = Memory(2**30, 0, 0, 0, 2**31, 0, 0, 0)
    lines = in_words(memory, Seconds(2.0, 3.0), LOAD, 2**31)
    assert lines[0] == "estimate, if every reply spends its 10 tokens and prompts have up to 60:"
    assert (
        "about 3.0 GiB of 2.0 GiB, most of it in learning: weights 1.0 GiB, activations 2.0 GiB" in lines[1]
    )
    assert "about 5 s a step: sampling 2 s, learning 3 s" in lines[2]
    assert "more than there is: lower learner.micro_batch_tokens" in lines[3]
    assert len(in_words(memory, Seconds(2.0, 3.0), LOAD, 2**33)) == 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")
@pytest.mark.parametrize(
    "shape", ["learning", "learning, large vocabulary, reference", "sampling, long prompts"]
)
def test_measured_peaks_are_near_the_estimate(shape, tmp_path):
    command = [
        sys.executable,
        HOME / "benchmarks/estimate.py",
        "--only",
        shape,
        "--json",
        tmp_path / "f.json",
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    figures = {row["name"]: row["value"] for row in json.loads((tmp_path / "f.json").read_text())}
    assert 0.5 < figures[f"{shape}: memory, estimated / measured"] < 2.0
