"""The weights that a run begins with, and how ``train.jitter`` perturbs them."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from debate_rl.config import Config
from debate_rl.runs.checkpoint import WARM_START, TrainState, save_checkpoint
from debate_rl.training.start_weights import start_weights


def tiny(dtype=torch.float32):
    torch.manual_seed(7)
    sizes = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "head_dim": 16}
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return Qwen3ForCausalLM(Qwen3Config(**sizes, **heads)).to(dtype)


def embedding(model):
    return model.get_input_embeddings().weight.detach()


def started(path, *, jitter, seed=0, other=None, dtype=torch.float32):
    """Return the weights that a run begins with; ``other``: the run whose weights it takes over."""
    tables = {"seed": seed, "model": {"tiny": {}}, "train": {"jitter": jitter}}
    config = Config.model_validate(tables | {"warm_start": {"from_run": other and str(other)}})
    folder = SimpleNamespace(path=path, checkpoints=path / "checkpoints", resumed=True)
    model = tiny(dtype)
    start_weights(config, folder, model, None, None, None)
    return embedding(model)


@pytest.mark.parametrize("taken_over", [False, True])
def test_jitter_moves_start_weights_by_about_a_millionth_and_the_same_one_alike(tmp_path, taken_over):
    other = tmp_path / "other" if taken_over else None
    if other is not None:
        save_checkpoint(other / WARM_START, TrainState(step=1, seed=0), model=tiny())
    plain, one, again, two = (
        started(tmp_path / name, jitter=jitter, other=other)
        for name, jitter in (("plain", 0), ("one", 1), ("again", 1), ("two", 2))
    )
    assert torch.equal(plain, embedding(tiny()))
    assert torch.equal(one, again)
    assert torch.equal(one, started(tmp_path / "one", jitter=1, other=other))  # opened again: not twice
    both = started(tmp_path / "s", jitter=1, seed=1, other=other)
    for moved in (one / plain - 1, two / one - 1, both / one - 1):
        assert 0 < float(moved.abs().max()) < 1e-5
        assert float(moved.double().std()) == pytest.approx(1e-6, rel=0.6)
