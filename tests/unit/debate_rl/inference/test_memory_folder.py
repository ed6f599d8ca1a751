from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from debate_rl.inference import vllm_weights
from debate_rl.inference.vllm_weights import memory_folder, write_weights, written_bytes

LEFT = """
import os, signal
from pathlib import Path
from debate_rl.inference import vllm_weights
vllm_weights.MEMORY = Path.cwd()
folder = vllm_weights.memory_folder()
(Path(folder.name) / "weights").write_bytes(b"16 GB")
os.kill(os.getpid(), signal.SIGKILL)
"""


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
def test_memory_without_room_for_the_newest_weights_and_those_before_is_left(
    free, in_memory, memory, monkeypatch
):
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
    cannot = (
        rf"^{tmp_path / 'version_1'}: cannot write the weights: .*; make room for them \(in a container: "
    )
    with files_of_at_most(1024), pytest.raises(ValueError, match=cannot) as found:
        write_weights(model, tmp_path / "version_1", dtype="float32")
    assert "\n" not in str(found.value)
