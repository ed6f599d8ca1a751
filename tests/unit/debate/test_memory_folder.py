from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from debate.policies import vllm_weights
from debate.policies.vllm_weights import memory_folder

LEFT = """
import os, signal
from pathlib import Path
from debate.policies import vllm_weights
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
