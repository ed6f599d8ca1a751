import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import debate_rl.forecast.memory
from debate import Problem, run_debates
from debate_rl.config import Config
from debate_rl.forecast.memory import Load, Memory, cure, in_words, load_of, memory_of, of_first_rank
from debate_rl.forecast.time import Speed, evaluation_seconds, learning_seconds, probe, sampling_seconds
from debate_rl.inference.local import LocalPolicy

HOME = Path(debate_rl.forecast.memory.__file__).parents[2]
LOAD = Load(rounds=((30, 10), (60, 10)), replies=6, sampled=4, micro_tokens=140)


def config_of(**learner_settings):
    return Config.model_validate({"model": {"tiny": {}}, "learner": learner_settings})


@pytest.mark.slow
def test_what_stays_in_memory_by_hand(make_tiny):
    model, _ = make_tiny(lora_rank=0)
    size = model.config.vocab_size * 32 + 2 * (32 * (32 + 16 + 16 + 32 + 3 * 48) + 2 * 8 + 2 * 32) + 32
    buffers = 2 * 4 * 4  # two tables of four rotary frequencies
    memory = memory_of(model, LOAD, config_of(beta=0.1))
    assert (memory.weights, memory.optimizer) == (4 * size + buffers, 8 * size)
    assert memory.reference == memory.weights
    assert memory_of(model, LOAD, config_of()).reference == 0
    assert memory.peak == memory.weights + memory.reference + memory.optimizer + memory.learning
    adapted, _ = make_tiny(lora_rank=2)
    memory = memory_of(adapted, LOAD, config_of(beta=0.1))
    assert memory.reference == 0  # the model with its adapter off
    refreshed = memory_of(adapted, LOAD, config_of(beta=0.1, reference_every=5))
    assert refreshed.reference == memory.optimizer // 2  # a copy of the adapter
    assert memory.optimizer == 8 * 2 * 2 * (64 + 48 + 48 + 64 + 80 + 80 + 80)


@pytest.mark.parametrize(("lora_rank", "samples"), [(0, True), (0, False), (2, False)])
def test_a_ranks_memory_by_hand(make_tiny, lora_rank, samples):
    model, _ = make_tiny(lora_rank=lora_rank)
    layer = 4 * (32 * (32 + 16 + 16 + 32 + 3 * 48) + 2 * 8 + 2 * 32)
    outside = 4 * (model.config.vocab_size * 32 + 32)
    adapter = 4 * lora_rank * (64 + 48 + 48 + 64 + 80 + 80 + 80)
    trained = 2 * adapter if lora_rank else 2 * layer + outside
    alone = Memory(weights=1000, reference=600, optimizer=2 * trained, sampling=70, learning=trained + 5)
    whole = 2 * (layer + 2 * adapter) + outside if lora_rank else 4 * layer + 2 * outside
    kept = {"weights": 250 + samples * 1000, "reference": 150, "optimizer": trained // 2}
    wanted = Memory(**kept, sampling=samples * 70, learning=5 + trained // 4 + whole)
    assert of_first_rank(alone, model, 4, samples=samples) == wanted


@pytest.mark.slow
def test_full_weights_on_a_gpu_are_multiplied_in_bfloat16(make_tiny):
    model, _ = make_tiny(layers=6)
    load = replace(LOAD, micro_tokens=1400)
    here, there = (memory_of(model, load, config_of(), on_gpu=on_gpu) for on_gpu in (False, True))
    assert there.weights == here.weights
    assert there.learning < 0.8 * here.learning


@pytest.mark.slow
def test_what_saves_memory(make_tiny):
    model, _ = make_tiny(layers=6)
    load = replace(LOAD, micro_tokens=1400)
    plain = memory_of(model, load, config_of()).learning
    assert memory_of(model, load, config_of(gradient_checkpointing=True)).learning < 0.5 * plain
    assert memory_of(model, replace(load, micro_tokens=700), config_of()).learning < 0.6 * plain
    many, half = (replace(load, sampled=sampled) for sampled in (64, 32))
    assert memory_of(model, half, config_of()).sampling < 0.6 * memory_of(model, many, config_of()).sampling


def test_time_by_hand():
    speed = Speed(read=100.0, score=50.0, step_s=0.1)
    assert sampling_seconds(LOAD, speed) == pytest.approx(6 * 90 / 100 + 2 * 20 * 0.1)  # two batches, twice
    assert learning_seconds(LOAD, speed, config_of()) == pytest.approx(6 * 110 * 3 / 50)
    more = {"beta": 0.1, "minibatches": 4, "epochs": 2, "gradient_checkpointing": True}
    adapter = Config.model_validate({"model": {"tiny": {}, "lora_rank": 2}, "learner": more})
    assert learning_seconds(LOAD, speed, adapter) == pytest.approx(6 * 110 * (2 * 3 + 1 + 0.75) / 50)
    debates = 12 * 90 / 100 + 2 * 10 * 0.1  # an evaluation of 12 replies a round: one batch of up to 128
    alone = 12 * 2 * 30 / 100 + 2 * 10 * 0.1  # as many replies, each to a prompt of round 0
    assert evaluation_seconds(LOAD, speed, config_of(), 4) == pytest.approx(debates + alone)


def test_learning_by_hand(make_tiny):
    """The forward pass of 140 tokens, 35 of them with a loss, of float32 weights on a CPU."""
    model, _ = make_tiny(lora_rank=0)
    size = model.config.vocab_size
    layer = 24 * 32 + 16 * 48 + 16 * (32 + 16)
    kept = 2 * layer * 140 + 12 * 35 * size + 9 * 32 * 140
    backward = 2 * layer * 140 + 6 * 35 * size + 4 * 32 * size + 9 * 32 * 140
    trained = memory_of(model, LOAD, config_of()).optimizer // 2
    assert memory_of(model, LOAD, config_of()).learning == trained + max(kept, backward)


@pytest.fixture(scope="module")
def played(make_tiny):
    """A policy, a configuration, and the debates it held."""
    model, tokenizer = make_tiny(["K7", "Q2", "M4"], context_tokens=700)
    policy = LocalPolicy(model, tokenizer, chat=True)
    debate = {"num_rounds": 2, "max_tokens": 16, "prompts": "tiny", "handles": ["K7", "Q2", "M4"]}
    train = {"batch_size": 2, "group_size": 2, "sample_batch_size": 8}
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
        assert abs(prompt - longest) <= 48 + 40  # three replies that may not be shown, and the task's words
    assert load.micro_tokens == load.row_tokens < 8192
    narrow = config.model_copy(update={"debate": config.debate.model_copy(update={"context_tokens": 120})})
    assert max(load_of(narrow, policy, problem).rounds) == (104, 16)


def test_a_history_that_grows_is_read_once(played):
    """Of three agents over two rounds and a ballot: what last prompts share, and what is each one's own."""
    policy, config, problem, _ = played
    learner = config.learner.model_copy(update={"share_prefixes": True})

    def load_with(**debate):
        protocol = config.debate.model_copy(update=debate)
        return load_of(config.model_copy(update={"debate": protocol, "learner": learner}), policy, problem)

    load = load_with(history_rounds=-1)
    (opening, _), (middle, _), (last, reply) = load.rounds
    own = opening - load.shared[0]
    assert (middle - opening, last - middle) == (3 * 16, 3 * 16)
    assert load.grows
    assert load.read_tokens == 4 * (last - own + 3 * 3 * (own + reply))
    assert not load_with(history_rounds=1).grows
    assert not load_with(history_rounds=-1, order="per_viewer").grows
    assert not load_with(history_rounds=-1, context_tokens=last + reply - 1).grows  # rounds may have to go
    pairs = load_with(history_rounds=-1, ballot="swiss")
    assert [prompt for prompt, _ in pairs.rounds] == [opening, middle, opening + 2 * 2 * 16]
    assert (pairs.grows, pairs.shared[2]) == (False, pairs.shared[0])  # every judge reads a pair of its own
    talk = load_with(history_rounds=-1, conversation=True).rounds
    assert [prompt - opening for prompt, _ in talk] == [0, 2 * 16 + 16, 4 * 16 + 32]


def test_the_probe_measures_and_changes_nothing(played):
    policy, config, problem, debates = played
    model = policy._model
    before, weights = torch.get_rng_state(), [parameter.clone() for parameter in model.parameters()]
    modes = [module.training for module in model.modules()]
    speed = probe(model, load_of(config, policy, problem))
    assert min(speed.read, speed.score, speed.step_s) > 0
    memory_of(model, load_of(config, policy, problem), config)
    assert torch.equal(before, torch.get_rng_state())
    assert all(map(torch.equal, weights, model.parameters()))
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert [module.training for module in model.modules()] == modes
    assert run_debates([problem] * 2, policy, config.debate, seed=1) == debates


def test_memory_in_words_with_what_to_lower():
    memory = Memory(weights=2**30, reference=0, optimizer=0, sampling=2**20, learning=2**31)
    parts = "weights 1.0 GiB, sampling 1.0 MiB, learning 2.0 GiB"
    assert in_words(memory, 2**31) == f"about 3.0 GiB of 2.0 GiB, with its peak in learning: {parts}"
    lower = "lower learner.micro_batch_tokens or debate.max_tokens"
    assert cure(memory, config_of(), 2**31) == lower
    checkpointing = "set learner.gradient_checkpointing=true"
    assert cure(memory, config_of(gradient_checkpointing=False), 2**31) == f"{checkpointing}, or {lower}"
    sampling = replace(memory, sampling=2**32)
    assert cure(sampling, config_of(), 2**31).startswith("lower train.sample_batch_size")
    beside, share = replace(memory, engine=2**31), "lower model.vllm.gpu_memory_utilization to 0.25"
    assert cure(beside, config_of(), 2**32) == f"{share}, or {lower}"  # 3 GiB of 4 are the learner's
    assert cure(beside, config_of(), 2**31) == lower  # nothing is left for an engine


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")
@pytest.mark.parametrize(
    "shape",
    [
        "learning",
        "learning, layers computed again",
        "learning, large vocabulary, reference",
        "sampling, long prompts",
        "sampling, the model's own forward",
    ],
)
def test_measured_peaks_are_near_the_estimate(shape, tmp_path):
    command = [sys.executable, HOME / "benchmarks/estimate.py", "--only", shape]
    command += ["--json", tmp_path / "f.json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    figures = {row["name"]: row["value"] for row in json.loads((tmp_path / "f.json").read_text())}
    assert 0.85 < figures[f"{shape}: memory, estimated / measured"] < 1.15
