from dataclasses import fields, replace
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from learner.losses import LOSSES, LossConfig, LossInputs, Totals, find_loss
from learner.losses.corrections import entropy_bonus, masked_importance, truncated_importance
from learner.losses.kl import kl_as_reward
from learner.update.config import LearnerConfig

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
        sampling_logprobs=logprobs.detach() - ratios.log(),
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


def test_dapo_by_hand():
    # 1.25 is within clip-higher's 1.28; a mean over the batch's five tokens, not over its two rows
    ratios = table([1.25, 1.5, 0.5, 1.0], [1.0, 9.0, 9.0, 9.0])
    mask = table([1, 1, 1, 1], [1, 0, 0, 0]).bool()
    inputs = inputs_of(ratios, table([1, 1, -1, 2], [-3, 5, 5, 5]), mask=mask)
    outputs = LOSSES["dapo"](inputs, LossConfig())
    assert outputs.loss.item() == pytest.approx((-1.25 - 1.28 + 0.8 - 2 + 3) / 5)
    assert outputs.metrics["clip_fraction"].item() == pytest.approx(2 / 5)
    symmetric = LOSSES["dapo"](inputs, LossConfig(eps_hi=0.2))
    assert symmetric.loss.item() == pytest.approx((-1.2 - 1.2 + 0.8 - 2 + 3) / 5)


def test_gspo_by_hand_has_a_ratio_for_each_stream_of_a_row():
    # generator sqrt(2 * 0.5) = 1, judge sqrt(1.5 * 1.5) = 1.5, clipped to 1.2 where its advantage is positive
    ratios = table([2.0, 0.5, 1.5, 1.5])
    stream = table([1, 1, 2, 2])
    outputs = LOSSES["gspo"](inputs_of(ratios, table([3, 3, 1, 1]), stream=stream), LossConfig())
    assert outputs.loss.item() == pytest.approx(-(3 + 3 + 1.2 + 1.2) / 4)
    assert outputs.metrics["clip_fraction"].item() == pytest.approx(1 / 2)
    assert outputs.metrics["ratio_max"].item() == pytest.approx(1.5)
    # one ratio for the whole row, (2 * 0.5 * 1.5 * 1.5)^(1/4) = 1.2247, would clip the generator too
    leaking = LOSSES["gspo"](inputs_of(ratios, table([3, 3, 1, 1])), LossConfig())
    assert leaking.loss.item() == pytest.approx(-(3 + 3 + 1 + 1) * 1.2 / 4)


def test_gspo_clips_by_the_geometric_mean_and_not_by_the_tokens():
    inputs = inputs_of(table([4.0, 0.25]), table([1.0, 1.0]))
    loss = LOSSES["gspo"](inputs, LossConfig()).loss
    assert loss.item() == pytest.approx(-1.0)
    (gradient,) = torch.autograd.grad(loss, inputs.logprobs)
    assert gradient.tolist() == [[pytest.approx(-0.5), pytest.approx(-0.5)]]
    (clipped,) = torch.autograd.grad(LOSSES["grpo"](inputs, LossConfig()).loss, inputs.logprobs)
    assert clipped.tolist() == [[0.0, pytest.approx(-0.125)]]


def test_gspo_is_the_papers_own_form_where_a_stream_shares_its_advantage():
    """min(s A, clip(s) A) with the gradient through s itself; eps so small that both sides clip somewhere."""
    base = random_inputs(seed=4)
    per_row = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs = replace(base, advantages=per_row.gather(1, base.stream))
    config = LossConfig(eps=0.05)
    total, sequences = torch.zeros((), dtype=torch.float64), 0
    for row in range(5):
        mask, tokens = inputs.mask[row], torch.zeros((), dtype=torch.float64)
        sequences += int(mask.any())
        for stream in (1, 2):
            own = mask & (inputs.stream[row] == stream)
            if own.any():
                s = (inputs.logprobs - inputs.old_logprobs)[row][own].mean().exp()
                a = per_row[row, stream]
                tokens = tokens - own.sum() * torch.minimum(s * a, s.clamp(0.95, 1.05) * a)
        total = total + tokens / mask.sum().clamp(min=1)
    expected = total / sequences
    loss = LOSSES["gspo"](inputs, config).loss
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    (got,) = torch.autograd.grad(loss, inputs.logprobs)
    (want,) = torch.autograd.grad(expected, inputs.logprobs)
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_cispo_by_hand_bounds_the_weight_and_keeps_the_gradient():
    # log-probabilities are -1.5; weights 1.2 (from 1.5), 0.1 and 3 tokens in the batch
    ratios = table([1.5, 0.1], [1.0, 9.0])
    mask = table([1, 1], [1, 0]).bool()
    inputs = inputs_of(ratios, table([1, -1], [2, 5]), mask=mask)
    outputs = LOSSES["cispo"](inputs, LossConfig())
    assert outputs.loss.item() == pytest.approx(1.5 * (1.2 - 0.1 + 2) / 3)
    assert outputs.metrics["clip_fraction"].item() == pytest.approx(1 / 3)
    (gradient,) = torch.autograd.grad(outputs.loss, inputs.logprobs)
    assert gradient.flatten().tolist() == pytest.approx([-1.2 / 3, 0.1 / 3, -2 / 3, 0])


def test_ppo_by_hand_bounds_what_a_bad_token_can_cost():
    # A = -1: 5 is bounded by 3, 2 is not; A = +1: 5 is clipped to 1.2 and never bounded below
    ratios = table([5.0, 2.0, 5.0, 0.5])
    inputs = inputs_of(ratios, table([-1, -1, 1, -1]))
    outputs = LOSSES["ppo"](inputs, LossConfig())
    assert outputs.loss.item() == pytest.approx((3 + 2 - 1.2 + 0.8) / 4)
    assert outputs.metrics["dual_clip_fraction"].item() == pytest.approx(1 / 4)
    (gradient,) = torch.autograd.grad(outputs.loss, inputs.logprobs)
    assert gradient.flatten().tolist() == pytest.approx([0, 2 / 4, 0, 0])
    single = LOSSES["dapo"](inputs, LossConfig(eps_hi=0.2))
    assert single.loss.item() == pytest.approx((5 + 2 - 1.2 + 0.8) / 4)


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


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("k1", [-log(2), log(2)]),
        ("k2", [log(2) ** 2 / 2, log(2) ** 2 / 2]),
        ("k3", [1 - log(2), log(2) - 0.5]),
    ],
)
def test_kl_estimators_by_hand_as_a_loss_and_as_a_reward(kind, values):
    """ref / policy is 2 and 0.5, so d = -log 2 and log 2; the old weights are the present ones."""
    inputs = inputs_of(table([1.0, 1.0]), table([0.25, 0.25]), ref_ratios=table([2.0, 0.5]))
    config = LossConfig(beta=0.1, kl=kind)
    assert LOSSES["grpo"](inputs, config).loss.item() == pytest.approx(-0.25 + 0.1 * sum(values) / 2)
    expected = [0.25 - 0.1 * value for value in values]
    assert kl_as_reward(inputs, config).flatten().tolist() == pytest.approx(expected)
    apart = replace(inputs, stream=table([1, 2]))
    shaped = kl_as_reward(apart, LossConfig(beta=0.1, beta_judge=0.0, kl=kind))
    assert shaped.flatten().tolist() == pytest.approx([expected[0], 0.25])


def test_kl_in_the_reward_is_of_the_old_weights_and_has_no_gradient():
    inputs = inputs_of(table([1.5, 1.0]), table([0.0, 0.0]), ref_ratios=table([1.0, 1.0]))
    shaped = kl_as_reward(inputs, LossConfig(beta=1.0, kl="k1"))
    assert shaped.flatten().tolist() == pytest.approx([log(1.5), 0.0])  # old is below lp = ref by log 1.5
    assert not shaped.requires_grad
    with pytest.raises(ValueError, match=r"beta=1\.0, beta_judge=1\.0, but ref_logprobs is None"):
        kl_as_reward(replace(inputs, ref_logprobs=None), LossConfig(beta=1.0))
    assert kl_as_reward(replace(inputs, ref_logprobs=None), LossConfig()) is inputs.advantages


def test_the_metric_is_k3_whatever_the_estimator():
    kinds = ("k1", "k2", "k3")
    means = {LOSSES["grpo"](random_inputs(), LossConfig(kl=k)).metrics["kl_mean"].item() for k in kinds}
    assert len(means) == 1


# DPPO ---------------------------------------------------------------------------------------------


def moved(now: Tensor, before: Tensor, advantages: Tensor) -> LossInputs:
    """Inputs of one stream with these probabilities of policy and sampler."""
    return replace(
        inputs_of(torch.ones_like(now), advantages),
        logprobs=now.log().requires_grad_(),
        sampling_logprobs=before.log(),
    )


def test_dppo_by_total_variation_by_hand():
    """Two go too far with their advantage, .5 up and .4 down; one goes back, two stay near, one tripled."""
    now = table([0.9, 0.5, 0.5, 0.003, 0.3])
    before = table([0.4, 0.9, 0.9, 0.001, 0.5])
    inputs = moved(now, before, table([1.0, -1.0, 1.0, 1.0, -1.0]))
    outputs = LOSSES["dppo_tv"](inputs, LossConfig(eps=0.2, eps_hi=0.3))
    (gradient,) = torch.autograd.grad(outputs.loss, inputs.logprobs)
    # -r A of the tokens that are kept, and of a fall of just .2 too
    assert gradient[0].tolist() == pytest.approx([0.0, 0.0, -(0.5 / 0.9) / 5, -3 / 5, 0.6 / 5])
    assert outputs.metrics["clip_fraction"].item() == pytest.approx(2 / 5)
    tighter = LOSSES["dppo_tv"](inputs, LossConfig(eps=0.19, eps_hi=0.3))
    assert tighter.metrics["clip_fraction"].item() == pytest.approx(3 / 5)


def test_dppo_by_kl_by_hand():
    """From .99 to .75: .99 log(.99 / .75) + .01 log(.01 / .25) = .243; from .5 to .6: .0204."""
    inputs = moved(table([0.75, 0.75, 0.6]), table([0.99, 0.99, 0.5]), table([-1.0, 1.0, 1.0]))
    for eps, left_out in ((0.25, 0), (0.24, 1), (0.0205, 1), (0.0203, 2)):
        outputs = LOSSES["dppo_kl"](inputs, LossConfig(eps=eps))
        assert outputs.metrics["clip_fraction"].item() == pytest.approx(left_out / 3)


def test_dppo_needs_no_second_weight_against_the_sampler():
    with pytest.raises(ValueError, match=r"tis_cap = 2.0"):
        LearnerConfig(loss="dppo_tv", tis_cap=2.0)
    with pytest.raises(ValueError, match=r"sequence_mask.* tis_cap, which is 0"):
        LearnerConfig(tis="sequence_mask", tis_cap=0)


# Corrections --------------------------------------------------------------------------------------


def test_a_sequence_whose_weight_is_too_large_is_left_out_by_stream():
    """Row 0: the solution's tokens weigh 2 * 1.25 = 2.5, its judge's .5 * 8 = 4; row 1: .25 and 1."""
    inputs = replace(
        inputs_of(
            torch.ones(2, 4, dtype=torch.float64),
            table([1.0, -1.0, 3.0, 2.0], [4.0, 4.0, 4.0, 4.0]),
            mask=table([1, 1, 1, 1], [1, 0, 0, 1]).bool(),
            stream=torch.tensor([[1, 1, 2, 2], [1, 1, 2, 2]]),
        ),
        old_logprobs=torch.full((2, 4), -2.0, dtype=torch.float64),
        sampling_logprobs=-2 - table([2.0, 1.25, 0.5, 8.0], [0.25, 99.0, 99.0, 1.0]).log(),
    )
    advantages, metrics = masked_importance(inputs, 3.0)
    assert advantages[0].tolist() == pytest.approx([2.5, -2.5, 0.0, 0.0])
    assert [advantages[1, 0].item(), advantages[1, 3].item()] == pytest.approx([1.0, 4.0])
    assert metrics["tis_truncated"].item() == pytest.approx(2 / 6)
    assert metrics["tis_max"].item() == pytest.approx(4)
    assert metrics["tis_mean"].item() == pytest.approx((2.5 * 2 + 4 * 2 + 0.25 + 1) / 6)


def test_truncated_importance_weights_by_hand():
    # trainer / sampler 0.5, 2, 8, cap 2; the last token does not count
    ones = table([1.0, 1.0, 1.0, 1.0])
    inputs = replace(
        inputs_of(ones, table([1.0, -1.0, 3.0, 7.0]), mask=table([1, 1, 1, 0]).bool()),
        old_logprobs=table([-2.0, -2.0, -2.0, float("inf")]),
        sampling_logprobs=-2 - table([0.5, 2.0, 8.0, 1.0]).log(),
    )
    advantages, metrics = truncated_importance(inputs, 2.0)
    assert advantages[0, :3].tolist() == pytest.approx([0.5, -2.0, 6.0])
    assert metrics["tis_mean"].item() == pytest.approx(10.5 / 3)
    assert metrics["tis_max"].item() == pytest.approx(8)
    assert metrics["tis_truncated"].item() == pytest.approx(1 / 3)


def test_the_entropy_bonus_is_the_batchs_mean_entropy_by_hand():
    entropy = torch.tensor([0.5, 1.5], requires_grad=True)
    loss = entropy_bonus(entropy, 0.1, Totals(rows=3, sequences=2, tokens=8))
    assert loss.item() == pytest.approx(-0.1 * 2.0 / 8)
    loss.backward()
    assert entropy.grad is not None
    assert entropy.grad.tolist() == pytest.approx([-0.1 / 8] * 2)
    assert entropy_bonus(torch.zeros(0), 0.1, Totals(0, 0, 0)).item() == 0


# Against a reference in numpy, one token at a time ------------------------------------------------


def reference_loss(
    name: str, inputs: LossInputs, config: LossConfig, *, constants: LossInputs | None = None
) -> float:
    """The loss at ``inputs``; what a loss holds constant (sg) is read off ``constants``."""
    own, held = table_of(inputs), table_of(constants or inputs)
    rows, width = own["mask"].shape
    sequences = []
    for i in range(rows):
        places = [t for t in range(width) if own["mask"][i, t]]
        tokens = [
            -reference_objective(name, own, held, i, t, config) + reference_kl(own, i, t, config)
            for t in places
        ]
        if tokens:
            sequences.append(tokens)
    if name == "dr_grpo":
        assert config.max_tokens
        return sum(map(sum, sequences)) / (rows * config.max_tokens)
    if name in ("dapo", "cispo", "ppo", "dppo_tv", "dppo_kl"):
        return sum(map(sum, sequences)) / sum(map(len, sequences))
    return sum(sum(tokens) / len(tokens) for tokens in sequences) / len(sequences)


def table_of(inputs: LossInputs) -> dict[str, np.ndarray]:
    names = ("logprobs", "old_logprobs", "sampling_logprobs", "ref_logprobs", "advantages", "mask", "stream")
    return {name: np.asarray(getattr(inputs, name).detach(), np.float64) for name in names}


def reference_objective(name: str, own, held, i: int, t: int, config: LossConfig) -> float:
    low, high = 1 - config.eps, 1 + (config.eps if config.eps_hi is None else config.eps_hi)
    if name == "dapo" and config.eps_hi is None:
        high = 1.28
    advantage = own["advantages"][i, t]
    ratio = exp(own["logprobs"][i, t] - own["old_logprobs"][i, t])
    if name.startswith("dppo"):
        p, m = exp(held["logprobs"][i, t]), exp(held["sampling_logprobs"][i, t])
        kl = m * log(m / p) + (1 - m) * log((1 - m) / (1 - p))
        away = (p - m) * (1 if advantage > 0 else -1)
        gone = away if name == "dppo_tv" else kl * (away > 0)
        bound = high - 1 if advantage > 0 else config.eps
        return 0.0 if gone > bound else min(p / m, 20) * advantage * own["logprobs"][i, t]
    if name == "cispo":
        held_ratio = exp(held["logprobs"][i, t] - held["old_logprobs"][i, t])
        return min(held_ratio, high) * advantage * own["logprobs"][i, t]
    if name == "gspo":
        same = [
            u
            for u in range(own["mask"].shape[1])
            if own["mask"][i, u] and own["stream"][i, u] == own["stream"][i, t]
        ]
        mean = sum(held["logprobs"][i, u] - held["old_logprobs"][i, u] for u in same) / len(same)
        ratio = exp(mean) * exp(own["logprobs"][i, t] - held["logprobs"][i, t])
    if name == "importance_sampling":
        return ratio * advantage
    clipped = min(ratio * advantage, min(max(ratio, low), high) * advantage)
    if name == "ppo" and advantage < 0:
        return max(clipped, config.dual_clip * advantage)
    return clipped


def reference_kl(own, i: int, t: int, config: LossConfig) -> float:
    judge = own["stream"][i, t] == 2 and config.beta_judge is not None
    beta = config.beta_judge if judge and config.beta_judge is not None else config.beta
    d = own["logprobs"][i, t] - own["ref_logprobs"][i, t]
    return beta * {"k1": d, "k2": d * d / 2, "k3": exp(-d) - 1 + d}[config.kl]


CONFIGS = [
    LossConfig(max_tokens=7),
    LossConfig(eps=0.1, eps_hi=0.5, beta=0.3, max_tokens=11),
    LossConfig(beta=0.1, beta_judge=0.7, max_tokens=5),
    LossConfig(eps=0.05, eps_hi=0.1, beta=0.2, kl="k2", max_tokens=5, dual_clip=1.2),
    LossConfig(beta=0.2, kl="k1", max_tokens=5, dual_clip=1.05),
    LossConfig(eps=0.002, eps_hi=0.01, max_tokens=5),
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
    """Central differences of the reference by each log-probability; what is held constant stays."""
    base = inputs.logprobs.detach()
    result = np.zeros(tuple(base.shape))
    for place in np.ndindex(*base.shape):
        nudge = torch.zeros_like(base)
        nudge[place] = step
        up = reference_loss(name, replace(inputs, logprobs=base + nudge), config, constants=inputs)
        down = reference_loss(name, replace(inputs, logprobs=base - nudge), config, constants=inputs)
        result[place] = (up - down) / (2 * step)
    return result


# Laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("normalise", ["joint", "stream"])
@pytest.mark.parametrize("cuts", [(0, 1, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)])
def test_micro_batches_add_up_to_the_whole_batch(name, normalise, cuts):
    config = LossConfig(beta=0.2, max_tokens=9, normalise=normalise)
    whole = random_inputs()
    loss = LOSSES[name](whole, config).loss
    (gradient,) = torch.autograd.grad(loss, whole.logprobs)
    cut = [
        LossInputs(*(getattr(whole, field)[start:end] for field in LossInputs.__slots__))
        for start, end in pairwise(cuts)
    ]
    totals = Totals.sum(Totals.of(part.mask, part.stream) for part in cut)
    assert totals == Totals.of(whole.mask, whole.stream)
    parts = [LOSSES[name](part, replace(config, totals=totals)).loss for part in cut]
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
    unbounded = LossConfig(eps=1e9, eps_hi=1e9, dual_clip=1e9, max_tokens=9)
    LOSSES[name](inputs, unbounded).loss.backward()
    assert logits.grad is not None
    assert logits.grad[base.stream == silent].eq(0).all()
    assert logits.grad[(base.stream == other) & base.mask].abs().sum(-1).gt(0).all()


BY_STREAM = {  # of each token's A = 1: solutions of 3 and 1 tokens, a judgment of 2 in the first row
    "joint": {
        "sequence": [[1 / 10] * 5, [1 / 2, 0, 0, 0, 0]],
        "token": [[1 / 6] * 5, [1 / 6, 0, 0, 0, 0]],
        "constant": [[1 / 20] * 5, [1 / 20, 0, 0, 0, 0]],
    },
    "stream": {
        "sequence": [[1 / 6] * 3 + [1 / 2] * 2, [1 / 2, 0, 0, 0, 0]],
        "token": [[1 / 4] * 3 + [1 / 2] * 2, [1 / 4, 0, 0, 0, 0]],
        "constant": [[1 / 20] * 3 + [1 / 10] * 2, [1 / 20, 0, 0, 0, 0]],
    },
}
MEANS = {"dr_grpo": "constant"} | dict.fromkeys(("dapo", "cispo", "ppo", "dppo_tv", "dppo_kl"), "token")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("normalise", ["joint", "stream"])
def test_what_a_token_weighs_by_hand(name, normalise):
    """At ratio 1 the gradient of a token is minus its weight; dr_grpo divides by 10 tokens a row."""
    ones = torch.ones(2, 5, dtype=torch.float64)
    mask, stream = table([1, 1, 1, 1, 1], [1, 0, 0, 0, 0]), table([1, 1, 1, 2, 2], [1, 0, 0, 0, 0])
    inputs = inputs_of(ones, ones, mask=mask, stream=stream)
    loss = LOSSES[name](inputs, LossConfig(max_tokens=10, normalise=normalise)).loss
    (gradient,) = torch.autograd.grad(loss, inputs.logprobs)
    wanted = BY_STREAM[normalise][MEANS.get(name, "sequence")]
    assert (-gradient).flatten().tolist() == pytest.approx([*wanted[0], *wanted[1]], abs=1e-12)


def judged(solution: int, *, seed: int = 0) -> LossInputs:
    """Two rows, each a solution and four judge tokens that are the same whatever the solution's length."""
    own, shared = random_inputs(2, solution, seed=seed + 1), random_inputs(2, 4, seed=seed)
    parts = {f: torch.cat([getattr(own, f), getattr(shared, f)], 1) for f in LossInputs.__slots__}
    stream = torch.tensor([[1] * solution + [2] * 4] * 2)
    logprobs = parts.pop("logprobs").detach().requires_grad_()
    everywhere = torch.ones_like(stream, dtype=torch.bool)
    return replace(LossInputs(logprobs, **parts), stream=stream, mask=everywhere)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [1, 40])
def test_with_denominators_of_its_own_a_judges_gradient_does_not_see_the_solutions_length(name, length):
    def judges_gradient(solution: int, normalise: str) -> Tensor:
        inputs = judged(solution)
        config = LossConfig(beta=0.2, max_tokens=99, normalise=normalise)
        return torch.autograd.grad(LOSSES[name](inputs, config).loss, inputs.logprobs)[0][:, solution:]

    torch.testing.assert_close(judges_gradient(length, "stream"), judges_gradient(8, "stream"))
    shrinks = name != "dr_grpo"  # which divides by a constant in any case
    assert torch.allclose(judges_gradient(length, "joint"), judges_gradient(8, "joint")) != shrinks


@pytest.mark.parametrize("name", NAMES)
def test_one_stream_alone_has_the_same_loss_with_denominators_of_its_own(name):
    inputs = random_inputs()
    inputs = replace(inputs, stream=torch.full_like(inputs.stream, 2))
    config = LossConfig(beta=0.2, max_tokens=9)
    joint, apart = (LOSSES[name](inputs, replace(config, normalise=n)).loss for n in ("joint", "stream"))
    if name == "dr_grpo":  # joint counts the row without a token, too
        apart = apart * 4 / 5
    assert apart.item() == pytest.approx(joint.item(), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("normalise", ["joint", "stream"])
def test_an_empty_mask_gives_zero_and_no_number_as_a_metric(name, normalise):
    inputs = replace(random_inputs(), mask=torch.zeros(5, 7, dtype=torch.bool))
    outputs = LOSSES[name](inputs, LossConfig(beta=0.1, max_tokens=9, normalise=normalise))
    assert outputs.loss.item() == 0
    assert not any(value.isfinite() for value in outputs.metrics.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("normalise", ["joint", "stream"])
def test_no_gpu_is_waited_for(name, normalise):
    """A tensor without data refuses every operation that would have to look at it."""
    inputs, fakes = random_inputs(), FakeTensorMode()
    totals = Totals.of(inputs.mask, inputs.stream)
    config = LossConfig(beta=0.1, max_tokens=9, normalise=normalise, totals=totals)
    fake = LossInputs(
        **{field.name: fakes.from_tensor(getattr(inputs, field.name)) for field in fields(inputs)}
    )
    with fakes:
        outputs = LOSSES[name](fake, config)
        truncated_importance(fake, 2.0)
        masked_importance(fake, 2.0)
        kl_as_reward(fake, config)
        assert outputs.metrics
        with pytest.raises(DataDependentOutputException):
            bool(outputs.loss > 0)


@pytest.mark.parametrize("name", NAMES)
def test_metrics_carry_no_gradient(name):
    metrics = LOSSES[name](random_inputs(), LossConfig(max_tokens=9)).metrics
    assert metrics
    assert not any(value.requires_grad for value in metrics.values())


def test_a_loss_is_found_by_name_or_path():
    assert find_loss("dr_grpo") is LOSSES["dr_grpo"]
    assert find_loss("learner.losses.grpo:grpo") is LOSSES["grpo"]
    with pytest.raises(ValueError, match=r"unknown loss 'gropo'; valid: grpo, dr_grpo, dapo, gspo, "):
        find_loss("gropo")
    for path, complaint in (
        ("learner.losses:nothing", "the module 'learner.losses' has no 'nothing'"),
        ("learner.losses:LOSSES", "'learner.losses:LOSSES' is not a function, but LoadedTable"),
        ("learner.losses:find_loss", "'learner.losses:find_loss' does not take what it is called with"),
    ):
        with pytest.raises(ValueError, match=f"learner.loss: {complaint}"):
            find_loss(path)
