"""The least time of a run on a card that is known by its data sheet, with numbers worked out by hand."""

from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from debate_rl.config import Config
from debate_rl.forecast.memory import Load
from debate_rl.forecast.time import CARDS, Card, card_of, least_seconds

CARD = Card("a card", 80, operations=2000.0, bytes=300.0, found=79.0)
LOAD = Load(((50, 10), (80, 20)), replies=6, sampled=2, micro_tokens=100)


class Model(torch.nn.Module):
    """A model with 100 numbers in its layers, and 50 in its embeddings, which are tied."""

    def __init__(self):
        super().__init__()
        self.layers, self.ends = torch.nn.Linear(10, 10, bias=False), torch.nn.Embedding(10, 5)

    def get_input_embeddings(self):
        return self.ends

    get_output_embeddings = get_input_embeddings


def config_of(model=(("policy", "vllm"),), **learner):
    tables = {"model": {"tiny": {}, **dict(model)}, "learner": {"beta": 0.0, "minibatches": 1, **learner}}
    tables |= {"train": {"steps": 4, "sample_batch_size": 1}, "held_out": {"every": 2}}
    tables |= {"debate": {"num_agents": 3, "num_rounds": 2, "final_ballot": False}}
    return Config.model_validate(tables)


def test_a_token_takes_two_operations_a_weight_and_its_weights_are_read_once():
    speed = CARD.speed(Model(), LOAD)
    assert (speed.read, speed.score) == (10.0, 10.0)
    assert speed.step_s == 1.0  # 150 numbers of 2 bytes at 300 bytes a second, and 2 tokens at 10 a second


@pytest.mark.parametrize("more", [{}, {"beta": 0.1}])
def test_all_replies_of_a_step_are_sampled_at_once(more):
    step, each = least_seconds(config_of(**more), Model(), LOAD, 2, CARD)
    sampling = 6 * (50 + 80) / 10 + (10 + 20) * 1.0  # six tokens take .6 s, and the weights 1 s
    learning = 6 * (60 + 100) * (3 + bool(more)) / 10
    assert step == pytest.approx(sampling + learning)
    debates, alone = 6 * (50 + 80) / 10 + 30, 6 * (50 + 50) / 10 + 20
    assert each == pytest.approx(debates + alone)
    assert least_seconds(config_of(**more), Model(), LOAD, 0, CARD)[1] == 0.0


@pytest.mark.parametrize(("lora_rank", "measured_s"), [(0, 53.0), (8, 81.0)])
def test_a_decode_step_of_transformers_waits_for_kernel_launches(lora_rank, measured_s):
    """SmolLM2-135M on an H100: 6 turns of up to 256 tokens, at 48 replies a turn."""
    model = {"name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct", "lora_rank": lora_rank}
    config = Config.model_validate({"model": model, "train": {"steps": 4}})
    shape = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "vocab_size": 49_152}
    heads = {"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
    with torch.device("meta"):
        small = LlamaForCausalLM(LlamaConfig(**shape, **heads))
    load = Load(((400, 256),) * 6, replies=48, sampled=48, micro_tokens=16_384)
    h100 = next(card for card in CARDS if card.name == "H100 SXM")
    step, _ = least_seconds(config, small, load, 0, h100)
    assert measured_s / 2 < step < 2 * measured_s
    twice, _ = least_seconds(config, small, replace(load, sampled=24), 0, h100)
    assert twice == pytest.approx(2 * step, rel=0.1)  # two batches, one after the other
    vllm = config.model_copy(update={"model": config.model.model_copy(update={"policy": "vllm"})})
    assert least_seconds(vllm, small, load, 0, h100)[0] < 1


def test_a_card_is_known_by_its_memory():
    names = [card and card.name for card in (card_of(int(gib * 2**30)) for gib in (22.5, 45, 79, 139, 60))]
    assert names == ["A10G", "L40S", "H100 SXM", "H200 SXM", None]
