"""The loop of vLLM's engine, with an engine that answers a prompt of n tokens in n steps."""

import asyncio
from types import SimpleNamespace

import pytest

from debate_rl.inference.vllm import EngineLoop, engine_words


class Engine:
    """Each step counts every request down by one; ``broken`` makes the steps raise."""

    def __init__(self):
        self.left, self.aborted, self.steps, self.broken = {}, [], 0, False
        self.output_processor = SimpleNamespace(request_states={})

    def add_request(self, name, prompt, params, *, lora_request):
        if not prompt["prompt_token_ids"]:
            raise ValueError("an empty prompt")
        self.left[name] = len(prompt["prompt_token_ids"])
        own = f"{name}-of-the-engine"
        self.output_processor.request_states[own] = SimpleNamespace(logprobs_processor=SimpleNamespace())
        return own

    def abort_request(self, names):
        self.aborted += names
        for name in names:
            del self.left[name]

    def step(self):
        if self.broken:
            raise RuntimeError("the engine died")
        self.steps += 1
        self.left = {name: left - 1 for name, left in self.left.items()}
        done = [name for name, left in self.left.items() if left == 0]
        for name in done:
            del self.left[name]
        return [SimpleNamespace(request_id=name, finished=True, outputs=[f"answer {name}"]) for name in done]


def test_requests_share_the_steps_and_each_goes_on_when_it_can():
    engine = Engine()
    loop, order = EngineLoop(engine), []

    async def speaker(sizes):
        for size in sizes:
            order.append((size, await loop.complete([1] * size, None, None)))

    async def both():
        await asyncio.gather(speaker([2, 2]), speaker([5]))

    asyncio.run(both())
    assert [size for size, _ in order] == [2, 2, 5]
    assert engine.steps <= 6  # and not 9
    assert not loop.state().busy
    assert asyncio.run(loop.complete([1], None, None)).outputs == ["answer 3"]  # another event loop, later


def test_a_cancelled_request_is_dropped():
    engine = Engine()
    loop = EngineLoop(engine)

    async def given_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await loop.complete([1] * 10**6, None, None)
        return await loop.complete([1], None, None)

    assert asyncio.run(given_up()).outputs == ["answer 1"]
    assert engine.aborted == ["0"]


@pytest.mark.parametrize(
    ("broken", "prompts", "answers"),
    [(True, ([1], [1]), ["the engine died"] * 2), (False, ([], [1]), ["an empty prompt", "answer 1"])],
)
def test_what_the_engine_raises_goes_to_everybody_and_a_refusal_to_its_request(broken, prompts, answers):
    engine = Engine()
    loop, engine.broken = EngineLoop(engine), broken

    async def all_of_them():
        asked = (loop.complete(prompt, None, None) for prompt in prompts)
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(all_of_them())
    assert [str(one) if isinstance(one, Exception) else one.outputs[0] for one in found] == answers
    assert not loop.state().busy


def test_another_event_loop_is_refused_meanwhile():
    class Held(Engine):
        released = False

        def step(self):
            return super().step() if self.released else []

    engine = Held()
    loop = EngineLoop(engine)

    async def here():
        first = asyncio.create_task(loop.complete([1], None, None))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, loop.complete([1], None, None))
        engine.released = True
        return await first

    assert asyncio.run(here()).outputs == ["answer 0"]


def test_nothing_is_computed_while_the_loop_is_paused():
    engine = Engine()
    loop = EngineLoop(engine)

    async def paused():
        loop.may_step.clear()
        asked = asyncio.ensure_future(loop.complete([1, 1], None, None))
        await asyncio.sleep(0.01)
        steps, busy = engine.steps, loop.state().busy
        loop.may_step.set()
        return steps, busy, (await asked).outputs

    assert asyncio.run(paused()) == (0, True, ["answer 0"])
    assert engine.steps == 2


@pytest.mark.parametrize(("on_a_gpu", "words"), [(True, "V2, asynchronous"), (False, "V1, synchronous")])
def test_what_vllm_chose_is_said(on_a_gpu, words):
    config = SimpleNamespace(
        use_v2_model_runner=on_a_gpu,
        scheduler_config=SimpleNamespace(async_scheduling=on_a_gpu),
        cache_config=SimpleNamespace(num_gpu_blocks=10_250, block_size=16),
    )
    assert engine_words(config) == f"model runner {words} scheduling, a cache of 164,000 tokens"
