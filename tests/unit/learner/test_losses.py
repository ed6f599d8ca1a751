from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
import torch
from torch import Tensor

from learner.config_learner import LOSS_NAMES
from learner.losses import LOSSES, LossConfig, LossInputs, Totals, find_loss

NAMES = sorted(LOSSES)


def table(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def inputs_of(
    ratios: Tensor, advantages: Tensor, *, mask=None, stream=None, ref_ratios: Tensor | None = None
) -> LossInputs:
    """Inputs with given ratios to the old weights and ref_ratios = exp(ref - lp)."""
    logprobs = torch.full_like(ratios, -1.5)
    return LossInputs(
        logprobs=logprobs.requires_grad_(),
        old_logprobs=logprobs.detach() - ratios.log(),
        sampling_logprobs=torch.zeros_like(ratios),
        ref_logprobs=None if ref_ratios is None else logprobs.detach() + ref_ratios.log(),
        advantages=advantages,
        mask=torch.ones_like(ratios) if mask is None else mask,
        stream=torch.ones_like(ratios) if stream is None else stream,
    )


def random_inputs(rows=5, tokens=7, *, seed=0, ref=True) -> LossInputs:
    generator = torch.Generator().manual_seed(seed)

    def normal(scale: float) -> Tensor:
        return scale * torch.randn(rows, tokens, generator=generator, dtype=torch.float64)

    logprobs = normal(1.0) - 3
    mask = torch.rand(rows, tokens, generator=generator) < 0.7
    mask[0], mask[1, 1:] = False, False  # a row without any token, a row with at most one
    mask[1, 0] = True
    return LossInputs(
        logprobs=logprobs.clone().requires_grad_(),
        old_logprobs=logprobs + normal(0.3),
        sampling_logprobs=logprobs + normal(0.3),
        ref_logprobs=logprobs + normal(0.5) if ref else None,
        advantages=normal(1.0),
        mask=mask,
        stream=torch.randint(1, 3, (rows, tokens), generator=generator),
    )


def test_the_configuration_knows_every_loss():
    """The names stand twice, because the configuration must not load torch."""
    assert sorted(LOSS_NAMES) == NAMES


# By hand ------------------------------------------------------------------------------------------


def test_grpo_by_hand():
    # eps 0.2: 1.5 with A > 0 is clipped to 1.2; 0.5 with A < 0 to 0.8; the others are not
    ratios = table([1.5, 0.5, 1.0, 1.0], [0.5, 1.5, 9.0, 9.0])
    advantages = table([1.0, -1.0, 2.0, 0.0], [1.0, -1.0, 5.0, 5.0])
    mask = table([1, 1, 1, 1], [1, 1, 0, 0]).bool()
    outputs = LOSSES["grpo"](inputs_of(ratios, advantages, mask=mask), LossConfig())
    first = (-1.2 + 0.8 - 2.0 + 0.0) / 4
    second = (-0.5 + 1.5) / 2
    assert outputs.loss.item() == pytest.approx((first + second) / 2)
    assert outputs.metrics["clip_fraction"].item() == pytest.approx(2 / 6)
    assert outputs.metrics["ratio_mean"].item() == pytest.approx((1.5 + 0.5 + 1 + 1 + 0.5 + 1.5) / 6)
    assert outputs.metrics["ratio_max"].item() == pytest.approx(1.5)


def test_clip_higher_moves_the_upper_bound_alone():
    inputs = inputs_of(table([1.5, 0.5]), table([1.0, -1.0]))
    outputs = LOSSES["grpo"](inputs, LossConfig(eps=0.2, eps_hi=0.28))
    assert outputs.loss.item() == pytest.approx((-1.28 + 0.8) / 2)


def test_sequences_without_tokens_do_not_count_in_the_mean():
    mask = table([1, 1], [0, 0]).bool()
    outputs = LOSSES["grpo"](
        inputs_of(table([1.0, 1.0], [1.0, 1.0]), table([3, 1], [7, 7]), mask=mask), LossConfig()
    )
    assert outputs.loss.item() == pytest.approx(-2.0)


def test_dr_grpo_by_hand():
    ratios = table([1.5, 1.0, 1.0], [1.0, 9.0, 9.0])
    mask = table([1, 1, 1], [1, 0, 0]).bool()
    outputs = LOSSES["dr_grpo"](
        inputs_of(ratios, table([1, 1, 1], [-2, 5, 5]), mask=mask), LossConfig(max_tokens=10)
    )
    assert outputs.loss.item() == pytest.approx((-1.2 - 1 - 1 + 2) / (2 * 10))


def test_dr_grpo_without_its_divisor_names_it():
    with pytest.raises(ValueError, match="max_tokens"):
        LOSSES["dr_grpo"](random_inputs(), LossConfig())


def test_importance_sampling_by_hand_does_not_clip():
    outputs = LOSSES["importance_sampling"](
        inputs_of(table([1.5, 0.1], [3.0, 1.0]), table([1, -1], [2, 0])), LossConfig()
    )
    assert outputs.loss.item() == pytest.approx(((-1.5 + 0.1) / 2 + (-6.0 + 0) / 2) / 2)
    assert "clip_fraction" not in outputs.metrics


def test_kl_by_hand_with_a_weight_for_each_stream():
    # k3 = q - log q - 1 with q = exp(ref - lp)
    ref_ratios = table([2.0, 0.5, 1.0])
    k3 = [2 - log(2) - 1, 0.5 + log(2) - 1, 0.0]
    zero = table([0.0, 0.0, 0.0])
    inputs = inputs_of(table([1.0, 1.0, 1.0]), zero, ref_ratios=ref_ratios, stream=table([1, 2, 2]))
    both = LOSSES["grpo"](inputs, LossConfig(beta=0.1))
    assert both.loss.item() == pytest.approx(0.1 * sum(k3) / 3)
    assert both.metrics["kl_mean"].item() == pytest.approx(sum(k3) / 3)
    assert both.metrics["kl_max"].item() == pytest.approx(k3[0])
    apart = LOSSES["grpo"](inputs, LossConfig(beta=0.1, beta_judge=0.5))
    assert apart.loss.item() == pytest.approx((0.1 * k3[0] + 0.5 * k3[1]) / 3)
    generator_free = LOSSES["grpo"](inputs, LossConfig(beta=0.0, beta_judge=0.5))
    assert generator_free.loss.item() == pytest.approx(0.5 * k3[1] / 3)
    judge_free = LOSSES["grpo"](inputs, LossConfig(beta=0.1, beta_judge=0.0))
    assert judge_free.loss.item() == pytest.approx(0.1 * k3[0] / 3)


def test_kl_is_measured_without_a_weight_and_needs_a_reference_with_one():
    outputs = LOSSES["grpo"](random_inputs(), LossConfig())
    assert outputs.metrics["kl_mean"].item() > 0
    assert "kl_mean" not in LOSSES["grpo"](random_inputs(ref=False), LossConfig()).metrics
    with pytest.raises(ValueError, match=r"beta=0\.0, beta_judge=0\.1, but ref_logprobs is None"):
        LOSSES["grpo"](random_inputs(ref=False), LossConfig(beta_judge=0.1))


# Against a reference in numpy, one token at a time ------------------------------------------------


def reference_loss(name: str, inputs: LossInputs, config: LossConfig) -> float:
    fields = {
        key: np.asarray(getattr(inputs, key).detach(), np.float64)
        for key in ("logprobs", "old_logprobs", "ref_logprobs", "advantages", "mask", "stream")
    }
    rows, width = fields["mask"].shape
    sequences = []
    for i in range(rows):
        tokens = []
        for t in range(width):
            if not fields["mask"][i, t]:
                continue
            ratio = exp(fields["logprobs"][i, t] - fields["old_logprobs"][i, t])
            advantage = fields["advantages"][i, t]
            hi = config.eps if config.eps_hi is None else config.eps_hi
            objective = ratio * advantage
            if name != "importance_sampling":
                objective = min(objective, min(max(ratio, 1 - config.eps), 1 + hi) * advantage)
            gap = fields["ref_logprobs"][i, t] - fields["logprobs"][i, t]
            judge = fields["stream"][i, t] == 2 and config.beta_judge is not None
            beta = config.beta_judge if judge and config.beta_judge is not None else config.beta
            tokens.append(-objective + beta * (exp(gap) - gap - 1))
        if tokens:
            sequences.append(tokens)
    if name == "dr_grpo":
        assert config.max_tokens
        return sum(map(sum, sequences)) / (rows * config.max_tokens)
    return sum(sum(tokens) / len(tokens) for tokens in sequences) / len(sequences)


CONFIGS = [
    LossConfig(max_tokens=7),
    LossConfig(eps=0.1, eps_hi=0.5, beta=0.3, max_tokens=11),
    LossConfig(beta=0.1, beta_judge=0.7, max_tokens=5),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_against_the_reference(name, config, seed):
    inputs = random_inputs(seed=seed)
    loss = LOSSES[name](inputs, config).loss
    assert loss.item() == pytest.approx(reference_loss(name, inputs, config), rel=1e-12)
    (gradient,) = torch.autograd.grad(loss, inputs.logprobs)
    assert gradient.numpy() == pytest.approx(differences(name, inputs, config), abs=1e-8)


def differences(name: str, inputs: LossInputs, config: LossConfig, step: float = 1e-6) -> np.ndarray:
    """Central differences of the reference by each log-probability."""
    base = inputs.logprobs.detach()
    result = np.zeros(tuple(base.shape))
    for place in np.ndindex(*base.shape):
        nudge = torch.zeros_like(base)
        nudge[place] = step
        up = reference_loss(name, replace(inputs, logprobs=base + nudge), config)
        down = reference_loss(name, replace(inputs, logprobs=base - nudge), config)
        result[place] = (up - down) / (2 * step)
    return result


# Laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cuts", [(0, 1, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)])
def test_micro_batches_add_up_to_the_whole_batch(name, cuts):
    config = LossConfig(beta=0.2, max_tokens=9)
    whole = random_inputs()
    loss = LOSSES[name](whole, config).loss
    (gradient,) = torch.autograd.grad(loss, whole.logprobs)
    totals = Totals.of(whole.mask)
    parts = []
    for start, end in pairwise(cuts):
        part = LossInputs(*(getattr(whole, field)[start:end] for field in LossInputs.__slots__))
        parts.append(LOSSES[name](part, replace(config, totals=totals)).loss)
    assert sum(parts).item() == pytest.approx(loss.item(), rel=1e-12)
    (summed,) = torch.autograd.grad(sum(parts), whole.logprobs)
    torch.testing.assert_close(summed, gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_outside_the_mask_does_not_matter(name):
    config = LossConfig(beta=0.2, max_tokens=9)
    clean = random_inputs()
    outside = ~clean.mask
    dirty = replace(
        clean,
        logprobs=clean.logprobs.detach().masked_fill(outside, float("-inf")).requires_grad_(),
        old_logprobs=clean.old_logprobs.masked_fill(outside, float("nan")),
        ref_logprobs=clean.ref_logprobs.masked_fill(outside, float("inf")),
        advantages=clean.advantages.masked_fill(outside, float("nan")),
    )
    expected, got = LOSSES[name](clean, config), LOSSES[name](dirty, config)
    assert got.loss.item() == expected.loss.item()
    assert {key: value.item() for key, value in got.metrics.items()} == {
        key: value.item() for key, value in expected.metrics.items()
    }
    (gradient,) = torch.autograd.grad(got.loss, dirty.logprobs)
    assert gradient[outside].eq(0).all()
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.loss, clean.logprobs)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("silent", "other"), [(1, 2), (2, 1)])
def test_a_streams_advantages_move_no_token_of_the_other_stream(name, silent, other):
    """On the logits: with no advantage for one stream its tokens' gradient is exactly zero."""
    base = random_inputs()
    advantages = base.advantages.masked_fill(base.stream == silent, 0.0)
    logits = torch.randn(5, 7, 11, dtype=torch.float64, requires_grad=True)
    inputs = replace(base, logprobs=logits.log_softmax(-1)[..., 0], advantages=advantages, ref_logprobs=None)
    LOSSES[name](inputs, LossConfig(eps=1e9, max_tokens=9)).loss.backward()
    assert logits.grad is not None
    assert logits.grad[base.stream == silent].eq(0).all()
    assert logits.grad[(base.stream == other) & base.mask].abs().sum(-1).gt(0).all()


@pytest.mark.parametrize("name", NAMES)
def test_all_losses_agree_in_direction_at_the_first_update(name):
    """At ratio 1 each is minus the policy gradient: positive advantages raise log-probabilities."""
    inputs = inputs_of(table([1.0, 1.0]), table([2.0, -1.0]))
    loss = LOSSES[name](inputs, LossConfig(max_tokens=2)).loss
    (gradient,) = torch.autograd.grad(loss, inputs.logprobs)
    assert gradient.tolist() == [[-1.0, 0.5]]


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_mask_gives_zero_and_no_metrics(name):
    inputs = replace(random_inputs(), mask=torch.zeros(5, 7, dtype=torch.bool))
    outputs = LOSSES[name](inputs, LossConfig(beta=0.1, max_tokens=9))
    assert outputs.loss.item() == 0
    assert outputs.metrics == {}


@pytest.mark.parametrize("name", NAMES)
def test_metrics_carry_no_gradient(name):
    metrics = LOSSES[name](random_inputs(), LossConfig(max_tokens=9)).metrics
    assert metrics
    assert not any(value.requires_grad for value in metrics.values())


def test_a_loss_is_found_by_name_or_path():
    assert find_loss("dr_grpo") is LOSSES["dr_grpo"]
    assert find_loss("learner.losses.grpo:grpo") is LOSSES["grpo"]
    with pytest.raises(ValueError, match=r"unknown loss 'gropo'; valid: grpo, dr_grpo, importance_sampling"):
        find_loss("gropo")
    with pytest.raises(ValueError, match=r"loss 'learner\.losses:nothing' cannot be loaded"):
        find_loss("learner.losses:nothing")
