import copy
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from learner import LearnerConfig, Row
from learner.losses import LOSSES, LossConfig, LossInputs, LossOutputs
from learner.update import head as head_module
from learner.update.batches import collate, micro_batches
from learner.update.config import check_settings
from learner.update.forward import action_logprobs
from learner.update.head import entropy_of, head_logprobs
from learner.update.learner import Learner
from learner.update.optimizer import adam_eps, adamw, lr_factor, settings_of, update_per_lr
from learner.update.tally import Tally, tally_mismatch

from .conftest import VOCABULARY, config_of, gpt2, qwen3, random_rows, row_of


def lora_of(model: nn.Module) -> nn.Module:
    return get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_alpha=8))


def with_sampler(rows: Sequence[Row], model: nn.Module) -> list[Row]:
    """The rows with the log-probabilities a sampler of these weights would have given."""
    with torch.no_grad():
        tables = [action_logprobs(model, collate([row]))[0][0].numpy() for row in rows]
    return [replace(row, sampling_logprobs=table) for row, table in zip(rows, tables, strict=True)]


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def trained(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}


def test_log_probabilities_are_those_of_the_whole_model_at_each_rows_temperature():
    model, rows = qwen3(), random_rows()
    got = action_logprobs(model, collate(rows))[0]
    for line, row in zip(got, rows, strict=True):
        logits = model(input_ids=torch.tensor(row.input_ids)[None]).logits[0, :-1] / row.temperature
        expected = logits.log_softmax(-1).gather(1, torch.tensor(row.input_ids[1:])[:, None])[:, 0]
        expected = expected.where(torch.tensor(row.action_mask[1:]), torch.zeros(()))
        torch.testing.assert_close(line[1 : len(row.input_ids)], expected, atol=1e-5, rtol=1e-5)
        assert line[len(row.input_ids) :].eq(0).all()
        assert line[: 1 + int(np.argmax(row.action_mask)) - 1].eq(0).all()


def test_entropy_is_that_of_the_tempered_distribution():
    model, row = qwen3(), replace(random_rows(1)[0], temperature=0.6)
    entropy = action_logprobs(model, collate([row]))[1]
    probabilities = (model(input_ids=torch.tensor(row.input_ids)[None]).logits[0, :-1] / 0.6).softmax(-1)
    expected = -(probabilities * probabilities.log()).sum(-1)[torch.tensor(row.action_mask[1:])]
    torch.testing.assert_close(entropy, expected.detach(), atol=1e-5, rtol=1e-5)


def test_a_completion_of_token_zero_keeps_all_its_log_probabilities():
    """In Qwen3 token 0 is "!": a learner that takes it for padding loses these tokens."""
    model = qwen3()
    loud = row_of([3, 4], [0, 0, 0], [1, 1, 1])
    batch = collate([loud, row_of([3, 4], [7, 8, 9, 10, 11, 12], [1] * 6)], pad_id=0)
    assert batch.mask.sum(dim=1).tolist() == [3, 6]
    logprobs = action_logprobs(model, batch)[0]
    assert logprobs[0, 2:5].lt(0).all()
    torch.testing.assert_close(logprobs[0, :5], action_logprobs(model, collate([loud]))[0][0])


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.bfloat16, 2e-2)])
def test_a_large_head_is_run_in_tiles_with_the_same_result(dtype, tolerance, entropy_gradient, monkeypatch):
    """With as many tokens as fill some tiles and a part of one."""
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator)
    features, weight, weights = draw(19, 8).to(dtype), draw(VOCABULARY, 8), draw(2, 19)
    targets = torch.randint(VOCABULARY, (19,), generator=generator)
    temperature = torch.linspace(0.5, 1.5, 19)

    def results():
        read, head = features.clone().requires_grad_(), nn.Linear(8, VOCABULARY, bias=False, dtype=dtype)
        head.weight.data.copy_(weight)
        given = read, targets, temperature
        logprobs, entropy = head_logprobs(head, *given, entropy_gradient=entropy_gradient)
        assert entropy.requires_grad == entropy_gradient
        (weights[0] * logprobs + weights[1] * entropy).sum().backward()
        return logprobs.detach(), entropy.detach(), read.grad, head.weight.grad

    whole = results()
    monkeypatch.setitem(head_module.TILE, "cpu", 7 * VOCABULARY)
    for tiled, expected in zip(results(), whole, strict=True):
        torch.testing.assert_close(tiled, expected, atol=tolerance, rtol=tolerance)


def test_a_row_whose_first_token_is_an_action_is_refused():
    with pytest.raises(ValueError, match=r"group 'p'.*first token cannot be an action"):
        collate([row_of([], [1, 2], [1, 1])])


def test_micro_batches_keep_to_their_size_and_hold_every_row_once():
    rows = random_rows(40)
    batches = micro_batches(rows, 64)
    assert all(batch.input_ids.numel() <= 64 for batch in batches)
    assert sum(len(batch.mask) for batch in batches) == 40
    assert sum(batch.length for batch in batches) == sum(len(row.input_ids) for row in rows)
    assert [batch.input_ids.shape for batch in micro_batches(rows[:1], 1)] == [(1, len(rows[0].input_ids))]


# Gradients through the model ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "dapo", "ppo", "importance_sampling"])
def test_gradient_of_the_weights_by_finite_differences(name):
    """In float64, along random directions; old weights differ from the current, so that ratios are not 1.

    Losses whose value is not that of their gradient have theirs by log-probability in test_losses.py.
    """
    model, reference = gpt2(0), gpt2(1)
    batch = collate(random_rows(6))
    with torch.no_grad():
        old = action_logprobs(model, batch)[0] + 0.15 * torch.randn(batch.mask.shape).double()
        others = old, batch.sampling_logprobs, action_logprobs(reference, batch)[0]
    config = LossConfig(beta=0.05, beta_judge=0.2, max_tokens=12)

    def loss() -> torch.Tensor:
        logprobs = action_logprobs(model, batch)[0]
        inputs = LossInputs(logprobs, *others, batch.advantages, batch.mask, batch.stream)
        return LOSSES[name](inputs, config).loss

    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss(), parameters)
    for _ in range(4):
        direction = [torch.randn_like(parameter) for parameter in parameters]
        slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
        assert difference(loss, parameters, direction) == pytest.approx(slope, rel=1e-5, abs=1e-9)


@torch.no_grad()
def difference(loss, parameters, direction, step=1e-6) -> float:
    values = []
    for sign in (1, -2):
        for parameter, change in zip(parameters, direction, strict=True):
            parameter += sign * step * change
        values.append(float(loss()))
    for parameter, change in zip(parameters, direction, strict=True):
        parameter += step * change
    return (values[0] - values[1]) / (2 * step)


# Steps --------------------------------------------------------------------------------------------


def test_one_step_raises_an_advantaged_token_and_lowers_a_disadvantaged_one():
    model = qwen3()
    rows = with_sampler([row_of([1, 2, 3], [4, 5], [1, 0]), row_of([1, 2, 3], [9, 5], [-1, 0])], model)
    before = action_logprobs(model, collate(rows))[0][:, 3]
    metrics = Learner(model, config_of()).step(rows)
    after = action_logprobs(model, collate(rows))[0][:, 3]
    assert after[0] > before[0]
    assert after[1] < before[1]
    assert metrics["updates"] == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:learner.loss = .* has the gradient of")
@pytest.mark.parametrize("normalise", ["joint", "stream"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_micro_batches_give_the_weights_of_the_whole_batch(loss, normalise):
    results = []
    for tokens in (10_000, 60, 1):
        model = gpt2()
        # plain gradient descent in effect: a large eps keeps Adam from blowing up rounding
        config = config_of(
            loss=loss, normalise=normalise, micro_batch_tokens=tokens, adam_eps=1.0, beta=0.1, lr=0.1
        )
        learner = Learner(model, config, reference=gpt2(1))
        metrics = learner.step(random_rows())
        results.append((weights(model), metrics))
    for others, metrics in results[1:]:
        for got, expected in zip(others, results[0][0], strict=True):
            torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)
        assert metrics["loss"] == pytest.approx(results[0][1]["loss"], rel=1e-10)
        assert metrics["grad_norm"] == pytest.approx(results[0][1]["grad_norm"], rel=1e-4)
        assert metrics["kl_mean"] == pytest.approx(results[0][1]["kl_mean"], rel=1e-4)
        assert metrics["entropy_mean"] == pytest.approx(results[0][1]["entropy_mean"], rel=1e-4)


def test_the_same_rows_twice_give_the_same_bits():
    first, second = qwen3(), qwen3()
    config = config_of(minibatches=3, epochs=2)
    assert Learner(first, config).step(random_rows()) == Learner(second, config).step(random_rows())
    assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


def test_on_policy_the_first_pass_agrees_with_the_sampler_and_ratios_are_one():
    model = qwen3()
    metrics = Learner(model, config_of()).step(with_sampler(random_rows(), model))
    assert metrics["mismatch_max"] < 1e-5
    assert abs(metrics["mismatch_kl"]) < 1e-5
    assert (metrics["ratio_mean"], metrics["ratio_max"], metrics["clip_fraction"]) == (1.0, 1.0, 0.0)


def test_the_mismatch_is_told_by_position():
    rows = [row_of([1] * 510, [2] * 4, [1] * 4), row_of([1] * 2100, [2], [1])]
    sampled = torch.full((2, 2101), -3.0)
    sampled[0, 510:514] += torch.tensor([0.1, 0.3, -0.5, 0.7])
    sampled[1, 2100] += 0.9
    tally = Tally()
    tally_mismatch(collate(rows), sampled, tally)
    found = {name: value for name, value in tally.result().items() if "from" in name}
    assert found == pytest.approx(
        {"mismatch_from_0": 0.2, "mismatch_from_512": 0.6, "mismatch_from_2048": 0.9}, abs=1e-6
    )


def test_the_mismatch_is_counted_without_waiting_for_a_gpu():
    """A tensor without data refuses every operation that would have to look at it."""
    batch, fakes = collate(random_rows()), FakeTensorMode()
    logprobs = batch.sampling_logprobs + 0.1
    tensors = {
        "mask": batch.mask,
        "sampling_logprobs": batch.sampling_logprobs,
        "predictors": batch.predictors,
    }
    fake = replace(batch, **{name: fakes.from_tensor(tensor) for name, tensor in tensors.items()})
    with fakes:
        tally_mismatch(fake, fakes.from_tensor(logprobs), Tally())


def test_ratios_of_later_minibatches_start_from_the_weights_before_the_first_update():
    seen: list[LossInputs] = []

    def spy(inputs: LossInputs, config: LossConfig) -> LossOutputs:
        seen.append(inputs)
        return LOSSES["grpo"](inputs, config)

    model = qwen3()
    rows = with_sampler(random_rows(), model)
    learner = Learner(model, config_of(minibatches=2, epochs=2, lr=1e-2))
    learner._loss = spy
    metrics = learner.step(rows)
    assert metrics["updates"] == 4
    assert metrics["mismatch_max"] < 1e-5, "both minibatches were compared before any update"
    before, drifted = (
        max(abs(token.trainer - token.other) for token in learner.worst.of(against))
        for against in ("sampler_before", "sampler")
    )
    assert before == pytest.approx(metrics["mismatch_max"])
    assert drifted > 100 * before, "updates moved the tokens away from the sampler"
    for inputs in seen:
        mask = inputs.mask
        torch.testing.assert_close(
            inputs.old_logprobs[mask], inputs.sampling_logprobs[mask], atol=1e-5, rtol=0
        )
    first, *later = [(i.logprobs - i.old_logprobs).abs().max().item() for i in seen]
    assert first == 0
    assert min(later) > 1e-3


def test_minibatches_share_the_rows_few_rows_make_fewer_and_none_change_nothing():
    learner = Learner(qwen3(), config_of(minibatches=4))
    assert learner.step(random_rows(10))["updates"] == 4
    assert learner.step(random_rows(3))["updates"] == 3
    before = weights(learner.model)
    metrics = learner.step([])
    assert (metrics["updates"], metrics["rows"], learner.steps) == (0, 0, 3)
    assert all(map(torch.equal, before, weights(learner.model)))


def test_a_gradient_that_is_not_finite_is_left_out_and_counted():
    model = qwen3()
    before = weights(model)
    rows = [row_of([1, 2], [3, 4], [float("nan"), 1.0])]
    learner = Learner(model, config_of())
    metrics = learner.step(rows)
    assert (metrics["updates"], metrics["skipped_updates"]) == (0, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))
    assert learner.step(random_rows())["updates"] == 1


def test_gradients_are_clipped_to_the_norm():
    model = qwen3()
    rows = [row_of([1, 2], [3, 4], [100.0, 100.0])]
    metrics = Learner(model, config_of(max_grad_norm=0.5)).step(rows)
    assert metrics["grad_norm"] > 0.5
    assert metrics["grad_clipped"] == 1


# The reference ------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", [False, True])
def test_a_model_is_held_near_its_start_which_is_a_copy_or_the_model_with_its_adapter_off(adapter):
    changes = {"beta_judge": 0.1, "lr": 5e-2} if adapter else {"beta": 0.1, "lr": 1e-2}
    learner = Learner(lora_of(qwen3()) if adapter else qwen3(), config_of(**changes))
    assert (learner.reference.module is None) == adapter
    assert learner.step(random_rows())["kl_mean"] == pytest.approx(0, abs=1e-6)
    assert learner.step(random_rows())["kl_mean"] > 1e-4
    batch = collate(random_rows())
    with learner.reference.model() as module:
        reference = action_logprobs(module, batch)[0]
    torch.testing.assert_close(reference, action_logprobs(qwen3(), batch)[0], atol=1e-5, rtol=1e-5)


def test_without_beta_there_is_no_copy():
    learner = Learner(qwen3(), config_of())
    assert learner.reference is None
    assert "kl_mean" not in learner.step(random_rows())


@pytest.mark.parametrize("adapter", [False, True])
def test_a_refreshed_reference_is_the_model_of_that_step(adapter: bool):
    model = lora_of(qwen3()) if adapter else qwen3()
    learner = Learner(model, config_of(beta=0.1, lr=1e-2, reference_every=2))
    steps = [learner.step(random_rows()) for _ in range(2)]
    at_refresh = trained(model)
    steps += [learner.step(random_rows()) for _ in range(2)]
    assert [metrics["reference_step"] for metrics in steps] == [0, 0, 2, 2]
    assert [metrics["kl_mean"] > 1e-6 for metrics in steps] == [False, True, False, True]
    present = trained(model)
    assert learner.reference is not None
    with learner.reference.model() as module:
        held = [dict(module.named_parameters())[name].clone() for name in at_refresh]
    assert all(map(torch.equal, held, at_refresh.values()))
    assert all(map(torch.equal, trained(model).values(), present.values()))


@pytest.mark.parametrize("adapter", [False, True])
def test_a_resumed_run_has_the_refreshed_reference(adapter: bool):
    def learner_of() -> Learner:
        model = lora_of(qwen3()) if adapter else qwen3()
        return Learner(model, config_of(beta=0.1, lr=1e-2, reference_every=2))

    whole = learner_of()
    for _ in range(3):
        whole.step(random_rows())
    saved = copy.deepcopy((whole.model.state_dict(), whole.state_dict()))
    resumed = learner_of()
    resumed.model.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert resumed.step(random_rows()) == whole.step(random_rows())
    assert all(map(torch.equal, weights(resumed.model), weights(whole.model)))


# Schedule, state, settings ------------------------------------------------------------------------


def test_learning_rates_by_hand():
    def factors(schedule, total, steps):
        return [lr_factor(step, warmup=2, schedule=schedule, total=total) for step in steps]

    assert factors("constant", None, range(4)) == [0.5, 1.0, 1.0, 1.0]
    assert factors("linear", 6, [2, 4, 5, 6, 9]) == [1.0, 0.5, 0.25, 0.0, 0.0]
    assert factors("cosine", 6, [2, 4, 6]) == pytest.approx([1.0, 0.5, 0.0])
    assert factors("cosine", 6, [3])[0] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert lr_factor(0, warmup=0, schedule="linear", total=4) == 1.0


def test_a_restored_learner_goes_on_bit_for_bit():
    config = config_of(warmup_steps=3, minibatches=2)
    straight, resumed = Learner(qwen3(), config), Learner(qwen3(5), config)
    straight.step(random_rows(seed=1))
    straight.skip()
    resumed.model.load_state_dict(copy.deepcopy(straight.model.state_dict()))
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert (resumed.steps, resumed.bad_steps) == (2, 1)
    assert straight.step(random_rows(seed=2)) == resumed.step(random_rows(seed=2))
    assert all(map(torch.equal, weights(straight.model), weights(resumed.model)))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"loss": "dr_grpo", "max_tokens": None}, r"learner\.max_tokens"),
        ({"schedule": "cosine"}, r"learner\.schedule"),
        ({"loss": "gropo"}, "unknown loss 'gropo'"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"reference_every": 2}, "reference_every"),
        ({"tis_cap": 2.0, "old_logprobs": "sampling"}, "tis_cap"),
    ],
)
def test_impossible_settings_are_named(changes, key):
    with pytest.raises(ValueError, match=key):
        check_settings(config_of(**changes), None)


# Corrections --------------------------------------------------------------------------------------


def spied(learner: Learner) -> list[tuple[LossInputs, LossConfig]]:
    """Have the learner's loss note what it is given."""
    seen: list[tuple[LossInputs, LossConfig]] = []
    loss = learner._loss

    def spy(inputs: LossInputs, config: LossConfig) -> LossOutputs:
        seen.append((inputs, config))
        return loss(inputs, config)

    learner._loss = spy
    return seen


def test_the_gradient_of_the_entropy_by_finite_differences():
    model, batch = gpt2(), collate(random_rows(4))

    def total() -> torch.Tensor:
        return action_logprobs(model, batch, entropy_gradient=True)[1].sum()

    parameters = list(model.parameters())
    gradients = torch.autograd.grad(total(), parameters)
    direction = [torch.randn_like(parameter) for parameter in parameters]
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    assert difference(total, parameters, direction) == pytest.approx(slope, rel=1e-5)
    assert not action_logprobs(model, batch)[1].requires_grad


def test_an_entropy_of_nearly_certain_tokens_has_a_finite_gradient():
    logits = torch.tensor([[0.0, -500.0, float("-inf")]], requires_grad=True)
    entropy = entropy_of(logits.log_softmax(-1))
    entropy.sum().backward()
    assert entropy.item() == pytest.approx(0)
    assert logits.grad is not None
    assert logits.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_kl_in_the_reward_is_taken_from_the_advantages_and_not_added_to_the_loss():
    learner = Learner(
        qwen3(), config_of(beta=0.5, beta_judge=2.0, kl="k1", kl_in="reward"), reference=qwen3(1)
    )
    seen = spied(learner)
    metrics = learner.step(random_rows())
    (inputs, config), *others = seen
    assert not others
    assert (config.beta, config.beta_judge) == (0.0, 0.0)
    batch = collate(random_rows())
    k1 = action_logprobs(qwen3(), batch)[0] - action_logprobs(qwen3(1), batch)[0]
    expected = batch.advantages - torch.where(batch.stream == 2, 2.0, 0.5) * k1
    assert sorted(inputs.advantages[inputs.mask].tolist()) == pytest.approx(
        sorted(expected[batch.mask].tolist()), abs=1e-4
    )
    assert metrics["kl_mean"] > 0


def test_truncated_importance_weights_reach_the_loss_and_the_metrics():
    model = qwen3()
    rows = with_sampler(random_rows(), model)
    exact = Learner(qwen3(), config_of(tis_cap=2.0)).step(rows)
    assert exact["tis_mean"] == pytest.approx(1, abs=1e-5)
    assert exact["tis_truncated"] == 0
    shifted = [replace(row, sampling_logprobs=row.sampling_logprobs - np.float32(np.log(4))) for row in rows]
    learner = Learner(qwen3(), config_of(tis_cap=2.0))
    seen = spied(learner)
    metrics = learner.step(shifted)
    assert metrics["tis_mean"] == pytest.approx(4, rel=1e-4)
    assert metrics["tis_truncated"] == 1
    advantages = seen[0][0].advantages[seen[0][0].mask].tolist()
    doubled = [2 * float(a) for row in rows for a in row.advantages[row.action_mask]]
    assert sorted(advantages) == pytest.approx(sorted(doubled), rel=1e-5)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"eps": 0.1, "eps_hi": 0.28}, r"learner\.eps = 0\.1 .*; learner\.eps_hi = 0\.28 does nothing"),
        ({"loss": "cispo"}, r'learner\.loss = "cispo" has the gradient of dapo'),
        ({"adam_eps": 1e-7, "warmup_steps": 0}, r"learner\.adam_eps=1e-07 without warm-up"),
        ({"beta": 0.1, "kl": "k1"}, r'learner\.kl="k1" as a loss has no effect'),
        ({"tis": "sequence_mask"}, r'learner\.tis = "sequence_mask" .* is 0 .*; set learner\.tis_cap = 3'),
        ({"tis": "sequence_mask", "loss": "dppo_kl"}, "is 0 for dppo_kl; leave"),
        ({"adam_eps": 1e-7, "warmup_steps": 30}, ""),
        ({"beta": 0.1, "kl": "k1", "kl_in": "reward"}, ""),
        ({"eps": 0.1, "old_logprobs": "sampling"}, ""),
        ({"loss": "dapo"}, ""),  # for its average
        ({"loss": "dppo_tv", "eps": 0.15}, ""),  # its ratios are those to the sampler
    ],
)
def test_settings_known_to_fail_or_to_do_nothing_are_warned_about(own, said):
    with pytest.warns(UserWarning, match=said) if said else nullcontext():  # a warning would be an error
        check_settings(LearnerConfig(**own), None)


def test_a_mask_of_sequences_reaches_the_loss(monkeypatch):
    learner = Learner(qwen3(), config_of(tis_cap=3.0, tis="sequence_mask"))
    rows = random_rows(4)
    exact = learner.logprobs(rows).numpy()
    own = [
        replace(row, sampling_logprobs=lp[: len(row.input_ids)]) for row, lp in zip(rows, exact, strict=True)
    ]
    first = own[0].sampling_logprobs - 2.0 * own[0].action_mask  # each of its tokens weighs exp(2)
    seen = spied(learner)
    metrics = learner.step([replace(own[0], sampling_logprobs=first), *own[1:]])
    assert metrics["tis_max"] > 3
    assert metrics["tis_truncated"] == pytest.approx(rows[0].action_mask.sum() / metrics["action_tokens"])
    left = sum(inputs.advantages[inputs.mask].ne(0).sum().item() for inputs, _ in seen)
    assert left == sum((row.advantages[row.action_mask] != 0).sum() for row in rows[1:])


# Staleness ----------------------------------------------------------------------------------------


def test_rows_of_weights_too_old_are_dropped_and_counted():
    learner = Learner(qwen3(), config_of(max_staleness=1))
    learner.steps = 5
    rows = [replace(row, policy_version=v) for row, v in zip(random_rows(4), (5, 4, 3, 0), strict=True)]
    seen = spied(learner)
    metrics = learner.step(rows)
    assert (metrics["rows"], metrics["stale_rows"], metrics["staleness_max"]) == (2, 2, 5)
    assert sum(len(inputs.mask) for inputs, _ in seen) == 2
    unbound = Learner(qwen3(), config_of())
    unbound.steps = 5
    metrics = unbound.step(rows)
    assert (metrics["rows"], metrics["stale_rows"], metrics["staleness_max"]) == (4, 0, 5)
    assert "staleness_max" not in unbound.step([])


def test_a_step_whose_rows_are_all_stale_changes_nothing_and_is_not_bad():
    model = qwen3()
    learner, before = Learner(model, config_of(max_staleness=0)), weights(model)
    learner.steps = 1
    metrics = learner.step(random_rows(3))
    assert (metrics["updates"], metrics["stale_rows"], metrics["bad_steps"]) == (0, 3, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))


# Steps that cannot be used ------------------------------------------------------------------------


def test_bad_steps_are_counted_in_a_row_and_a_good_one_ends_the_row():
    learner = Learner(qwen3(), config_of())
    bad = [row_of([1, 2], [3, 4], [float("inf"), 1.0])]
    counts = [learner.step(rows)["bad_steps"] for rows in (bad, bad, [], random_rows(2), bad)]
    assert counts == [1, 2, 2, 0, 1]
    assert learner.skip()["bad_steps"] == 2
    assert learner.steps == 6


# Memory, precision and devices --------------------------------------------------------------------


@pytest.mark.parametrize("lora", [False, True])
def test_gradient_checkpointing_runs_the_layers_again_and_changes_nothing(lora, monkeypatch):
    monkeypatch.setattr(torch, "get_rng_state", None)  # nothing is random, so no generator's state is kept
    results, calls = [], []
    for checkpointing in (False, True):
        model = lora_of(qwen3()) if lora else qwen3()
        count = [0]
        layer = next(m for name, m in model.named_modules() if name.endswith("layers.0"))
        layer.register_forward_pre_hook(lambda *_, count=count: count.__setitem__(0, count[0] + 1))
        learner = Learner(model, config_of(gradient_checkpointing=checkpointing, micro_batch_tokens=60))
        metrics = learner.step(random_rows())
        results.append((metrics, weights(model)))
        calls.append(count[0])
    assert calls[1] == 2 * calls[0] > 0
    assert results[0][0] == results[1][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1], strict=True))


def test_a_step_that_fails_half_way_leaves_no_gradient(monkeypatch):
    learner = Learner(qwen3(), config_of(gradient_checkpointing=True, micro_batch_tokens=60))
    once, calls = Learner._backward, iter(range(99))

    def third(*given):
        if next(calls) == 2:
            raise torch.OutOfMemoryError("no more")
        return once(*given)

    monkeypatch.setattr(Learner, "_backward", third)
    with pytest.raises(torch.OutOfMemoryError):
        learner.step(random_rows())
    assert not learner.halfway
    assert all(parameter.grad is None for parameter in learner.parameters)
    assert not any(module.training for module in learner.model.modules())


def half_lora(dtype: torch.dtype) -> nn.Module:
    return lora_of(qwen3().to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_adapter_on_half_precision_weights_is_trained_in_float32(dtype):
    model = half_lora(dtype)
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    rows = [row_of([1, 2, 3], [4, 5], [1.0, 1.0]), row_of([1, 2, 3], [9, 5], [-1.0, 1.0])]
    before = action_logprobs(model, collate(rows))[0][:, 3].detach()
    learner = Learner(model, config_of(lr=1e-2))
    metrics = [learner.step(rows) for _ in range(4)][-1]
    after = action_logprobs(model, collate(rows))[0][:, 3]
    assert after[0] > before[0]
    assert after[1] < before[1]
    assert ("loss_scale" in metrics) == (dtype == torch.float16)


def test_the_loss_scale_leaves_the_update_as_it_is_and_keeps_small_gradients():
    """An advantage of 1e-6: without a scale the gradients that pass through float16 weights are rubbish."""
    rows = [row_of([1, 2, 3], [4, 5], [1e-6, 1e-6])]
    norms = []
    for dtype, scale in ((torch.float32, False), (torch.float16, True), (torch.float16, False)):
        learner = Learner(half_lora(dtype), config_of())
        if dtype == torch.float16 and not scale:
            learner.scaler = torch.amp.GradScaler("cpu", enabled=False)
        norms.append(learner.step(rows)["grad_norm"])
    exact, scaled, unscaled = norms
    assert scaled == pytest.approx(exact, rel=0.05)
    assert abs(unscaled - exact) > exact / 2


def test_a_loss_scale_that_overflows_is_halved_and_the_step_left_out():
    model = half_lora(torch.float16)
    learner, before = Learner(model, config_of()), weights(model)
    rows = [row_of([1, 2, 3], [4, 5], [3e4, 3e4])]
    metrics = learner.step(rows)
    assert (metrics["updates"], metrics["skipped_updates"], metrics["loss_scale"]) == (0, 1, 2.0**15)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))
    other = Learner(half_lora(torch.float16), config_of())
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    assert other.scaler.get_scale() == 2.0**15


def test_full_weights_in_half_precision_are_refused_or_warned_about():
    with pytest.raises(ValueError, match=r"model\.dtype=float16 with full weights"):
        Learner(qwen3().to(torch.float16), config_of())
    with pytest.warns(UserWarning, match=r"model\.dtype=bfloat16 with full weights"):
        Learner(qwen3().to(torch.bfloat16), config_of())


TARGETS = [["q_proj", "v_proj"], ["lm_head"], ["embed_tokens"], ["lm_head", "embed_tokens"], "all-linear"]


@pytest.mark.filterwarnings("ignore:.*tied.*")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("targets", TARGETS, ids=str)
def test_every_adapter_counts_in_the_log_probabilities(targets, tied, monkeypatch):
    """The chunked head must not read the weights beside an adapter."""
    base = qwen3() if tied else qwen3(tie_word_embeddings=False)
    model = get_peft_model(base, LoraConfig(r=2, target_modules=targets, lora_alpha=64))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    monkeypatch.setitem(head_module.TILE, "cpu", 7 * VOCABULARY)
    batch = collate(random_rows(4))
    logits = model(input_ids=batch.input_ids[:, :-1]).logits / batch.temperature[:, :, None]
    expected = logits.log_softmax(-1).gather(2, batch.input_ids[:, 1:, None])[:, :, 0]
    got, _ = action_logprobs(model, batch)
    torch.testing.assert_close(
        got[:, 1:][batch.mask[:, 1:]], expected[batch.mask[:, 1:]], atol=1e-4, rtol=1e-4
    )
    with model.disable_adapter():
        assert not torch.allclose(action_logprobs(model, batch)[0], got, atol=1e-2)


def test_the_reference_of_an_adapter_that_has_learnt_is_that_adapter():
    rows = random_rows(4)
    fresh = Learner(lora_of(qwen3()), config_of(beta=0.1, lr=0.05))
    assert fresh.step(rows)["kl_mean"] == pytest.approx(0.0, abs=1e-7)
    again = Learner(fresh.model, config_of(beta=0.1, lr=1e-9))
    assert again.step(rows)["kl_mean"] == pytest.approx(0.0, abs=1e-7)
    assert fresh.step(rows)["kl_mean"] > 1e-4  # towards the model without the adapter
    assert again.step(rows)["kl_mean"] > 1e-4  # the adapter has moved on


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_models_dropout_is_off_while_it_learns(checkpointing):
    model = gpt2(dropout=0.5)
    rows = with_sampler([row_of([1, 2], [3, 4, n], [0.5] * 3) for n in range(6)], model)
    changes = {"minibatches": 2, "lr": 1e-9, "gradient_checkpointing": checkpointing}
    metrics = Learner(model, config_of(**changes)).step(rows)
    assert metrics["mismatch_max"] < 1e-5
    assert metrics["ratio_max"] == pytest.approx(1.0, abs=1e-5)
    assert not any(module.training for module in model.modules())


# The optimizer ------------------------------------------------------------------------------------


def parameter(*values: float, dtype: torch.dtype = torch.float64) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=dtype))


def test_the_size_of_an_update_by_hand():
    """Step 1 is g / (|g| + eps); in step 2, with g = 3 then 1, m = .18 + .1 over .19, v as below."""
    moved, still = parameter(0.0, 0.0), parameter(5.0, 5.0)
    optimizer = adamw([moved, still], LearnerConfig(lr=0.01, adam_eps=1.0, betas=(0.9, 0.5)))
    assert update_per_lr(optimizer).item() == 0  # nothing was updated
    moved.grad = torch.tensor([3.0, 0.0], dtype=torch.float64)
    optimizer.step()
    assert update_per_lr(optimizer).item() == pytest.approx(0.75 / 2)  # one of four numbers moved, by .75 lr
    assert moved[0].item() == pytest.approx(-0.75 * 0.01)
    moved.grad = torch.tensor([1.0, 0.0], dtype=torch.float64)
    optimizer.step()
    m, v = (0.1 * 0.9 * 3 + 0.1 * 1) / 0.19, (0.5 * 0.5 * 9 + 0.5 * 1) / 0.75
    assert update_per_lr(optimizer).item() == pytest.approx(m / (v**0.5 + 1) / 2)
    assert moved[0].item() == pytest.approx(-0.01 * (0.75 + m / (v**0.5 + 1)))


def test_pieces_of_a_parameter_add_up(monkeypatch):
    weight = parameter(*range(1, 12))
    optimizer = adamw([weight], LearnerConfig(lr=0.1, adam_eps=2.0))
    weight.grad = weight.detach().clone()
    before = weight.detach().clone()
    optimizer.step()
    monkeypatch.setattr("learner.update.optimizer.PIECE", 3)
    change = (weight.detach() - before) / 0.1
    assert update_per_lr(optimizer).item() == pytest.approx(change.square().mean().sqrt().item())


@pytest.mark.parametrize(
    ("dtype", "settings", "expected"),
    [
        (torch.float32, {}, 1e-8),
        (torch.bfloat16, {}, 1e-5),
        (torch.float32, {"warmup_steps": 0}, 1e-5),
        (torch.bfloat16, {"adam_eps": 1e-4}, 1e-4),
    ],
)
def test_epsilon_is_that_of_the_weights_type(dtype, settings, expected):
    assert adam_eps([parameter(1.0, dtype=dtype)], LearnerConfig(**settings)) == expected


@pytest.mark.parametrize("on_gpu", [False, True])
def test_one_kernel_on_a_gpu_and_no_copy_of_the_weights_anywhere(on_gpu):
    class Weight:
        is_cuda = on_gpu

        def element_size(self) -> int:
            return 4

    settings = settings_of([Weight()], LearnerConfig())  # type: ignore[list-item]
    assert (settings["fused"], settings["foreach"]) == (on_gpu, False)
