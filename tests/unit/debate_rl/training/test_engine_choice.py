"""Which engine a configuration asks for, how weights get there, and what cannot be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from debate.policies.vllm_transfer import Transfer
from debate_rl import models
from debate_rl.config import Config
from debate_rl.engines import _adapter_folder, refuse_training, shares_gpu, weight_transfer

URL = "http://localhost:8000/v1"


def config_of(lookahead=0, lora_rank=0, **vllm) -> Config:
    model = {"name_or_path": "some/model", "policy": "vllm", "lora_rank": lora_rank, "vllm": vllm}
    tables = {"env": {"kind": "pair_sum"}, "train": {"lookahead": lookahead}}
    return Config.model_validate({"model": model, **tables})


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"servers": [URL]}, r"model\.vllm\.servers: take adapters of a model that has a name"),
        (
            {"tensor_parallel_size": 2},
            r"tensor_parallel_size = 2: .* set model\.vllm\.engines = 1, or train an",
        ),
    ],
)
def test_what_cannot_take_whole_weights_takes_an_adapter(given, line):
    with pytest.raises(ValueError, match=line):
        refuse_training(config_of(**given))
    refuse_training(config_of(lora_rank=4, **given))


def test_engines_and_servers_are_not_for_one_run():
    with pytest.raises(
        ValueError, match="engines = 1 are started beside the learner, and servers run already"
    ):
        config_of(engines=1, servers=[URL])


@pytest.mark.parametrize(
    ("vllm", "said"),
    [
        (
            {"engines": 2},
            r"model\.vllm\.engines = 2: is for vLLM alone; set model\.policy = \"vllm\", or leave",
        ),
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
        Config.model_validate({"model": {**tables, "vllm": {"sleep": False, "max_model_len": 64}}})


def test_a_folder_for_adapters_is_for_servers():
    config_of(adapter_folder="/a", servers=[URL])
    with pytest.raises(
        ValueError, match=r'adapter_folder = "/a": is for servers that run already; name them'
    ):
        config_of(adapter_folder="/a", engines=1)


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
def test_where_the_engines_are_decides_how_whole_weights_go(
    device, gpus, learners, lora_rank, backend, monkeypatch
):
    monkeypatch.setattr(models, "resolve_device", lambda _: SimpleNamespace(type=device))
    config = config_of(lora_rank=lora_rank, engines=1, tensor_parallel_size=2)
    expected = None if backend is None else Transfer(backend, "bfloat16", 2)
    assert weight_transfer(config, gpus, learners) == expected


@pytest.mark.parametrize(
    ("given", "gpus", "shared"),
    [
        ({}, 1, True),
        ({}, 8, True),
        ({"lookahead": 1}, 1, True),
        ({"lookahead": 1}, 2, False),
        ({"engines": 1}, 1, True),
        ({"engines": 1}, 2, False),
        ({"servers": [URL]}, 1, False),
    ],
)
def test_an_engine_is_on_the_learners_gpu_where_there_is_no_other(given, gpus, shared):
    assert shares_gpu(config_of(**given), gpus) is shared


def test_a_folder_for_adapters_must_be_there(tmp_path):
    assert _adapter_folder(None) is None
    assert _adapter_folder(str(tmp_path)) == tmp_path.resolve()
    with pytest.raises(ValueError, match=r"model\.vllm\.adapter_folder=.*/none: is no folder"):
        _adapter_folder(str(tmp_path / "none"))
