"""The local policy: when it samples, in which order, and what its completions hold."""

import asyncio
from contextlib import ExitStack

import pytest
import torch

from debate.types import Message, SampleRequest, TurnId
from debate_rl.inference.local import Batcher, LocalPolicy, end_tokens


def request(seed=0, *, debate="a", agent=0, round_=0, text="hello", **rest):
    fields = {"temperature": 1.0, "max_tokens": 12, "stop": ()} | rest
    message, turn = Message("user", text), TurnId(agent, round_)
    return SampleRequest(messages=(message,), seed=seed, debate=debate, turn=turn, **fields)


@pytest.fixture
def policy(make_tiny):
    return LocalPolicy(*make_tiny(["</solution>", " 1"], fallback="ascii"), batch_size=4)


def ask(policy, requests):
    async def all_at_once():
        return await asyncio.gather(*(policy.sample(one) for one in requests))

    return asyncio.run(all_at_once())


def test_a_prompt_that_was_counted_is_not_encoded_again(policy):
    messages = (Message("user", "hello"),)
    assert policy.count_tokens(list(messages)) == len(policy.encode(messages))
    assert policy.encode(messages) is policy.encode(messages)


def test_a_completion_holds_prompt_tokens_text_and_offsets(policy, make_tiny):
    _, tokenizer = make_tiny(["</solution>", " 1"], fallback="ascii")
    completions = ask(policy, [request(seed, max_tokens=30) for seed in range(12)])
    chat = [{"role": "user", "content": "hello"}]
    prompt = tuple(tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"])
    assert {completion.stop_reason for completion in completions} == {"stop", "length"}
    for completion in completions:
        ended = completion.tokens[-1] == tokenizer.eos_token_id
        body = completion.tokens[:-1] if ended else completion.tokens
        assert completion.prompt_tokens == prompt
        assert completion.text == tokenizer.decode(body)
        assert len(completion.tokens) == len(completion.logprobs) == len(completion.offsets)
        assert (completion.stop_reason == "stop") == ended
        if ended:
            assert completion.offsets[-1] == len(completion.text)
        for index, offset in zip(body, completion.offsets, strict=False):
            assert completion.text.startswith(tokenizer.decode([index]), offset)


def test_the_stop_string_stays_in_text_and_tokens(policy):
    completions = ask(policy, [request(seed, max_tokens=60, stop=("</solution>",)) for seed in range(40)])
    stopped = [completion for completion in completions if "</solution>" in completion.text]
    assert stopped
    for completion in stopped:
        assert completion.text.endswith("</solution>")
        assert completion.text.count("</solution>") == 1
        assert completion.stop_reason == "stop"


def test_results_do_not_depend_on_company_or_order(policy):
    requests = [request(n, agent=n % 3, debate=str(n // 3), text="hi" * (n % 4)) for n in range(9)]
    together = ask(policy, requests)
    backwards = ask(policy, requests[::-1])[::-1]
    alone = [ask(policy, [one])[0] for one in requests]
    assert together == backwards  # the same chunks in the same order: equal bit for bit
    for a, b in zip(together, alone, strict=True):
        assert (a.tokens, a.text, a.offsets) == (b.tokens, b.text, b.offsets)
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


def test_temperature_is_applied(policy):
    cold = ask(policy, [request(seed, temperature=0) for seed in range(4)])
    assert len({completion.tokens for completion in cold}) == 1
    hot = ask(policy, [request(seed, temperature=3.0) for seed in range(4)])
    assert len({completion.tokens for completion in hot}) == 4
    means = [[sum(one.logprobs) / len(one.logprobs) for one in each] for each in (hot, cold)]
    assert max(means[0]) < min(means[1])


def test_version_and_weights(make_tiny):
    model, tokenizer = make_tiny(seed=11)
    other, _ = make_tiny(seed=12)
    policy, expected = LocalPolicy(model, tokenizer), LocalPolicy(other, tokenizer, version=5)
    assert ask(policy, [request()])[0].policy_version == 0
    asyncio.run(policy.update(other.state_dict(), 5))
    assert ask(policy, [request()]) == ask(expected, [request()])
    asyncio.run(policy.update(None, 6))
    assert policy.version == 6
    with pytest.raises(ValueError, match=r"unknown \['nonsense'\]"):
        asyncio.run(policy.update({**other.state_dict(), "nonsense": torch.zeros(1)}, 7))
    less = {name: value for name, value in other.state_dict().items() if name != "model.norm.weight"}
    with pytest.raises(ValueError, match=r"missing \['model\.norm\.weight'\]"):
        asyncio.run(policy.update(less, 7))
    with pytest.raises(ValueError, match="state dict or None, got int"):
        asyncio.run(policy.update(3, 7))
    assert policy.version == 6


def test_adapter_weights(make_tiny):
    from peft import get_peft_model_state_dict

    (model, tokenizer), (other, _) = (make_tiny(lora_rank=2, seed=seed) for seed in (21, 21))
    with torch.no_grad():
        for name, weight in other.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.2)
    policy, expected = LocalPolicy(model, tokenizer), LocalPolicy(other, tokenizer)
    before = ask(policy, [request()])
    asyncio.run(policy.update(get_peft_model_state_dict(other), 0))
    assert ask(policy, [request()]) == ask(expected, [request()]) != before


def test_context_is_respected(make_tiny):
    policy = LocalPolicy(*make_tiny(seed=3, context_tokens=16), context_tokens=16)
    assert policy.count_tokens((Message("user", "hello"),)) == 7  # <|user|>, five bytes, <|assistant|>
    completion = ask(policy, [request(max_tokens=500)])[0]
    assert len(completion.tokens) == 9 or completion.stop_reason == "stop"
    assert len(completion.tokens) <= 9
    with pytest.raises(ValueError, match=r"a prompt of 17 tokens does not fit a context of 16"):
        ask(policy, [request(text="x" * 15)])
    assert LocalPolicy(*make_tiny(context_tokens=64)).context_tokens == 64


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"max_tokens": 0}, "max_tokens 0 must be 1 or more"),
        ({"temperature": -0.5}, "temperature -0.5 must be finite, and 0 or more"),
        ({"temperature": float("nan")}, "temperature nan must be finite"),
        ({"temperature": float("inf")}, "temperature inf must be finite"),
        ({"seed": -1}, "seed -1 must be 0 or more"),
    ],
)
def test_a_request_that_cannot_be_is_named(policy, wrong, told):
    with pytest.raises(ValueError, match=rf"^debate a, turn TurnId\(agent=0, round=0\): {told}"):
        policy.sample_all([request(**wrong), request()])


def test_end_tokens_come_from_everywhere(make_tiny):
    model, tokenizer = make_tiny(seed=31)
    assert end_tokens(model, tokenizer) == {tokenizer.eos_token_id}
    model.generation_config.eos_token_id = [5, 7]
    assert end_tokens(model, tokenizer) == {tokenizer.eos_token_id, 5, 7}


def test_base_models_get_raw_prompts(make_tiny):
    model, tokenizer = make_tiny()
    policy = LocalPolicy(model, tokenizer, chat=False, raw_prompt=lambda said: f"Q: {said[0].content} A:")
    completion = ask(policy, [request(text="1+1?<|end|>")])[0]
    assert tokenizer.decode(completion.prompt_tokens) == "Q: 1+1?<|end|> A:"
    assert tokenizer.eos_token_id not in completion.prompt_tokens


class Counting:
    """Answers with the batch it saw."""

    def __init__(self, fail_at=None):
        self.batches, self.fail_at = [], fail_at
        self.queue = Batcher(self.answer, lambda ask: ask)

    def answer(self, asks):
        self.batches.append(list(asks))
        if len(self.batches) == self.fail_at:
            raise RuntimeError("out of memory")
        return [f"{name}.{number}.{agent}" for name, number, agent in asks]


def hold(log, name, *, rounds, pause=0, agents=2):
    """A debate of two agents that dawdles between its rounds."""

    async def run(seat):
        with seat:
            for number in range(rounds):
                for _ in range(pause):
                    await asyncio.sleep(0)
                answers = await asyncio.gather(*(log.queue.submit((name, number, a)) for a in range(agents)))
                assert answers == [f"{name}.{number}.{a}" for a in range(agents)]

    return run


def debates(log, *runs):
    async def all_of_them():
        seats = [ExitStack() for _ in runs]
        for seat in seats:
            seat.enter_context(log.queue.seat())
        played = (run(seat) for run, seat in zip(runs, seats, strict=True))
        await asyncio.wait_for(asyncio.gather(*played), timeout=10)

    asyncio.run(all_of_them())


@pytest.mark.parametrize("pauses", [(0, 0, 0), (0, 7, 3), (5, 0, 1)])
def test_batches_do_not_depend_on_timing(pauses):
    log = Counting()
    rounds = (3, 1, 2)
    debates(log, *(hold(log, n, rounds=r, pause=p) for n, r, p in zip("cab", rounds, pauses, strict=True)))
    assert log.batches == [
        [(name, number, agent) for name in names for agent in (0, 1)]
        for number, names in enumerate(["abc", "bc", "c"])
    ]


def test_two_calls_with_equal_names_do_not_block_each_other():
    log = Counting()
    debates(log, *(hold(log, "a", rounds=r, pause=r) for r in (1, 3, 2)))
    assert sum(map(len, log.batches)) == 12


def test_siblings_of_one_gather_share_a_batch_and_one_outside_any_seat_is_answered():
    log = Counting()

    async def gathered():
        return await asyncio.gather(*(log.queue.submit(("a", 0, agent)) for agent in (2, 0, 1)))

    assert asyncio.run(gathered()) == ["a.0.2", "a.0.0", "a.0.1"]
    assert log.batches == [[("a", 0, 0), ("a", 0, 1), ("a", 0, 2)]]
    assert asyncio.run(asyncio.wait_for(log.queue.submit(("a", 0, 0)), 5)) == "a.0.0"


def test_an_error_reaches_everybody_and_the_next_batch_works():
    log = Counting(fail_at=1)

    async def gathered():
        asked = (log.queue.submit(("a", 0, agent)) for agent in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [str(error) for error in asyncio.run(gathered())] == ["out of memory"] * 3
    assert asyncio.run(gathered()) == ["a.0.0", "a.0.1", "a.0.2"]


def test_a_cancelled_debate_holds_nobody_up():
    log = Counting()

    async def one_gives_up():
        first, second = log.queue.seat(), log.queue.seat()
        with first:
            with second:
                lost = asyncio.create_task(log.queue.submit(("b", 0, 0)))
                waiting = asyncio.create_task(log.queue.submit(("a", 0, 0)))
                lost.cancel()
                await asyncio.sleep(0)
            return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(one_gives_up()) == "a.0.0"
    assert log.batches == [[("a", 0, 0)]]
