"""A quantized base under an adapter: what is refused, what transformers is told, and what it holds.

bitsandbytes is for CUDA GPUs here; where it is installed, its CPU backend runs the code past our refusal.
"""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

import debate_rl.models
from debate_rl.config import Config
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.forecast.memory import Load, memory_of
from debate_rl.models import load_model, sketch_model
from debate_rl.quantization import QuantizedBytes, loading_settings, quantized_bytes, refuse_unquantizable
from debate_rl.sft.replies import Encoded, batch_rows
from debate_rl.sft.session import LOSS
from learner.update.config import LearnerConfig
from learner.update.learner import Learner

has_bitsandbytes = pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not here")
TINY = TinyConfig(hidden_size=64, intermediate_size=128, layers=2, heads=2, context_tokens=64)
LAYERS = 2 * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 128)
"""Weights of the linear layers of two blocks: q, k and v, o, and the three of the MLP."""


@pytest.fixture
def folder(tmp_path):
    """A folder with a small model."""
    model, tokenizer = load_model(ModelConfig(tiny=TINY, device="cpu"), vocabulary=["a", "b"], seed=1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def model_config(folder, quantization="4bit", **changes):
    settings = {"name_or_path": folder, "lora_rank": 2, "quantization": quantization, "device": "cpu"}
    return ModelConfig(**settings | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lora_rank": 0}, 'quantization = "4bit": needs a frozen base model; set lora_rank'),
        ({"name_or_path": None, "tiny": {}}, "a tiny model cannot be quantized"),
        ({"policy": "vllm"}, "vLLM dropped bitsandbytes in 0.28"),
        ({"policy": "openai"}, 'leave out policy = "openai"'),
        ({"quantization": "3bit"}, "quantization"),
    ],
)
def test_what_nobody_quantizes_is_refused_with_the_recipe(changes, message):
    with pytest.raises(ValueError, match=message):
        model_config("m", **changes)


def test_elsewhere_than_on_cuda_it_is_refused_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr(debate_rl.models, "_load_checkpoint", lambda *_, **__: pytest.fail("was loaded"))
    with pytest.raises(ValueError, match=r'"8bit": bitsandbytes'):
        load_model(model_config("m", "8bit"), seed=0)
    with pytest.raises(ValueError, match="would be on mps"):
        refuse_unquantizable(model_config("m"), "mps")
    refuse_unquantizable(model_config("m", "none"), "cpu")


def test_without_the_library_the_extra_is_named(monkeypatch):
    from debate_rl.commands.console import one_line

    monkeypatch.setattr("debate_rl.quantization.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError) as error:
        refuse_unquantizable(model_config("m"), "cuda")
    assert one_line(error.value) == (
        "the package 'bitsandbytes' is not installed: pip install \".[quantize]\" in the folder of the source"
    )


def test_bytes_of_a_small_model(folder):
    model, _ = sketch_model(model_config(folder), on_gpu=True)
    base, adapter = 2 * 264 * 64, sum(4 * p.numel() for p in model.parameters() if p.requires_grad)
    rest = sum(p.numel() * p.element_size() for p in model.parameters()) - 2 * LAYERS
    assert rest > base + adapter  # and the norms
    largest = 2 * 64 * 128
    blocks = LAYERS // 64
    scales = blocks + 4 * 2 * sum(-(-count // (64 * 256)) for count in (4096, 2048, 2048, 4096, *[8192] * 3))
    assert quantized_bytes(model, "4bit") == QuantizedBytes(LAYERS // 2, scales, rest, largest, 2 * LAYERS)
    rows = 2 * (64 + 32 + 32 + 64 + 128 + 128 + 64)
    assert quantized_bytes(model, "8bit") == QuantizedBytes(LAYERS, 4 * rows, rest, largest, 2 * LAYERS)


@pytest.mark.slow
def test_the_estimate_counts_the_base_as_it_will_be(folder):
    load = Load(((20, 10),), replies=2, sampled=2, micro_tokens=60)
    found = {}
    for quantization in ("none", "8bit", "4bit"):
        config = Config(model=model_config(folder, quantization))
        model, _ = sketch_model(config.model, on_gpu=True)
        found[quantization] = memory_of(model, load, config, on_gpu=True)
    assert found["none"].weights - found["8bit"].weights == 2 * LAYERS - LAYERS - 4 * 1024
    assert found["4bit"].weights < found["8bit"].weights < found["none"].weights
    assert found["4bit"].learning - found["none"].learning == 2 * 64 * 128  # a layer that is unpacked


@has_bitsandbytes
@pytest.mark.parametrize(("quantization", "name"), [("4bit", "Linear4bit"), ("8bit", "Linear8bitLt")])
def test_an_adapter_on_a_quantized_base_learns_and_the_base_stays(folder, monkeypatch, quantization, name):
    monkeypatch.setattr(debate_rl.models, "refuse_unquantizable", lambda *_: None)
    config = model_config(folder, quantization, dtype="float32")
    model, _ = load_model(config, seed=1)
    layer = model.get_submodule("base_model.model.model.layers.0.mlp.up_proj")
    assert type(layer.base_layer).__name__ == name
    base = layer.base_layer.weight.data.clone()
    trained = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    assert all("lora_" in n for n in trained)
    learner = LearnerConfig(loss=LOSS, lr=1e-2, warmup_steps=0, beta=0.0)
    ids, learnt = np.arange(10, 22, dtype=np.int32), np.arange(12) > 4
    metrics = Learner(model, learner).step(batch_rows([Encoded(ids, learnt)]))
    assert metrics["grad_norm"] > 0
    assert torch.equal(layer.base_layer.weight.data, base)
    assert any(not torch.equal(p, trained[n]) for n, p in model.named_parameters() if p.requires_grad)


@has_bitsandbytes
def test_what_transformers_is_told():
    told = loading_settings(model_config("m"), torch.bfloat16, torch.device("cpu"))
    how = told["quantization_config"]
    assert (how.load_in_4bit, how.bnb_4bit_quant_type, how.bnb_4bit_use_double_quant) == (True, "nf4", True)
    assert how.bnb_4bit_compute_dtype == torch.bfloat16
    assert told["device_map"] == {"": torch.device("cpu")}
    eight = loading_settings(model_config("m", "8bit"), torch.bfloat16, torch.device("cpu"))
    assert eight["quantization_config"].load_in_8bit
    assert loading_settings(model_config("m", "none"), torch.bfloat16, torch.device("cpu")) == {}
