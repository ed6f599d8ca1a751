from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from debate.types import TurnId
from learner import LearnerConfig, Row
from learner import forward as forward_module
from learner.batches import MicroBatch, collate, micro_batches
from learner.forward import action_logprobs
from learner.losses import LOSSES, LossConfig, LossInputs, LossOutputs
from learner.losses.kl import kl_penalty
from learner.step import Learner, lr_factor

VOCABULARY = 24


def model_of(seed: int = 0, **changes) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.3,
        **changes,
    )
    return Qwen3ForCausalLM(config).eval()


def exact_model_of(seed: int = 0) -> GPT2LMHeadModel:
    """A model that really computes in float64 (Qwen3 rounds to float32 in its norms)."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=64,
        initializer_range=0.2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return GPT2LMHeadModel(config).double().eval()


def lora_of(model: Qwen3ForCausalLM) -> nn.Module:
    return get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_alpha=8))


def row_of(prompt: Sequence[int], completion: Sequence[int], advantages: Sequence[float], **changes) -> Row:
    length = len(prompt) + len(completion)
    mask = np.arange(length) >= len(prompt)
    row = Row(
        input_ids=np.array([*prompt, *completion], np.int64),
        action_mask=mask,
        sampling_logprobs=np.where(mask, -3.0, 0.0).astype(np.float32),
        advantages=np.array([0.0] * len(prompt) + list(advantages), np.float32),
        stream=mask.astype(np.int8),
        group_id="p",
        policy_version=0,
        turn=TurnId(0, 0),
    )
    return replace(row, **changes)


def random_rows(count: int = 12, *, seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        prompt, completion = rng.integers(2, 8), rng.integers(1, 12)
        tokens = rng.integers(0, VOCABULARY, prompt + completion)
        advantages = rng.standard_normal(completion)
        row = row_of(tokens[:prompt].tolist(), tokens[prompt:].tolist(), advantages.tolist())
        stream = np.where(row.action_mask, rng.integers(1, 3, len(tokens)), 0).astype(np.int8)
        rows.append(replace(row, stream=stream, temperature=float(rng.choice([0.6, 1.0]))))
    return rows


def with_sampler(rows: Sequence[Row], model: nn.Module) -> list[Row]:
    """The rows with the log-probabilities a sampler of these weights would have given."""
    with torch.no_grad():
        tables = [action_logprobs(model, collate([row]))[0][0].numpy() for row in rows]
    return [replace(row, sampling_logprobs=table) for row, table in zip(rows, tables, strict=True)]


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def config_of(**changes) -> LearnerConfig:
    return LearnerConfig.model_validate({"lr": 1e-3, "warmup_steps": 0, "max_tokens": 16, **changes})


# Log-probabilities --------------------------------------------------------------------------------


def test_log_probabilities_are_those_of_the_whole_model_at_each_rows_temperature():
    model, rows = model_of(), random_rows()
    got = action_logprobs(model, collate(rows))[0]
    for line, row in zip(got, rows, strict=True):
        logits = model(input_ids=torch.tensor(row.input_ids)[None]).logits[0, :-1] / row.temperature
        expected = logits.log_softmax(-1).gather(1, torch.tensor(row.input_ids[1:])[:, None])[:, 0]
        expected = expected.where(torch.tensor(row.action_mask[1:]), torch.zeros(()))
        torch.testing.assert_close(line[1 : len(row.input_ids)], expected, atol=1e-5, rtol=1e-5)
        assert line[len(row.input_ids) :].eq(0).all()
        assert line[: 1 + int(np.argmax(row.action_mask)) - 1].eq(0).all()


def test_entropy_is_that_of_the_tempered_distribution():
    model, row = model_of(), replace(random_rows(1)[0], temperature=0.6)
    entropy = action_logprobs(model, collate([row]))[1]
    probabilities = (model(input_ids=torch.tensor(row.input_ids)[None]).logits[0, :-1] / 0.6).softmax(-1)
    expected = -(probabilities * probabilities.log()).sum(-1)[torch.tensor(row.action_mask[1:])]
    torch.testing.assert_close(entropy, expected.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pad_id", [0, 5, VOCABULARY - 1])
def test_padding_and_its_token_do_not_matter(pad_id):
    model, rows = model_of(), random_rows()
    together = action_logprobs(model, collate(rows, pad_id=pad_id))[0]
    for line, row in zip(together, rows, strict=True):
        alone = action_logprobs(model, collate([row]))[0][0]
        torch.testing.assert_close(line[: len(alone)], alone, atol=1e-5, rtol=1e-5)


def test_a_completion_of_token_zero_keeps_all_its_log_probabilities():
    """In Qwen3 token 0 is "!": a learner that takes it for padding loses these tokens."""
    model = model_of()
    loud = row_of([3, 4], [0, 0, 0], [1, 1, 1])
    batch = collate([loud, row_of([3, 4], [7, 8, 9, 10, 11, 12], [1] * 6)], pad_id=0)
    assert batch.mask.sum(dim=1).tolist() == [3, 6]
    logprobs = action_logprobs(model, batch)[0]
    assert logprobs[0, 2:5].lt(0).all()
    torch.testing.assert_close(logprobs[0, :5], action_logprobs(model, collate([loud]))[0][0])


def test_a_large_head_is_run_in_chunks_with_the_same_result(monkeypatch):
    def gradients(model):
        logprobs, entropy = action_logprobs(model, collate(random_rows()))
        logprobs.sum().backward()
        return [logprobs.detach(), entropy, *(parameter.grad for parameter in model.parameters())]

    whole = gradients(model_of())
    monkeypatch.setattr(forward_module, "HEAD_ELEMENTS", 7 * VOCABULARY)
    for chunked, expected in zip(gradients(model_of()), whole, strict=True):
        torch.testing.assert_close(chunked, expected, atol=1e-5, rtol=1e-4)


def test_models_that_change_their_logits_after_the_head_take_the_plain_path():
    model, rows = model_of(), random_rows(3)
    expected = action_logprobs(model, collate(rows))[0]
    model.config.logit_scale = 1.0
    torch.testing.assert_close(action_logprobs(model, collate(rows))[0], expected)


def test_a_row_whose_first_token_is_an_action_is_refused():
    with pytest.raises(ValueError, match=r"group 'p'.*first token of a row has no context"):
        collate([row_of([], [1, 2], [1, 1])])


def test_micro_batches_keep_to_their_size_and_hold_every_row_once():
    rows = random_rows(40)
    batches = micro_batches(rows, 64)
    assert all(batch.input_ids.numel() <= 64 for batch in batches)
    assert sum(len(batch.mask) for batch in batches) == 40
    assert sum(batch.length for batch in batches) == sum(len(row.input_ids) for row in rows)
    assert [batch.input_ids.shape for batch in micro_batches(rows[:1], 1)] == [(1, len(rows[0].input_ids))]


# Gradients through the model ----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradient_of_the_weights_by_finite_differences(name):
    """In float64, along random directions; old weights differ from the current, so that ratios are not 1.

    gspo's value is its gradient's only where a stream of a row shares its advantage; cispo's never is, as it
    holds its weights constant: the differences are of the same sum with the weights of the start.
    """
    model, reference = exact_model_of(0), exact_model_of(1)
    batch = collate([shared_advantages(row) for row in random_rows(6)] if name == "gspo" else random_rows(6))
    with torch.no_grad():
        start = action_logprobs(model, batch)[0]
        batch.old = start + 0.15 * torch.randn(batch.mask.shape).double()
        batch.ref = action_logprobs(reference, batch)[0]
    config = LossConfig(eps=0.2, beta=0.05, beta_judge=0.2, max_tokens=12)

    def loss() -> torch.Tensor:
        return LOSSES[name](inputs_of(batch, action_logprobs(model, batch)[0]), config).loss

    def with_weights_of_the_start() -> torch.Tensor:
        logprobs = action_logprobs(model, batch)[0]
        weights = (start - batch.old).exp().clamp(max=1.2)
        tokens = -weights * batch.advantages * logprobs + kl_penalty(inputs_of(batch, logprobs), config)[0]
        return tokens[batch.mask].mean()

    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss(), parameters)
    value = with_weights_of_the_start if name == "cispo" else loss
    for _ in range(4):
        direction = [torch.randn_like(parameter) for parameter in parameters]
        slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
        assert difference(value, parameters, direction) == pytest.approx(slope, rel=1e-5, abs=1e-9)


def inputs_of(batch: MicroBatch, logprobs: torch.Tensor) -> LossInputs:
    assert batch.old is not None
    return LossInputs(
        logprobs,
        batch.old,
        batch.sampling_logprobs,
        batch.ref,
        batch.advantages,
        batch.mask,
        batch.stream,
    )


def shared_advantages(row: Row) -> Row:
    by_stream = np.array([0.0, 1.3, -0.7], np.float32)
    return replace(row, advantages=by_stream[row.stream])


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
    model = model_of()
    rows = with_sampler([row_of([1, 2, 3], [4, 5], [1, 0]), row_of([1, 2, 3], [9, 5], [-1, 0])], model)
    before = action_logprobs(model, collate(rows))[0][:, 3]
    metrics = Learner(model, config_of()).step(rows)
    after = action_logprobs(model, collate(rows))[0][:, 3]
    assert after[0] > before[0]
    assert after[1] < before[1]
    assert metrics["updates"] == 1


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_micro_batches_give_the_weights_of_the_whole_batch(loss):
    results = []
    for tokens in (10_000, 60, 1):
        model = exact_model_of()
        # plain gradient descent in effect: a large eps keeps Adam from blowing up rounding
        config = config_of(loss=loss, micro_batch_tokens=tokens, adam_eps=1.0, beta=0.1, lr=0.1)
        learner = Learner(model, config, reference=exact_model_of(1))
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
    first, second = model_of(), model_of()
    config = config_of(minibatches=3, epochs=2)
    assert Learner(first, config).step(random_rows()) == Learner(second, config).step(random_rows())
    assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


def test_on_policy_the_first_pass_agrees_with_the_sampler_and_ratios_are_one():
    model = model_of()
    metrics = Learner(model, config_of()).step(with_sampler(random_rows(), model))
    assert metrics["mismatch_max"] < 1e-5
    assert abs(metrics["mismatch_kl"]) < 1e-5
    assert (metrics["ratio_mean"], metrics["ratio_max"], metrics["clip_fraction"]) == (1.0, 1.0, 0.0)


def test_a_wrong_temperature_shows_as_a_mismatch():
    model = model_of()
    rows = [replace(row, temperature=1.0) for row in random_rows()]
    rows = [replace(row, temperature=0.6) for row in with_sampler(rows, model)]
    assert Learner(model, config_of()).step(rows)["mismatch_mean"] > 0.1


def test_ratios_of_later_minibatches_start_from_the_weights_before_the_first_update():
    seen: list[LossInputs] = []

    def spy(inputs: LossInputs, config: LossConfig) -> LossOutputs:
        seen.append(inputs)
        return LOSSES["grpo"](inputs, config)

    model = model_of()
    rows = with_sampler(random_rows(), model)
    learner = Learner(model, config_of(minibatches=2, epochs=2, lr=1e-2))
    learner._loss = spy
    metrics = learner.step(rows)
    assert metrics["updates"] == 4
    assert metrics["mismatch_max"] < 1e-5, "both minibatches were compared before any update"
    for inputs in seen:
        mask = inputs.mask
        torch.testing.assert_close(
            inputs.old_logprobs[mask], inputs.sampling_logprobs[mask], atol=1e-5, rtol=0
        )
    first, *later = [(i.logprobs - i.old_logprobs).abs().max().item() for i in seen]
    assert first == 0
    assert min(later) > 1e-3


def test_old_log_probabilities_can_be_the_samplers():
    metrics = Learner(model_of(), config_of(old_logprobs="sampling")).step(random_rows())
    assert metrics["ratio_max"] > 1.01
    recomputed = Learner(model_of(), config_of()).step(random_rows())
    assert metrics["mismatch_kl"] == recomputed["mismatch_kl"] > 1, "the sampler is compared all the same"


def test_minibatches_share_the_rows_and_few_rows_make_fewer():
    learner = Learner(model_of(), config_of(minibatches=4))
    assert learner.step(random_rows(10))["updates"] == 4
    assert learner.step(random_rows(3))["updates"] == 3
    assert learner.step([])["updates"] == 0
    assert learner.steps == 3


def test_a_step_without_rows_changes_nothing():
    model = model_of()
    before = weights(model)
    metrics = Learner(model, config_of()).step([])
    assert metrics["rows"] == 0
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))


def test_sizes_are_reported():
    rows = [row_of([1, 2], [3], [1]), row_of([1, 2, 3], [4, 5], [1, 1])]
    metrics = Learner(model_of(), config_of()).step(rows)
    assert (metrics["rows"], metrics["action_tokens"], metrics["padded_tokens"]) == (2, 3, 10)
    assert metrics["padding_share"] == pytest.approx(0.2)


def test_a_gradient_that_is_not_finite_is_left_out_and_counted():
    model = model_of()
    before = weights(model)
    rows = [row_of([1, 2], [3, 4], [float("nan"), 1.0])]
    learner = Learner(model, config_of())
    metrics = learner.step(rows)
    assert (metrics["updates"], metrics["skipped_updates"]) == (0, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))
    assert learner.step(random_rows())["updates"] == 1


def test_gradients_are_clipped_to_the_norm():
    model = model_of()
    rows = [row_of([1, 2], [3, 4], [100.0, 100.0])]
    metrics = Learner(model, config_of(max_grad_norm=0.5)).step(rows)
    assert metrics["grad_norm"] > 0.5
    assert metrics["grad_clipped"] == 1


# The reference ------------------------------------------------------------------------------------


def test_full_weights_are_held_near_a_copy_of_the_start():
    model = model_of()
    learner = Learner(model, config_of(beta=0.1, lr=1e-2))
    assert learner.step(random_rows())["kl_mean"] == pytest.approx(0, abs=1e-6)
    assert learner.step(random_rows())["kl_mean"] > 1e-4
    assert learner.reference is not None
    assert all(
        torch.equal(a, b) for a, b in zip(weights(learner.reference), weights(model_of()), strict=True)
    )


def test_without_beta_there_is_no_copy():
    learner = Learner(model_of(), config_of())
    assert learner.reference is None
    assert "kl_mean" not in learner.step(random_rows())


def test_lora_is_held_near_the_model_with_its_adapter_off():
    model = lora_of(model_of())
    learner = Learner(model, config_of(beta_judge=0.1, lr=5e-2))
    assert learner.reference is None
    assert learner.step(random_rows())["kl_mean"] == pytest.approx(0, abs=1e-6)
    assert learner.step(random_rows())["kl_mean"] > 1e-4
    batch = collate(random_rows())
    reference = learner._reference_logprobs(batch)
    torch.testing.assert_close(reference, action_logprobs(model_of(), batch)[0], atol=1e-5, rtol=1e-5)


def test_only_the_adapter_of_a_lora_model_is_trained():
    model = lora_of(model_of())
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    Learner(model, config_of(lr=1e-2)).step(random_rows())
    changed = {
        name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])
    }
    assert changed
    assert all("lora_" in name for name in changed)


def test_a_strong_kl_keeps_the_policy_nearer():
    distances = []
    for beta in (1e-6, 10.0):
        learner = Learner(model_of(), config_of(beta=beta, lr=1e-2))
        for _ in range(8):
            metrics = learner.step(random_rows())
        distances.append(metrics["kl_mean"])
    assert distances[1] < distances[0] / 2


# Schedule, state, settings ------------------------------------------------------------------------


def test_learning_rates_by_hand():
    def factors(schedule, total, steps):
        return [lr_factor(step, warmup=2, schedule=schedule, total=total) for step in steps]

    assert factors("constant", None, range(4)) == [0.5, 1.0, 1.0, 1.0]
    assert factors("linear", 6, [2, 4, 5, 6, 9]) == [1.0, 0.5, 0.25, 0.0, 0.0]
    assert factors("cosine", 6, [2, 4, 6]) == pytest.approx([1.0, 0.5, 0.0])
    assert factors("cosine", 6, [3])[0] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert lr_factor(0, warmup=0, schedule="linear", total=4) == 1.0


def test_the_learning_rate_follows_the_schedule_by_steps_not_by_minibatches():
    learner = Learner(model_of(), config_of(warmup_steps=2, schedule="linear", minibatches=2), total_steps=4)
    rates = [learner.step(random_rows(4))["lr"] for _ in range(4)]
    assert rates == pytest.approx([5e-4, 1e-3, 1e-3, 5e-4])
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(5e-4)


def test_a_restored_learner_goes_on_bit_for_bit():
    config = config_of(warmup_steps=3, minibatches=2)
    model = model_of()
    straight = Learner(model, config)
    straight.step(random_rows(seed=1))
    saved_weights = {name: value.clone() for name, value in model.state_dict().items()}
    other = model_of(5)
    resumed = Learner(other, config)
    other.load_state_dict(saved_weights)
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert straight.step(random_rows(seed=2)) == resumed.step(random_rows(seed=2))
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(other), strict=True))


def test_impossible_settings_are_named():
    with pytest.raises(ValueError, match=r"learner\.loss='dr_grpo' needs learner\.max_tokens"):
        Learner(model_of(), config_of(loss="dr_grpo", max_tokens=None))
    with pytest.raises(ValueError, match=r"learner\.schedule='cosine' needs the run's number of steps"):
        Learner(model_of(), config_of(schedule="cosine"))
    with pytest.raises(ValueError, match="unknown loss 'gropo'"):
        LearnerConfig(loss="gropo")
    with pytest.raises(ValueError, match="betas must lie"):
        LearnerConfig(betas=(0.9, 1.0))


def test_a_tiny_adam_eps_without_warm_up_is_warned_about():
    with pytest.warns(UserWarning, match=r"learner\.adam_eps=1e-07 without warm-up is known to explode"):
        Learner(model_of(), config_of(adam_eps=1e-7))
    Learner(model_of(), config_of(adam_eps=1e-7, warmup_steps=30))


def test_dr_grpo_is_weaker_than_grpo_at_the_same_learning_rate(caplog):
    norms = {}
    with caplog.at_level("INFO", logger="learner.step"):
        for loss in ("grpo", "dr_grpo"):
            norms[loss] = Learner(model_of(), config_of(loss=loss, max_tokens=64)).step(random_rows())[
                "grad_norm"
            ]
    assert norms["dr_grpo"] < norms["grpo"] / 3
    assert "about 5 times weaker" in caplog.text
