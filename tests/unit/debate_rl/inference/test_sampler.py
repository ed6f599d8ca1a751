"""Sampling: the distribution, its log-probabilities, seeds and stops, on both paths."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from debate_rl.inference import cpu_steps, sampler
from debate_rl.inference.cpu_steps import CpuSteps, fits
from debate_rl.inference.decoding import TokenText
from debate_rl.inference.sampler import Draw, ModelSteps, RowStop, StopWatch

PIECES = ["<solution>", "</solution>", "<think>", "</think>", " 1", " 2", " 11"]


@pytest.fixture(scope="module")
def tiny(make_tiny):
    return make_tiny(PIECES, fallback="ascii")


@pytest.fixture(params=[ModelSteps, CpuSteps])
def path(request):
    return request.param


def run(tiny, draws, path=None, *, ends=(), ended=None):
    model, tokenizer = tiny
    watch = StopWatch(TokenText(tokenizer), model.config.vocab_size)
    more = {"watch": watch, "steps": path and path(model), "ended": ended}
    return sampler.sample_batch(model, draws, ends=frozenset(ends), **more)


def draws_of(count, *, length=12, max_tokens=20, temperature=1.0, **rest):
    """Prompts of different lengths, some of them equal."""
    prompts = [tuple(range(6 + i % 5, 6 + i % 5 + length - i % 4)) for i in range(count)]
    return [
        Draw(one, max_tokens - i % 3, temperature, seed=1000 + i, **rest) for i, one in enumerate(prompts)
    ]


def full_logprobs(model, draw, tokens):
    """Log-probabilities of the tokens by one forward over the whole sequence."""
    with torch.no_grad():
        logits = model(torch.tensor([[*draw.prompt, *tokens]])).logits[0, len(draw.prompt) - 1 : -1]
    logps = torch.log_softmax(logits.float() / (draw.temperature or 1.0), -1)
    return logps.gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()


@pytest.mark.parametrize("temperature", [0, 0.6, 1.0, 1.5])
def test_logprobs_are_those_of_a_full_forward(tiny, path, temperature):
    draws = draws_of(9, temperature=temperature)
    for draw, drawn in zip(draws, run(tiny, draws, path, ends=[0]), strict=True):
        assert drawn.logprobs == pytest.approx(full_logprobs(tiny[0], draw, drawn.tokens), abs=1e-5)


def test_it_tells_how_many_rows_end_as_they_end(tiny):
    told = []
    draws = [Draw((6, 7), length, 1.0, seed=1) for length in (2, 5, 5, 5, 5, 9)]
    run(tiny, draws, ended=told.append)
    assert told == [1, 4, 1]


def test_both_paths_draw_the_same(tiny):
    draws = draws_of(12)
    slow, fast = (run(tiny, draws, path, ends=[0]) for path in (ModelSteps, CpuSteps))
    for a, b in zip(slow, fast, strict=True):
        assert a.tokens == b.tokens
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)
        assert a.stop_reason == b.stop_reason


def llama3(**sizes):
    far = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0}
    far |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    return LlamaForCausalLM(LlamaConfig(**sizes, rope_parameters=far, tie_word_embeddings=True))


def qwen2(**sizes):
    model = Qwen2ForCausalLM(Qwen2Config(**sizes))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize(
    "build", [llama3, qwen2, lambda **sizes: Qwen3ForCausalLM(Qwen3Config(**sizes, head_dim=16))]
)
@pytest.mark.parametrize("small", [False, True])
def test_common_models_have_the_fast_path_and_read_common_prefixes_once(build, small, tiny, monkeypatch):
    monkeypatch.setattr(cpu_steps, "SMALL", 1e9 if small else 0)
    torch.manual_seed(5)
    sizes = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    model = build(**sizes, vocab_size=tiny[0].config.vocab_size, num_key_value_heads=2, initializer_range=0.3)
    assert isinstance(sampler.steps_for(model), CpuSteps)
    rules, problem = tuple(range(6, 46)), tuple(range(50, 90))
    prompts = [rules, (*rules, *problem), (*rules, *problem, 7, 9), (*rules, *problem, 8), (5, 6, 7), rules]
    draws = [Draw(prompt, 9 + n % 3, 1.0, seed=n) for n, prompt in enumerate(prompts * 2)]
    slow, fast = (run((model, tiny[1]), draws, path, ends=[0]) for path in (ModelSteps, CpuSteps))
    for draw, a, b in zip(draws, slow, fast, strict=True):
        assert a.tokens == b.tokens
        assert b.logprobs == pytest.approx(a.logprobs, abs=3e-5)
        assert b.logprobs == pytest.approx(full_logprobs(model, draw, b.tokens), abs=3e-5)


def test_a_row_depends_on_its_own_seed_alone(tiny, path):
    draws = draws_of(8)
    together = run(tiny, draws, path, ends=[0])
    backwards = run(tiny, draws[::-1], path, ends=[0])[::-1]
    alone = [run(tiny, [draw], path, ends=[0])[0] for draw in draws]
    for a, b, c in zip(together, backwards, alone, strict=True):
        assert a.tokens == b.tokens == c.tokens
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)
        assert a.logprobs == pytest.approx(c.logprobs, abs=1e-5)


def test_equal_prompts_with_different_seeds_differ_and_the_same_batch_repeats_bit_for_bit(tiny, path):
    draws = [Draw((7, 8, 9), 16, 1.0, seed) for seed in range(6)]
    first, second = run(tiny, draws, path), run(tiny, draws, path)
    assert first == second
    assert len({drawn.tokens for drawn in first}) == 6


def test_greedy_equals_generate(tiny, path):
    model, tokenizer = tiny
    draws = [Draw(tuple(range(6 + n, 16)), 15, 0, seed=n) for n in range(4)]
    for draw, drawn in zip(draws, run(tiny, draws, path, ends=[tokenizer.eos_token_id]), strict=True):
        prompt = torch.tensor([draw.prompt])
        whole = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 15, "do_sample": False}
        expected = model.generate(prompt, **whole)
        assert list(drawn.tokens) == expected[0, len(draw.prompt) :].tolist()


def test_the_tokens_follow_the_distribution(tiny, path):
    model, _ = tiny
    prompt, temperature, count = (7, 9, 11), 1.5, 3000
    draws = [Draw(prompt, 1, temperature, seed) for seed in range(count)]
    drawn = [result.tokens[0] for result in run(tiny, draws, path)]
    with torch.no_grad():
        mass = torch.softmax(model(torch.tensor([prompt])).logits[0, -1].double() / temperature, -1)
    observed = torch.bincount(torch.tensor(drawn), minlength=len(mass)).double()
    common = mass * count >= 5  # chi-square needs five expected in a cell: the rest is one cell
    cells = torch.cat([observed[common], observed[~common].sum()[None]])
    expected = torch.cat([mass[common], mass[~common].sum()[None]]) * count
    assert len(cells) > 10
    assert chisquare(cells.numpy(), expected.numpy()).pvalue > 0.01


EDGES = [0.0, 0.0999, 0.1001, 0.5999, 0.6001]


@pytest.mark.parametrize(
    ("masses", "temperatures", "uniform", "drawn", "probabilities"),
    [
        ([0.1, 0.2, 0.3, 0.4], [1.0] * 5, EDGES, [0, 0, 1, 2, 3], [0.1, 0.1, 0.2, 0.3, 0.4]),
        ([0.0, 1.0, 0.0], [1.0] * 3, [0.0, 0.5, 1 - 2**-53], [1, 1, 1], [1.0] * 3),  # never without mass
        # p = (.2, .8): at T = 0.5 it is (.04, .64) / .68, at T = 2 (.447, .894) / 1.342
        ([0.2, 0.8], [0.5, 2.0, 0.0], [0.0] * 3, [0, 0, 1], [0.04 / 0.68, 0.4472136 / 1.3416408, 0.8]),
    ],
)
def test_inversion_and_temperature_by_hand(masses, temperatures, uniform, drawn, probabilities):
    logits = torch.tensor([masses]).log().repeat(len(uniform), 1)
    warm = torch.tensor(temperatures)
    tokens, logprobs = sampler.draw_tokens(logits, warm, torch.tensor(uniform, dtype=torch.float64))
    assert tokens.tolist() == drawn
    assert logprobs.exp().tolist() == pytest.approx(probabilities)


def likely(probabilities, top_p=1.0, top_k=0):
    """Return the probabilities that a row keeps, rounded to six digits."""
    logps = torch.tensor([probabilities], dtype=torch.float64).log()
    kept = sampler.likely_only(logps, torch.tensor([top_p]), torch.tensor([top_k])).exp()[0]
    return [round(p, 6) for p in kept.tolist()]


def test_likely_tokens_by_hand():
    row = [0.1, 0.5, 0.15, 0.25]
    assert likely(row, top_k=2) == [0, round(2 / 3, 6), 0, round(1 / 3, 6)]
    assert likely(row, top_p=0.7) == likely(row, top_k=2)  # .5 is too little, .75 is enough
    assert likely(row, top_p=0.76) == [0, round(50 / 90, 6), round(15 / 90, 6), round(25 / 90, 6)]
    assert likely(row, top_p=0.01) == [0, 1, 0, 0]  # never none
    assert likely(row, top_k=9) == row  # more than there are
    # Of the two that top_k leaves, the first alone has 2/3 of the probability.
    assert likely(row, top_p=0.6, top_k=2) == [0, 1, 0, 0]
    assert likely([0.25] * 4, top_k=3) == [round(1 / 3, 6)] * 3 + [0]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.floats(0.001, 1.0), st.integers(0, 14))
def test_the_likely_tokens_are_the_fewest_that_have_the_probability(weights, top_p, top_k):
    row = [weight / sum(weights) for weight in weights]
    kept = [index for index, p in enumerate(likely(row, top_p, top_k)) if p > 0]
    left = [index for index in range(len(row)) if index not in kept]
    assert all(row[index] >= row[other] for index in kept for other in left)
    most = sorted(row, reverse=True)[: top_k or len(row)]
    assert len(kept) <= len(most)
    share = [row[index] / sum(most) for index in kept]
    assert sum(share) >= top_p - 1e-6
    assert sum(share) - min(share) <= top_p + 1e-6  # one fewer would be too few


def test_likely_tokens_alone_are_drawn_each_row_by_its_own_rule(tiny, path):
    model, _ = tiny
    prompt = (7, 9, 11)
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1]
    three = logits.topk(3)
    draws = [Draw(prompt, 1, 2.0, seed, top_k=3) for seed in range(60)]
    plain = [Draw(prompt, 1, 2.0, seed) for seed in range(60)]
    greedy = Draw(prompt, 1, 0.0, 5, top_p=0.1, top_k=7)
    *results, cold = run(tiny, [*draws, *plain, greedy], path)
    assert {result.tokens[0] for result in results[:60]} == set(three.indices.tolist())
    odds = dict(zip(three.indices.tolist(), (three.values / 2).log_softmax(-1).tolist(), strict=True))
    for result in results[:60]:
        assert result.logprobs[0] == pytest.approx(odds[result.tokens[0]], abs=1e-5)
    for a, b in zip(results[60:], run(tiny, plain, path), strict=True):
        assert a.tokens == b.tokens
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)
    assert cold.logprobs == pytest.approx([logits.log_softmax(-1).max().item()], abs=1e-5)


def test_ends_and_limits_are_told_apart(tiny, path):
    draws = draws_of(30, max_tokens=40)
    results = run(tiny, draws, path, ends=[0, 1])
    stopped = [result for result in results if result.stop_reason == "stop"]
    assert 0 < len(stopped) < 30
    for draw, result in zip(draws, results, strict=True):
        ended = [t for t, token in enumerate(result.tokens) if token in (0, 1)]
        assert ended == ([len(result.tokens) - 1] if result.stop_reason == "stop" else [])
        assert len(result.tokens) == len(result.logprobs) <= draw.max_tokens
        assert result.stop_reason == "stop" or len(result.tokens) == draw.max_tokens


@pytest.mark.parametrize("stop", [("</solution>",), ("12",), ("ab", "</a")])
def test_stop_strings_end_at_the_token_that_completes_them(make_tiny, path, stop):
    tiny = make_tiny(["</solution>", "1", "12", "2", "a", "b", "</"], fallback="none", seed=2)
    _, tokenizer = tiny
    reader = TokenText(tokenizer)
    free_draws = [Draw((6, 7, 6 + n % 5), 60, 1.5, seed=n) for n in range(40)]
    plain = run(tiny, free_draws, path)
    stopped = run(tiny, [replace(draw, stop=stop) for draw in free_draws], path)
    assert any(drawn.stop_reason == "stop" for drawn in stopped)
    for free, cut in zip(plain, stopped, strict=True):
        lengths = [n for n in range(1, 61) if any(s in reader.decode(free.tokens[:n]) for s in stop)]
        expected = free.tokens[: lengths[0]] if lengths else free.tokens
        assert cut.tokens == expected[: len(cut.tokens)]
        assert (cut.stop_reason == "stop") == (bool(lengths) and lengths[0] <= len(free.tokens))
        assert len(cut.tokens) == len(expected)


def watched(tokenizer, row, text):
    """The text up to the stop, feeding one token at a time to every check that the table asks for."""
    watch = StopWatch(TokenText(tokenizer), len(tokenizer))
    table = watch.table(row.stop)
    ids = tokenizer.encode(text, add_special_tokens=False)
    for n, index in enumerate(ids, start=1):
        if table[index] and watch.ends(row, torch.tensor(ids[:n])):
            return tokenizer.decode(ids[:n])
    return None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x</solution> y", "x</solution>"),
        ("<think>a</solution>b</think>c</solution>d", "<think>a</solution>b</think>c</solution>"),
        (" \n<think></solution>", None),
        ("a<think></solution>b", "a<think></solution>"),
        ("é<€/solution>/s€é</solution>.", "é<€/solution>/s€é</solution>"),
        ("</think></solution>", "</think></solution>"),
    ],
)
def test_stops_and_thinking(make_tiny, text, expected):
    _, whole = make_tiny(PIECES)
    _, letters = make_tiny()
    for tokenizer in (whole, letters):
        assert watched(tokenizer, RowStop(("</solution>",)), text) == expected
    # a prompt that opened thinking waits for its end
    assert watched(letters, RowStop(("12",), thinking=True), "12 so</think> 12!") == "12 so</think> 12"


@pytest.mark.parametrize("text", ["Tom has 12 apples and", "é 日本語の12文字", "8+4=12. 12"])
def test_stops_in_real_tokenizers(trained_tokenizer, text):
    decode = TokenText(trained_tokenizer).decode
    ids = trained_tokenizer.encode(text, add_special_tokens=False)
    first = next((n for n in range(1, len(ids) + 1) if "12" in decode(ids[:n])), None)
    found = watched(trained_tokenizer, RowStop(("12",)), text)
    assert found == (None if first is None else trained_tokenizer.decode(ids[:first]))


def test_the_fast_path_is_chosen_for_plain_models_in_float32(make_tiny):
    assert isinstance(sampler.steps_for(make_tiny()[0]), CpuSteps)
    assert not fits(make_tiny(lora_rank=2)[0])
    assert not fits(make_tiny(seed=3)[0].to(torch.bfloat16))


def test_lora_logprobs_match_a_full_forward(make_tiny):
    model, tokenizer = make_tiny(PIECES, lora_rank=4)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.3, generator=torch.Generator().manual_seed(1))
    draws = draws_of(6)
    for draw, drawn in zip(draws, run((model, tokenizer), draws), strict=True):
        assert drawn.logprobs == pytest.approx(full_logprobs(model.eval(), draw, drawn.tokens), abs=1e-5)
    with model.disable_adapter():
        base = run((model, tokenizer), draws)
    assert [drawn.tokens for drawn in base] != [drawn.tokens for drawn in run((model, tokenizer), draws)]


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_is_put_back(tiny, training):
    model, _ = tiny
    model.train(training)
    run(tiny, draws_of(1))
    assert model.training is training


def test_weights_changed_in_place_are_used_at_once_and_diverged_ones_are_an_error(make_tiny):
    tiny = make_tiny(seed=5)
    before = run(tiny, draws_of(3))
    with torch.no_grad():
        tiny[0].model.layers[0].mlp.up_proj.weight.mul_(2.0)
        assert run(tiny, draws_of(3)) != before
        tiny[0].model.norm.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="NaN"):
        run(tiny, draws_of(2))
