"""Run in the bench environment: programs in the replies of a tiny model in vLLM, as JSON on the last line.

python vllm_tools.py FOLDER: the model is written below it.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from vllm_debate import difference

from debate import Message, SampleRequest
from debate.tools import Ran
from debate.types import TurnId
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.tools import ToolPolicy
from debate_rl.inference.vllm import VLLMPolicy
from debate_rl.models import load_model

PIECES = ("```python\nprint(6 * 7)\n```\n", "```python\n1 / 0\n```\n", "</solution>", "\\boxed{42}")
TINY = TinyConfig(hidden_size=64, heads=2, intermediate_size=48, init_std=0.3, context_tokens=1024)


class Programs:
    """The first program of all ends when nobody else has anything left to say."""

    def __init__(self):
        self.ran, self.others_done = 0, asyncio.Event()

    @asynccontextmanager
    async def session(self):
        yield self

    async def run(self, code):
        self.ran += 1
        if self.ran == 1:
            async with asyncio.timeout(120):
                await self.others_done.wait()
        if "6 * 7" in code:
            return Ran("ok", "42\n")
        return Ran("error", "ZeroDivisionError\n", "ZeroDivisionError")


def request(seed, temperature=1.0):
    return SampleRequest(
        (Message("user", f"hello {seed}"),), temperature, 90, ("</solution>",), seed, "d", TurnId(seed, 0)
    )


async def ask(policy, programs, requests):
    """Return the replies; the first program goes on when only its own reply is left."""
    left = len(requests)

    async def one(asked):
        nonlocal left
        reply = await policy.sample(asked)
        left -= 1
        if left == 1:
            programs.others_done.set()
        return reply

    return await asyncio.gather(*map(one, requests))


def said(reply):
    return reply.prompt_tokens, reply.tokens, reply.text, reply.offsets, reply.forced, reply.calls


def main():
    model, tokenizer = load_model(ModelConfig(tiny=TINY, device="cpu"), vocabulary=PIECES, seed=3)
    folder = Path(sys.argv[1]) / "model"
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    inner = VLLMPolicy(folder, dtype="float32", max_model_len=1024, enforce_eager=True)
    requests = [request(seed) for seed in range(12)]
    programs = Programs()
    replies = asyncio.run(ask(ToolPolicy(inner, programs), programs, requests))
    greedy = []
    for policy in (inner, LocalPolicy(model, tokenizer)):
        quick = Programs()
        quick.others_done.set()
        cold = [request(seed, 0.0) for seed in range(12)]
        greedy.append([said(one) for one in asyncio.run(ask(ToolPolicy(policy, quick), quick, cold))])
    print(
        json.dumps(
            {
                "calls": sum(len(reply.calls) for reply in replies),
                "waited": programs.others_done.is_set(),
                "difference": max(difference(model, reply, 1.0) for reply in replies),
                "read": all(inner.read(reply.tokens) == (reply.text, reply.offsets) for reply in replies),
                "greedy": greedy[0] == greedy[1],
                "greedy_calls": sum(len(one[-1]) for one in greedy[0]),
            }
        )
    )


if __name__ == "__main__":
    main()
