"""Run in the bench environment: a tiny model in vLLM beside LocalPolicy, as JSON on the last line.

python vllm_debate.py FOLDER: everything is written below it.
"""

import asyncio
import json
import sys
from pathlib import Path

import torch

from debate import DebateConfig, Message, Problem, SampleRequest, run_debates
from debate.types import TurnId
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.sampler import likely_only
from debate_rl.inference.vllm import VLLMPolicy
from debate_rl.models import load_model

TINY = TinyConfig(hidden_size=64, heads=2, intermediate_size=48, init_std=0.3, context_tokens=1024)
CONFIG = DebateConfig(num_agents=3, num_rounds=2, max_tokens=40, prompts="tiny")
PROBLEMS = [Problem("a", "What is 2 + 2?"), Problem("b", "What is <|im_end|> 3 + 4?")]


def model_of(seed, lora_rank=0):
    """Return the model; an adapter's own weights are drawn too, since fresh ones change nothing."""
    config = ModelConfig(tiny=TINY, device="cpu", lora_rank=lora_rank)
    model, tokenizer = load_model(
        config, vocabulary=("<think>", "</think>", " 1"), seed=seed if not lora_rank else 0
    )
    if lora_rank:
        torch.manual_seed(seed)
        for name, value in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(value, std=0.1)
    return model, tokenizer


def request(seed=0, **rest):
    fields = {"temperature": 1.0, "max_tokens": 30, "stop": ("</solution>",)} | rest
    return SampleRequest(
        (Message("user", f"hello {seed}"),), seed=seed, debate="d", turn=TurnId(0, 0), **fields
    )


def ask(policy, requests):
    async def all_at_once():
        return await asyncio.gather(*(policy.sample(one) for one in requests))

    return asyncio.run(all_at_once())


def said(completions):
    return [
        (one.prompt_tokens, one.tokens, one.text, one.offsets, one.stop_reason, one.forced)
        for one in completions
    ]


def difference(model, completion, temperature):
    """Return the largest difference of the log-probabilities from the model's own at this temperature."""
    ids = completion.prompt_tokens + completion.tokens
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, len(completion.prompt_tokens) - 1 : -1]
    table = (logits / (temperature or 1.0)).log_softmax(-1)
    ours = table.gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]
    sampled = torch.tensor([place not in completion.forced for place in range(len(ours))])
    return float(((torch.tensor(completion.logprobs) - ours) * sampled).abs().max())


def goes_on(debate, turn):
    """Return whether a prompt begins with the agent's one before and the reply to it."""
    before = debate.turn(TurnId(turn.id.agent, turn.id.round - 1)).completion
    whole = before.prompt_tokens + before.tokens
    return turn.completion.prompt_tokens[: len(whole)] == whole


def likely_difference(model, completion, temperature, *, top_p, top_k):
    """Return the same among the likely tokens: infinite where another one was drawn."""
    ids = completion.prompt_tokens + completion.tokens
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, len(completion.prompt_tokens) - 1 : -1]
    rows = len(logits)
    table = likely_only(
        (logits / temperature).log_softmax(-1), torch.full((rows,), top_p), torch.full((rows,), top_k)
    )
    ours = table.gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]
    return float((torch.tensor(completion.logprobs) - ours).abs().max())


def abandoned(policy):
    """Whether the engine has work while replies are waited for, and once nobody waits for them any more."""

    async def given_up():
        replies = [asyncio.ensure_future(policy.sample(request(seed, max_tokens=900))) for seed in range(64)]
        await asyncio.sleep(0.05)
        busy = policy._llm.llm_engine.has_unfinished_requests()
        for reply in replies:
            reply.cancel()
        await asyncio.gather(*replies, return_exceptions=True)
        return busy, policy._llm.llm_engine.has_unfinished_requests()

    return asyncio.run(given_up())


def greedy_alike(policy, local):
    requests = [request(seed, temperature=0.0) for seed in range(6)]
    return said(ask(policy, requests)) == said(ask(local, requests))


def refused(call):
    try:
        asyncio.run(call)
    except ValueError as error:
        return str(error)
    return None


def main(folder):
    (model, tokenizer), (other, _), (tuned, _) = model_of(0), model_of(1), model_of(2, lora_rank=4)
    for name, one in {"model": model, "other": other, "adapter": tuned}.items():
        one.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    settings = {"dtype": "float32", "max_model_len": 1024, "enforce_eager": True, "max_lora_rank": 4}
    policy = VLLMPolicy(folder / "model", **settings)
    local = LocalPolicy(model, tokenizer)
    found = {"context": policy.context_tokens, "greedy": greedy_alike(policy, local)}

    found["abandoned"] = abandoned(policy)
    debates = run_debates(PROBLEMS, policy, CONFIG, seed=3)
    again = run_debates(PROBLEMS, policy, CONFIG, seed=3)
    turns = [(turn, debate.personas[turn.id.agent]) for debate in debates for turn in debate.turns]
    found["turns"] = len(turns)
    found["tokens"] = sum(len(turn.completion.tokens) for turn, _ in turns)
    found["temperatures"] = sorted({persona.temperature for _, persona in turns})
    found["debate"] = max(difference(model, turn.completion, persona.temperature) for turn, persona in turns)
    found["repeated"] = [[t.completion.tokens for t in d.turns] for d in debates] == [
        [t.completion.tokens for t in d.turns] for d in again
    ]

    stopping = ask(policy, [request(seed, max_tokens=80, stop=("e", "</solution>")) for seed in range(60)])
    inside = [one for one in stopping if "e" in one.text]
    found["stopped"] = len(inside)
    found["stops_end"] = all(
        "e" not in one.text[: one.offsets[-1]] and one.stop_reason == "stop" for one in inside
    )
    found["reasons"] = sorted({one.stop_reason for one in stopping})
    found["different"] = len({one.tokens for one in stopping})
    hot = ask(policy, [request(seed, temperature=1.7) for seed in range(8)])
    found["hot"] = max(difference(model, one, 1.7) for one in hot)

    talk = CONFIG.model_copy(update={"conversation": True, "history_rounds": -1})
    [told] = run_debates(PROBLEMS[:1], policy, talk, seed=3)
    found["talk"] = max(
        difference(model, turn.completion, told.personas[turn.id.agent].temperature) for turn in told.turns
    )
    found["talk_goes_on"] = [goes_on(told, turn) for turn in told.turns if turn.id.round]

    likely = ask(policy, [request(seed, temperature=1.5, top_k=5, top_p=0.9, stop=()) for seed in range(8)])
    found["likely"] = max(likely_difference(model, one, 1.5, top_p=0.9, top_k=5) for one in likely)

    asyncio.run(policy.update(str(folder / "other"), 1))
    found["other"] = greedy_alike(policy, LocalPolicy(other, tokenizer))
    asyncio.run(policy.update(folder / "model", 2))
    found["back"] = greedy_alike(policy, local)
    asyncio.run(policy.update(folder / "adapter", 3))
    found["adapter"] = max(
        difference(tuned, one, 1.0) for one in ask(policy, [request(seed, stop=()) for seed in range(8)])
    )
    found["adapter_counts"] = not greedy_alike(policy, local)
    found["version"] = ask(policy, [request()])[0].policy_version
    model_of_more, _ = model_of(5, lora_rank=4)
    model_of_more.save_pretrained(folder / "adapter")  # the same place again, as a trainer might
    asyncio.run(policy.update(folder / "adapter", 4))
    found["second_adapter"] = max(
        difference(model_of_more, one, 1.0)
        for one in ask(policy, [request(seed, stop=()) for seed in range(8)])
    )
    frozen = ask(policy, [request(seed, stop=(), seat="frozen") for seed in range(8)])
    found["frozen"] = max(difference(model, one, 1.0) for one in frozen)
    found["frozen_version"] = {one.policy_version for one in frozen} == {0}
    found["refused"] = [
        refused(policy.update(None, 5)),
        refused(policy.sample(request(temperature=0.001))),
        refused(policy.sample(request(max_tokens=0))),
        refused(
            policy.sample(SampleRequest((Message("user", "x" * 5000),), 1.0, 5, (), 0, "d", TurnId(0, 0)))
        ),
    ]
    found["version_after"] = policy.version

    asyncio.run(policy.update(folder / "model", 6))
    policy._speech = speech_of(tokenizer, policy)
    thinker = LocalPolicy(model, tokenizer, thinking=True)
    budgets = [request(seed, temperature=0.0, thinking_tokens=20) for seed in range(4)]
    found["thinking"] = said(ask(policy, budgets)) == said(ask(thinker, budgets))
    found["forced"] = sum(len(one.forced) for one in ask(policy, budgets))
    musing = ask(policy, [request(seed, max_tokens=80, stop=(" 1",)) for seed in range(40)])
    open_ended = [one for one in musing if " 1" in one.text and "</think>" not in one.text]
    found["not_stopped_thinking"] = [len(one.tokens) for one in open_ended if one.stop_reason == "length"]
    found["musing"] = max(difference(model, one, 1.0) for one in musing)
    print(json.dumps(found))


def speech_of(tokenizer, policy):
    from debate_rl.inference.speech import Speech

    return Speech(tokenizer, ends=policy._speech.ends, thinking=True, context_tokens=policy.context_tokens)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
