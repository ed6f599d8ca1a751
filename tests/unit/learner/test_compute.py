import copy
import weakref
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from learner import LearnerConfig
from learner.update import head as head_module
from learner.update.batches import collate
from learner.update.forward import action_logprobs, compute_type, without_copies
from learner.update.head import head_logprobs, wide_logits
from learner.update.learner import Learner, check_products

from .conftest import qwen3

BF16 = torch.bfloat16


class LiveBytes(TorchDispatchMode):
    """Count the bytes of all tensors made inside: ``live`` now, ``peak`` at most so far.

    What a model holds is not counted, however it is looked at: a view of a weight is no new tensor.
    """

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.live = self.peak = 0
        held = () if model is None else (*model.parameters(), *model.buffers())
        self._seen = {tensor.untyped_storage()._cdata for tensor in held}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self._count, result)
        return result

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._seen:
            self._seen.add(key)
            self.live += size
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live -= size


def adapter(dtype=BF16):
    shape = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    base = qwen3(**shape, intermediate_size=192, initializer_range=0.1, tie_word_embeddings=False)
    for weight in base.parameters():
        weight.data = weight.data.to(dtype)
    model = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", lora_alpha=8))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(weight, std=0.1)
    return model.eval()


@pytest.mark.parametrize(
    ("model", "setting", "expected"),
    [
        (nn.Linear(2, 2), "auto", None),
        (nn.Linear(2, 2), "bfloat16", BF16),
        (nn.Linear(2, 2, dtype=BF16), "auto", None),
        (nn.Sequential(nn.Linear(2, 2, dtype=BF16), nn.Linear(2, 2)), "auto", BF16),
        (nn.Sequential(nn.Linear(2, 2, dtype=BF16), nn.Linear(2, 2)), "float32", None),
    ],
)
def test_the_type_of_products(model, setting, expected):
    assert compute_type(model, setting) == expected


@pytest.mark.parametrize("autocast", [False, True])
def test_logits_are_not_rounded(autocast):
    torch.manual_seed(0)
    head = nn.Linear(64, 100, bias=False, dtype=torch.float32 if autocast else BF16)
    features = torch.randn(5, 64).to(BF16)
    with torch.autocast("cpu", BF16, enabled=autocast):
        logits = wide_logits(head, features)
        rounded = head(features)
    exact = features.double() @ head.weight.to(BF16).double().T
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), exact, atol=1e-5, rtol=1e-5)
    assert (rounded.double() - exact).abs().max() > 1e-3


def as_on_a_gpu(product):
    """Return a product that can be wider than what it multiplies, and that autograd has no derivative for."""

    def wide(*matrices, out_dtype=None, **kwargs):
        if out_dtype is None:
            return product(*matrices, **kwargs)
        assert not torch.is_grad_enabled(), "a product with out_dtype has no derivative"
        *total, a, b = matrices
        return product(*total, a.to(out_dtype), b.to(out_dtype), **kwargs)

    return wide


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_a_gpus_products_of_few_tokens_have_a_gradient(tokens, autocast, entropy_gradient, monkeypatch):
    torch.manual_seed(0)
    kind = torch.float32 if autocast else BF16
    given = torch.randn(tokens, 16).to(kind), torch.randn(30, 16).to(kind), torch.randn(2, tokens)
    targets, temperature = torch.arange(tokens), torch.linspace(0.5, 1.5, tokens)

    def results():
        read, head = given[0].clone().requires_grad_(), nn.Linear(16, 30, bias=False, dtype=kind)
        head.weight.data.copy_(given[1])
        with torch.autocast("cpu", BF16, enabled=autocast):
            found = head_logprobs(head, read, targets, temperature, entropy_gradient=entropy_gradient)
        sum((weight * one).sum() for weight, one in zip(given[2], found, strict=True)).backward()
        return *(one.detach() for one in found), read.grad, head.weight.grad

    here = results()
    monkeypatch.setattr(head_module, "_widens", lambda matrix, product: product.itemsize < 4)
    for name in ("mm", "addmm"):
        monkeypatch.setattr(torch, name, as_on_a_gpu(getattr(torch, name)))
    there = results()
    for got, expected, tolerance in zip(there, here, (1e-5, 1e-5, 1e-2, 1e-2), strict=True):
        torch.testing.assert_close(got.float(), expected.float(), atol=tolerance, rtol=tolerance)
    assert here[3].abs().sum() > 0 or not tokens


def kept_bytes(compute, rows):
    """What a forward pass keeps for the backward pass, in bytes."""
    model, batch = adapter(), collate(rows)
    with without_copies(model, compute), LiveBytes(model) as bytes_:
        logprobs, _ = action_logprobs(model, batch, compute=compute)
        held = bytes_.live
        logprobs.sum().backward()
    return held


def test_an_adapter_keeps_no_float32_copies_of_what_it_reads(debate_rows):
    rows = debate_rows(debates=1)
    assert kept_bytes(BF16, rows) < 0.75 * kept_bytes(None, rows)


@pytest.mark.slow
def test_an_adapter_learns_the_same_without_them(debate_rows):
    weights = []
    for setting in ("auto", "float32"):
        model = adapter()
        config = LearnerConfig(lr=1e-3, warmup_steps=0, adam_eps=1.0, compute=setting, max_grad_norm=1e9)
        start = [p.detach().clone() for p in model.parameters() if p.requires_grad]
        Learner(model, config).step(debate_rows())
        end = [p.detach() for p in model.parameters() if p.requires_grad]
        weights.append(torch.cat([(b - a).flatten() for a, b in zip(start, end, strict=True)]))
    assert nn.functional.cosine_similarity(*weights, dim=0) > 0.99


@pytest.mark.slow
def test_layers_computed_again_have_the_same_types(debate_rows):
    model = adapter()
    plain = copy.deepcopy(model)
    for one, checkpointing in ((model, True), (plain, False)):
        config = LearnerConfig(lr=1e-3, warmup_steps=0, adam_eps=1.0, gradient_checkpointing=checkpointing)
        Learner(one, config).step(debate_rows())
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_slow_products_on_a_cpu_are_announced(monkeypatch):
    parameters = [nn.Parameter(torch.zeros(2))]
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.warns(UserWarning, match=r"^learner\.compute=bfloat16: "):
        check_products(BF16, parameters)
    check_products(None, parameters)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    check_products(BF16, parameters)
