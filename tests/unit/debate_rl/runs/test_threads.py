import json
from pathlib import Path

import pytest
import torch

from debate_rl.config import Config
from debate_rl.runs import weights
from debate_rl.runs.weights import use_threads


@pytest.fixture(autouse=True)
def torch_threads(monkeypatch) -> list[int]:
    """A machine of 16 cores, no variable set, and torch with 8 threads; return what torch is given."""
    given = [8]
    for name in weights.EXPLICIT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(weights, "usable_cores", lambda: 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: given[-1])
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    return given


def config_of(run: Path, width: int, device: str = "cpu") -> Config:
    tiny = {"hidden_size": width, "heads": 4}
    return Config.model_validate({"run": {"dir": str(run)}, "model": {"device": device, "tiny": tiny}})


@pytest.mark.parametrize(("width", "count"), [(128, 1), (504, 1), (512, 8), (2048, 8)])
def test_a_narrow_model_has_one_thread_and_another_half_the_cores(width, count, tmp_path, torch_threads):
    found = use_threads(config_of(tmp_path, width))
    assert found is not None
    assert found[1].startswith(f"threads: {count} of 16 cores, ")
    assert torch_threads[-1] == count


def test_what_the_user_sets_wins(tmp_path, torch_threads, monkeypatch):
    torch_threads.append(2)  # torch.set_num_threads(2)
    assert use_threads(config_of(tmp_path, 2048)) is not None
    assert torch_threads[-1] == 2
    torch_threads.append(5)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert use_threads(config_of(tmp_path, 128)) == (5, "threads: 5 of 16 cores, by OMP_NUM_THREADS")
    assert torch_threads[-1] == 5


def test_a_run_that_resumes_has_the_number_that_it_had(tmp_path, torch_threads, monkeypatch):
    (tmp_path / "run.json").write_text(json.dumps({"threads": 3}))
    found = use_threads(config_of(tmp_path, 128))
    assert found is not None
    assert found[1].startswith("threads: 3 of 16 cores, as this run had before; ")
    assert torch_threads[-1] == 3
    torch_threads.append(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    found = use_threads(config_of(tmp_path, 128))
    assert found is not None
    assert found[1].endswith("by OMP_NUM_THREADS; this run had 3 before, and rounding may differ")


def test_a_gpu_leaves_threads_alone(tmp_path, torch_threads, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert use_threads(config_of(tmp_path, 128, "cuda")) is None
    assert torch_threads == [8]
