"""Weights sent to a vLLM engine (with a fake sender), and weights written into a folder in memory."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from debate_rl.inference import vllm_weights
from debate_rl.inference.remote import Gone
from debate_rl.inference.vllm_weights import Link, Transfer, memory_folder, write_weights, written_bytes

MODEL = torch.nn.Linear(3, 2)
LEFT = """
import os, signal
from pathlib import Path
from debate_rl.inference import vllm_weights
vllm_weights.MEMORY = Path.cwd()
folder = vllm_weights.memory_folder()
(Path(folder.name) / "weights").write_bytes(b"16 GB")
os.kill(os.getpid(), signal.SIGKILL)
"""


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
    monkeypatch.setattr(vllm_weights, "import_module", lambda name: modules[name.rpartition(".")[2]])
    return made


def test_an_engine_is_met_once_and_told_the_version_last(senders):
    engine = Engine()
    link = Link(Transfer("ipc", "bfloat16"), engine)
    link.send(MODEL, 4)
    link.send(MODEL, 5)
    update = [("start_weight_update", {}, None)]
    update += [("update_weights", {"update_info": {"names": ["weight", "bias"]}}, None)]
    how = {"rank": 0, "packed": True, "packed_buffer_size_bytes": 2**28}
    met = ("init_weight_transfer_engine", {"init_info": {"how": how}}, None)
    ends = [("finish_weight_update", {}, version) for version in (4, 5)]
    assert engine.calls == [met, *update, ends[0], *update, ends[1]]
    assert len(senders) == 1
    assert not senders[0].aborted.is_set()


@pytest.mark.parametrize("error", [Gone("it ended"), ValueError("no such matrix")])
def test_what_an_engine_fails_with_is_raised_and_the_sender_waits_no_longer(error, senders):
    link = Link(Transfer("ipc", "bfloat16"), Engine("update_weights", error))
    with pytest.raises(type(error), match=str(error)):
        link.send(MODEL, 1)
    assert senders[0].aborted.is_set()


def test_weights_come_in_the_engines_type_and_a_chunk_holds_the_largest():
    source = vllm_weights.LearntWeights(MODEL, torch.bfloat16)
    assert source.largest == 2 * 3 * 2
    assert [(name, value.dtype, tuple(value.shape)) for name, value in source] == [
        ("weight", torch.bfloat16, (2, 3)),
        ("bias", torch.bfloat16, (2,)),
    ]


@pytest.fixture
def memory(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(vllm_weights, "MEMORY", tmp_path)
    return tmp_path


def test_what_a_killed_process_left_in_memory_is_removed_by_the_next(memory):
    killed = subprocess.run([sys.executable, "-c", LEFT], cwd=memory, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = memory.iterdir()
    assert (left / "weights").exists()
    with memory_folder() as own:
        assert list(memory.iterdir()) == [Path(own)]


def test_the_folders_of_living_processes_and_of_others_stay(memory):
    (memory / "debate-rl-foreign").mkdir()
    (memory / "else").mkdir()
    with memory_folder() as one, memory_folder() as other:
        kept = {Path(one), Path(other), memory / "debate-rl-foreign", memory / "else"}
        assert set(memory.iterdir()) == kept
    assert set(memory.iterdir()) == {memory / "debate-rl-foreign", memory / "else"}


def test_without_a_folder_in_memory_it_lies_on_the_disk(memory, monkeypatch):
    monkeypatch.setattr(vllm_weights, "MEMORY", memory / "none")
    with memory_folder() as own:
        assert Path(own).is_dir()
    assert not Path(own).exists()


@pytest.mark.parametrize(("free", "in_memory"), [(349, False), (350, True)])
def test_memory_without_room_for_newer_and_older_weights_is_left(free, in_memory, memory, monkeypatch):
    monkeypatch.setattr(vllm_weights.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with memory_folder(175) as own:
        assert (Path(own).parent == memory) is in_memory


def test_the_bytes_of_an_update_are_those_of_its_file(tmp_path):
    model = torch.nn.Linear(64, 64)
    write_weights(model, tmp_path / "whole", dtype="bfloat16")
    assert written_bytes(model, torch.bfloat16) == 2 * (64 * 64 + 64)
    header = (tmp_path / "whole/model.safetensors").stat().st_size - written_bytes(model, torch.bfloat16)
    assert 0 < header < 400
    model.peft_config = {}
    model.bias.requires_grad = False
    assert written_bytes(model, torch.float32) == 4 * 64 * 64


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_weights_that_find_no_room_are_said_in_one_line(lora_rank, make_tiny, tmp_path, files_of_at_most):
    model, _ = make_tiny(lora_rank=lora_rank)
    cannot = rf"^{tmp_path / 'version_1'}: cannot write the weights: .*; make room for them \("
    with files_of_at_most(1024), pytest.raises(ValueError, match=cannot) as found:
        write_weights(model, tmp_path / "version_1", dtype="float32")
    assert "\n" not in str(found.value)
