"""A vLLM that sleeps while the learner learns: what it is told, and in which order."""

import asyncio
from types import SimpleNamespace

import pytest
import torch

from debate_rl.inference import vllm
from debate_rl.inference.vllm import VLLMPolicy


class FakeLLM:
    """Keeps what it is told."""

    def __init__(self, settings):
        self.settings, self.told = settings, []
        self.llm_engine = SimpleNamespace(
            model_config=SimpleNamespace(dtype=torch.bfloat16, max_model_len=100),
            add_lora=lambda lora: self.told.append("adapter") or True,
            remove_lora=lambda number: self.told.append(f"remove {number}"),
            reset_prefix_cache=lambda **_: self.told.append("cache") or True,
        )

    def collective_rpc(self, method, **_):
        self.told.append(method)

    def sleep(self, *, level):
        self.told.append(f"sleep {level}")

    def wake_up(self, *, tags):
        self.told.append(f"wake {tags}")


@pytest.fixture
def policy_of(monkeypatch):
    def make(**settings):
        return VLLMPolicy("model", **settings)

    monkeypatch.setattr(vllm, "_engine", lambda _, **settings: FakeLLM(settings))
    monkeypatch.setattr(vllm, "speech_of", lambda *_, **__: SimpleNamespace(context_tokens=100))
    monkeypatch.setattr(vllm, "import_module", lambda _: SimpleNamespace(LoRARequest=lambda *parts: parts))
    return make


@pytest.fixture
def adapter(tmp_path):
    (tmp_path / "adapter_config.json").touch()
    return tmp_path


WHOLE = ["reload_weights", "refresh_head", "cache"]


def test_whole_weights_are_dropped_and_the_cache_comes_back_behind_the_new_ones(policy_of):
    policy = policy_of(sleeps=True)
    assert policy._llm.settings["enable_sleep_mode"] is True
    policy.sleep()
    policy.sleep()
    asyncio.run(policy.update(torch.nn.Linear(2, 2), 1))
    asyncio.run(policy.update(torch.nn.Linear(2, 2), 2))
    woken = ["sleep 2", "wake ['weights']", *WHOLE, "wake ['kv_cache']"]
    assert policy._llm.told == [*woken, *WHOLE]
    assert policy.version == 2


def test_the_base_below_an_adapter_is_kept(policy_of, adapter):
    policy = policy_of(sleeps=True, max_lora_rank=4)
    policy.sleep()
    asyncio.run(policy.update(adapter, 1))
    assert policy._llm.told == ["sleep 1", "wake ['weights']", "adapter", "wake ['kv_cache']"]


def test_it_does_not_sleep_while_anybody_waits_for_a_reply_nor_unless_told(policy_of, monkeypatch):
    awake = policy_of()
    awake.sleep()
    assert "enable_sleep_mode" not in awake._llm.settings
    policy = policy_of(sleeps=True)
    monkeypatch.setattr(policy._loop, "_waiting", {"0": None})
    with pytest.raises(RuntimeError, match="cannot sleep while requests are running"):
        policy.sleep()
    assert awake._llm.told == policy._llm.told == []


def test_an_engine_whose_weights_do_not_come_stays_asleep(policy_of):
    policy = policy_of(sleeps=True)
    policy.sleep()
    with pytest.raises(ValueError, match="needs the folder of an export"):
        asyncio.run(policy.update(None, 1))
    assert policy._llm.told == ["sleep 2", "wake ['weights']"]
    assert policy.version == 0
