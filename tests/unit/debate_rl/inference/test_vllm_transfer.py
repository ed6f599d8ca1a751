"""The sender of whole weights, with a vLLM whose sender does what the test says."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch

from debate_rl.inference import vllm_transfer
from debate_rl.inference.remote import Gone
from debate_rl.inference.vllm_transfer import LearntWeights, Link, Transfer

MODEL = torch.nn.Linear(3, 2)


class Engine:
    """The engine's end: it keeps what it is called with, and fails where it is told to."""

    def __init__(self, fails: str = "", error: Exception | None = None) -> None:
        self.fails, self.error, self.calls = fails, error, []

    def call(self, method, *arguments):
        assert method == "receive"
        self.calls.append(arguments)
        future = Future()
        if arguments[0] == self.fails:
            future.set_exception(self.error)
        else:
            future.set_result(None)
        return future


class Sender:
    """As NCCL does, it waits for ever for a worker that has died."""

    def __init__(self, client, source) -> None:
        self.client, self.source, self.aborted = client, source, threading.Event()
        self.model_update_group = SimpleNamespace(destroy=self.aborted.set)

    def send_weights(self):
        self.client.start_weight_update()
        try:
            self.client.update_weights({"names": [one.name for one in self.source.metadata()]})
        except Exception:
            assert self.aborted.wait(10)
            raise
        self.client.finish_weight_update()


@pytest.fixture
def senders(monkeypatch):
    made = []

    def trainer_init(how, *, client, source):
        client.init_weight_transfer_engine({"how": how})
        made.append(Sender(client, source))
        return made[-1]

    modules = {
        "base": SimpleNamespace(ParamMeta=lambda name, dtype, shape: SimpleNamespace(name=name)),
        "factory": SimpleNamespace(WeightTransferTrainerFactory=SimpleNamespace(trainer_init=trainer_init)),
        "ipc_engine": SimpleNamespace(IPCTrainerInitInfo=lambda **settings: settings),
    }
    monkeypatch.setattr(vllm_transfer, "import_module", lambda name: modules[name.rpartition(".")[2]])
    return made


def test_an_engine_is_met_once_and_told_the_version_last(senders):
    engine = Engine()
    link = Link(Transfer("ipc", "bfloat16"), engine)
    link.send(MODEL, 4)
    link.send(MODEL, 5)
    update = [
        ("start_weight_update", {}, None),
        ("update_weights", {"update_info": {"names": ["weight", "bias"]}}, None),
    ]
    how = {"rank": 0, "packed": True, "packed_buffer_size_bytes": 2**28}
    assert engine.calls == [
        ("init_weight_transfer_engine", {"init_info": {"how": how}}, None),
        *update,
        ("finish_weight_update", {}, 4),
        *update,
        ("finish_weight_update", {}, 5),
    ]
    assert len(senders) == 1
    assert not senders[0].aborted.is_set()


@pytest.mark.parametrize("error", [Gone("it ended"), ValueError("no such matrix")])
def test_what_an_engine_fails_with_is_raised_and_the_sender_waits_no_longer(error, senders):
    link = Link(Transfer("ipc", "bfloat16"), Engine("update_weights", error))
    with pytest.raises(type(error), match=str(error)):
        link.send(MODEL, 1)
    assert senders[0].aborted.is_set()


def test_weights_come_in_the_engines_type_and_a_chunk_holds_the_largest():
    source = LearntWeights(MODEL, torch.bfloat16)
    assert source.largest == 2 * 3 * 2
    assert [(name, value.dtype, tuple(value.shape)) for name, value in source] == [
        ("weight", torch.bfloat16, (2, 3)),
        ("bias", torch.bfloat16, (2,)),
    ]
