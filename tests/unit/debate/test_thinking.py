import pytest
import torch

from debate import Message, SampleRequest
from debate.parsing import parse_turn
from debate.types import TurnId
from debate_rl.config.models import TinyConfig
from debate_rl.inference.local import LocalPolicy
from debate_rl.models import build_tiny

CLOSING = "\n</think>\n\n"


def request(seed=0, **rest):
    fields = {"temperature": 1.0, "max_tokens": 8, "stop": (), "thinking_tokens": 20} | rest
    return SampleRequest(
        messages=(Message("user", "hi"),), seed=seed, debate="d", turn=TurnId(0, 0), **fields
    )


@pytest.fixture(scope="module")
def letters(make_tiny):
    """A model that knows no ``</think>``: its thinking ends by force (11 tokens) or with the end token."""
    return make_tiny(fallback="ascii", seed=1)


@pytest.fixture(scope="module")
def talker(make_tiny):
    """A model of a few words that often ends its thinking itself."""
    return make_tiny(["<think>", "</think>", "\n", "a", "b", "stop"], fallback="none", seed=2)


def sample(tiny, requests, **policy):
    return LocalPolicy(*tiny, thinking=True, **policy).sample_all(requests)


def test_a_spent_budget_ends_thinking_by_force_and_the_answer_follows(letters):
    for reply in sample(letters, [request(seed) for seed in range(8)]):
        if not reply.forced:
            assert "</think>" not in reply.text  # the whole reply ended within its thinking
            continue
        assert reply.forced == tuple(range(9, 20))  # 9 sampled, 11 characters of the end
        assert reply.text[reply.offsets[9] : reply.offsets[20]] == CLOSING
        assert 1 <= len(reply.tokens) - 20 <= 8
        assert [reply.logprobs[place] for place in reply.forced] == [0.0] * 11
        parsed = parse_turn(reply.text, handles=("A",), own="A", due=False, in_thinking=True)
        assert parsed.thinking is not None
        assert parsed.thinking.of(reply.text) == reply.text[: reply.offsets[18]]


def test_sampled_tokens_have_the_log_probabilities_of_the_whole_sequence(letters):
    model, _ = letters
    replies = sample(letters, [request(seed, temperature=0.7) for seed in range(4)])
    assert any(reply.forced for reply in replies)
    for reply in replies:
        with torch.no_grad():
            logits = model(torch.tensor([[*reply.prompt_tokens, *reply.tokens]])).logits[0]
        logps = torch.log_softmax(logits[len(reply.prompt_tokens) - 1 : -1] / 0.7, -1)
        expected = logps.gather(1, torch.tensor(reply.tokens)[:, None])[:, 0].tolist()
        sampled = [place for place in range(len(reply.tokens)) if place not in reply.forced]
        assert [reply.logprobs[p] for p in sampled] == pytest.approx([expected[p] for p in sampled], abs=1e-5)


def test_the_prompt_opens_the_thinking_and_counts_it(letters):
    _, tokenizer = letters
    policy, plain = LocalPolicy(*letters, thinking=True), LocalPolicy(*letters)
    messages = request().messages
    assert policy.opens_thinking(messages)
    assert not plain.opens_thinking(messages)
    assert policy.count_tokens(messages) == plain.count_tokens(messages) + len("<think>\n")
    assert tokenizer.decode(policy.sample_all([request()])[0].prompt_tokens).endswith("<think>\n")


def test_thinking_that_ends_itself_is_not_forced_and_stops_hold_behind_it_only(talker):
    replies = sample(
        talker, [request(seed, thinking_tokens=40, temperature=2.5, stop=("stop",)) for seed in range(60)]
    )
    own = [reply for reply in replies if "</think>" in reply.text and not reply.forced]
    assert sum("stop" in reply.text.partition("</think>")[0] for reply in own) > 5
    for reply in own:
        answer = reply.text.partition("</think>")[2]
        assert "stop" not in answer[:-4]
        assert reply.stop_reason == "length" or answer.endswith("stop") or reply.tokens[-1] == 0
        assert len(reply.tokens) <= 40 + 8


def test_the_answer_and_the_thinking_have_random_streams_of_their_own(letters):
    reply = next(
        r for r in sample(letters, [request(s, max_tokens=9) for s in range(8)]) if len(r.tokens) > 26
    )
    assert reply.tokens[:6] != reply.tokens[20:26]


def test_control_tokens_open_and_end_the_thinking_of_a_chat_model(trained_tokenizer):
    tokenizer = trained_tokenizer
    torch.manual_seed(0)
    model = build_tiny(TinyConfig(hidden_size=32, heads=4, intermediate_size=48), tokenizer)
    start, end = tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    replies = LocalPolicy(model, tokenizer, thinking=True).sample_all([request(seed) for seed in range(12)])
    assert all(reply.prompt_tokens.count(start) == 1 for reply in replies)
    forced = [reply for reply in replies if reply.forced]
    assert forced
    for reply in forced:
        assert [reply.tokens[place] for place in reply.forced].count(end) == 1
        assert max(reply.forced) == 19
