"""Which engine a configuration asks for, how weights get there, and what cannot be."""

from types import SimpleNamespace

import pytest
import torch

from debate_rl import engines, models
from debate_rl.config import Config
from debate_rl.engines import make_policy, refuse_training, weight_transfer
from debate_rl.inference.vllm_engines import shares_gpu
from debate_rl.inference.vllm_weights import Transfer

URL = "http://localhost:8000/v1"


def config_of(async_level=0, lora_rank=0, **vllm) -> Config:
    model = {"name_or_path": "some/model", "policy": "vllm", "lora_rank": lora_rank, "vllm": vllm}
    tables = {"env": {"kind": "pair_sum"}, "train": {"async_level": async_level}}
    return Config.model_validate({"model": model, **tables})


def config_on(device, **given) -> Config:
    config = config_of(**given)
    return config.model_copy(update={"model": config.model.model_copy(update={"device": device})})


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"servers": [URL]}, r"model\.vllm\.servers: servers can load adapters of a named model"),
        ({"tensor_parallel_size": 2}, r"tensor_parallel_size = 2: .* set model\.vllm\.engines = 1"),
    ],
)
def test_what_cannot_take_whole_weights_takes_an_adapter(given, line):
    with pytest.raises(ValueError, match=line):
        refuse_training(config_of(**given))
    refuse_training(config_of(lora_rank=4, **given))


@pytest.mark.parametrize(
    ("vllm", "said"),
    [
        ({"engines": 2}, r"model\.vllm\.engines = 2: is for vLLM alone; set model\.policy = \"vllm\""),
        ({"servers": [URL]}, rf'model\.vllm\.servers = \["{URL}"\]: is for vLLM alone'),
        ({"sleep": True}, r"model\.vllm\.sleep = true: is for vLLM alone"),
        ({"adapter_folder": "/a", "servers": [URL]}, r"model\.vllm\.servers = .*: is for vLLM alone"),
        ({"adapter_folder": "/a"}, r"model\.vllm\.adapter_folder = \"/a\": is for vLLM alone"),
    ],
)
def test_what_another_policy_would_ignore_is_refused(vllm, said):
    for policy in (None, "openai", "mine:Policy"):
        tables = {"name_or_path": "some/model", "policy": policy}
        with pytest.raises(ValueError, match=said):
            Config.model_validate({"model": {**tables, "vllm": vllm}})
        Config.model_validate({"model": {**tables, "vllm": {"sleep": False, "enforce_eager": True}}})


@pytest.mark.parametrize(
    ("device", "gpus", "learners", "lora_rank", "backend"),
    [
        ("cuda", 1, 1, 0, "ipc"),
        ("cuda", 3, 1, 0, "nccl"),
        ("cuda", 3, 1, 4, None),
        ("cuda", 8, 4, 0, None),
        ("cpu", 0, 1, 0, None),
        ("cpu", 2, 1, 0, None),
    ],
)
def test_where_engines_are_decides_how_weights_go(device, gpus, learners, lora_rank, backend, monkeypatch):
    monkeypatch.setattr(models, "resolve_device", lambda _: SimpleNamespace(type=device))
    config = config_of(lora_rank=lora_rank, engines=1, tensor_parallel_size=2)
    expected = None if backend is None else Transfer(backend, "bfloat16", 2)
    assert weight_transfer(config, gpus, learners) == expected


@pytest.mark.parametrize(
    ("given", "gpus", "shared"),
    [
        ({}, 1, True),
        ({}, 8, True),
        ({"async_level": 1}, 1, True),
        ({"async_level": 1}, 2, False),
        ({"engines": 1}, 1, True),
        ({"engines": 1}, 2, False),
        ({"servers": [URL]}, 1, False),
    ],
)
def test_an_engine_is_on_the_learners_gpu_where_there_is_no_other(given, gpus, shared):
    assert shares_gpu(config_of(**given), gpus) is shared


@pytest.mark.parametrize("given", [{}, {"async_level": 1}, {"engines": 2}])
def test_the_learner_has_the_first_gpu_since_vllm_counts_from_there(given, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(engines, "find_spec", lambda _: True)  # vLLM is there
    said = r"^model\.device='cuda:1': .* set auto, and order the GPUs"
    for make in (make_policy, lambda config: engines.open_policy(config, None)):
        with pytest.raises(ValueError, match=said):
            make(config_on("cuda:1", **given))
    for device in ("cuda:0", "cuda", "auto"):
        engines._refuse_other_gpu(config_on(device, **given))


@pytest.mark.parametrize(
    ("given", "gpu", "for_cpus", "refused"),
    [
        ({}, False, False, True),
        ({"async_level": 1}, False, False, True),
        ({}, True, False, False),
        ({}, False, True, False),
        ({"servers": [URL], "lora_rank": 4}, False, False, False),
    ],
)
def test_vllm_on_a_machine_without_a_gpu_is_refused_in_one_line(given, gpu, for_cpus, refused, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(engines, "version", lambda _: "0.32.0+cpu" if for_cpus else "0.32.0")
    if not refused:
        engines.refuse_no_gpu(config_of(**given))
        return
    with pytest.raises(ValueError, match=r"^no GPU here: torch sees none, but model.policy = \"vllm\""):
        engines.refuse_no_gpu(config_of(**given))
