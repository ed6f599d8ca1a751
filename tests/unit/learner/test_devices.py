"""The same step on every device. A GPU's cases are deselected without one (``pytest -m gpu``)."""

import pytest
import torch
from torch import nn

from learner import Row
from learner.losses import LOSSES
from learner.update.batches import micro_batches
from learner.update.config import FROM_SAMPLER
from learner.update.forward import action_logprobs, reading
from learner.update.learner import Learner

from .conftest import config_of, qwen3, random_rows

BF16 = torch.bfloat16
CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
MPS = pytest.param("mps", marks=pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no MPS"))


def model_of(device: str = "cpu") -> nn.Module:
    return qwen3(initializer_range=0.1).to(device)


@pytest.mark.parametrize("device", [CUDA, MPS])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_device_gives_the_cpus_step_in_float32(device, loss):
    tis_cap = 0 if loss in FROM_SAMPLER else 2.0
    config = config_of(
        loss=loss, beta=0.1, entropy_bonus=0.1, tis_cap=tis_cap, minibatches=2, compute="float32"
    )
    on_cpu = Learner(model_of(), config).step(random_rows())
    elsewhere = Learner(model_of(device), config).step(random_rows())
    assert elsewhere == pytest.approx(on_cpu, rel=1e-3, abs=1e-4)


def gradient(model: nn.Module, rows: list[Row], compute: torch.dtype | None, tokens: int) -> torch.Tensor:
    """The gradient of the log-probabilities, each times its advantage, in passes of so many tokens."""
    device = next(model.parameters()).device
    with reading(model, share=False, compute=compute):
        for batch in micro_batches(rows, tokens, device=device):
            (action_logprobs(model, batch, compute=compute)[0] * batch.advantages).sum().backward()
    found = torch.cat([parameter.grad.flatten().cpu().double() for parameter in model.parameters()])
    model.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("tokens", [1, 60, 1000])
def test_products_in_bfloat16_give_nearly_the_gradient_of_float32(device, tokens):
    """On a GPU such passes have fewer sampled tokens than a tile of logits: 2**26 over the vocabulary."""
    exact = gradient(model_of(), random_rows(), None, 1000)
    rounded = gradient(model_of(device), random_rows(), BF16, tokens)
    assert float((rounded - exact).norm()) < 0.05 * float(exact.norm())


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_the_first_update_moves_every_number_by_the_learning_rate(device):
    """Adam's first step is g / (|g| + eps); a GPU's fused kernel keeps the number of steps on the device."""
    learner = Learner(model_of(device), config_of(adam_eps=1e-12, warmup_steps=1, compute="float32"))
    assert learner.step(random_rows())["update_per_lr"] == pytest.approx(1.0, abs=1e-3)
