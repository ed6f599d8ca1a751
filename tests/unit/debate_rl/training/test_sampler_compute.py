"""The model that samples here rounds its weights as the learner does, whatever the weights' own type."""

import numpy as np
import pytest
import torch

from debate.types import Message, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.engines import _make_engine
from debate_rl.inference.local import LocalPolicy
from learner.types import Row
from learner.update.batches import collate
from learner.update.forward import action_logprobs

BF16 = torch.bfloat16


def batch_of(policy):
    """Return what twelve sampled replies are learnt from."""
    asked = (Message("user", "hello"),)
    requests = [SampleRequest(asked, 1.0, 12, (), seed, "a", TurnId(0, 0)) for seed in range(12)]
    rows = []
    for said in policy.sample_all(requests):
        prompt, reply = len(said.prompt_tokens), len(said.tokens)
        mask = np.arange(prompt + reply) >= prompt
        ids = np.array((*said.prompt_tokens, *said.tokens), np.int32)
        logprobs = np.concatenate([np.zeros(prompt), said.logprobs]).astype(np.float32)
        streams = (mask.astype(np.float32), mask.astype(np.int8))
        rows.append(Row(ids, mask, logprobs, *streams, "g", 0, TurnId(0, 0)))
    return collate(rows)


def mismatch_kl(policy, model, compute) -> float:
    """Return the metric of that name of sampled replies."""
    batch = batch_of(policy)
    with torch.no_grad():
        apart = action_logprobs(model, batch, compute=compute)[0] - batch.sampling_logprobs
    return float((apart.expm1() - apart)[batch.mask].mean())


@pytest.fixture
def learnt(make_tiny):
    """A model whose weights are bfloat16 numbers but for one update, too small to survive that rounding."""
    model, tokenizer = make_tiny(fallback="ascii", hidden_size=64, layers=6, intermediate_size=192)
    for weight in model.parameters():
        weight.data = weight.data.to(BF16).float()
    batch = batch_of(LocalPolicy(model, tokenizer))
    action_logprobs(model, batch)[0].sum().backward()
    for weight in model.parameters():
        if weight.dim() > 1 and weight.grad is not None:
            spacing = (weight.data.abs().clamp(min=1e-30).log2().floor() - 7).exp2()
            weight.data += 0.24 * spacing * weight.grad.sign()
            assert torch.equal(weight.data.to(BF16).float() != weight.data, weight.grad != 0)
        weight.grad = None
    return model, tokenizer


def test_a_sampler_in_float32_sees_an_update_that_products_in_bfloat16_round_away(learnt):
    model, _ = learnt
    apart = mismatch_kl(LocalPolicy(*learnt), model, BF16)
    alike = mismatch_kl(LocalPolicy(*learnt, compute=BF16), model, BF16)
    assert mismatch_kl(LocalPolicy(*learnt), model, None) < 1e-6
    assert apart > 0.01
    assert alike < apart / 10


def test_the_engine_of_a_run_samples_in_the_type_that_its_learner_computes_in():
    def compute(setting: str) -> torch.dtype | None:
        tables = {"model": {"tiny": {}, "device": "cpu"}, "learner": {"compute": setting}}
        return _make_engine(Config.model_validate(tables), 1)[2]._compute

    assert [compute(setting) for setting in ("auto", "float32", "bfloat16")] == [None, None, BF16]
