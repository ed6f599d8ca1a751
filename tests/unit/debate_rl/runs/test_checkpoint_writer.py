"""A checkpoint is written beside a run that goes on, and holds what the run was when it was begun."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from threading import Event

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from debate_rl.runs import checkpoint, checkpoint_writer
from debate_rl.runs.checkpoint import (
    CheckpointWriteError,
    TrainState,
    damage,
    latest_good,
    load_checkpoint,
    save_checkpoint,
    snapshot_of,
)
from debate_rl.runs.checkpoint_writer import CheckpointWriter, on_cpu, size_of


def tiny(seed: int = 0, *, lora: bool = False):
    torch.manual_seed(seed)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    sizes = {"vocab_size": 11, "intermediate_size": 24, "head_dim": 8, "tie_word_embeddings": True}
    model = Qwen3ForCausalLM(Qwen3Config(**shape, **sizes))
    if not lora:
        return model
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model, LoraConfig(r=2, target_modules="all-linear"))


def trained(model):
    """An optimizer that has moved the model once."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model(input_ids=torch.arange(5)[None]).logits.square().sum().backward()
    optimizer.step()
    return optimizer


def begin(writer: CheckpointWriter, folder: Path, step: int, model, optimizer) -> None:
    writer.save(
        folder,
        snapshot_of(TrainState(step=step), model=model, parts={"optimizer": optimizer}),
        keep_last=None,
    )


@pytest.fixture
def gate(monkeypatch):
    """An event that writing waits for."""
    opened, real = Event(), checkpoint.write_model

    def waits(*arguments):
        assert opened.wait(60)
        return real(*arguments)

    monkeypatch.setattr(checkpoint, "write_model", waits)
    return opened


@pytest.mark.parametrize("lora", [False, True])
def test_it_holds_what_the_run_was_while_the_run_goes_on(tmp_path, gate, lora):
    model = tiny(lora=lora)
    optimizer = trained(model)
    gate.set()
    there = save_checkpoint(
        tmp_path / "at_once", TrainState(step=1), model=model, parts={"optimizer": optimizer}
    )
    gate.clear()
    writer = CheckpointWriter()
    begin(writer, tmp_path / "beside", 1, model, optimizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    optimizer.step()
    torch.rand(3)
    assert latest_good(tmp_path / "beside") is None
    gate.set()
    writer.wait()
    path = latest_good(tmp_path / "beside")
    assert path is not None
    name = "adapter_model" if lora else "model"
    one, other = (load_file(p / f"model/{name}.safetensors") for p in (path, there))
    assert one.keys() == other.keys()
    assert all(map(torch.equal, one.values(), other.values()))
    again = tiny(1, lora=lora)
    fresh = trained(again)
    load_checkpoint(path, model=again, parts={"optimizer": fresh})
    assert [(path / f).read_bytes() for f in ("state.json", "trainer.pt")] == [
        (there / f).read_bytes() for f in ("state.json", "trainer.pt")
    ]
    sums = [json.loads((p / "manifest.json").read_text())["files"] for p in (path, there)]
    assert sums[0] == sums[1]


def test_one_is_written_at_a_time(tmp_path, monkeypatch):
    model = tiny()
    optimizer, real, under_way = trained(model), checkpoint.write_model, []

    def alone(*arguments):
        assert not under_way
        under_way.append(1)
        real(*arguments)
        under_way.pop()

    monkeypatch.setattr(checkpoint, "write_model", alone)
    writer = CheckpointWriter()
    for step in (1, 2, 3):
        begin(writer, tmp_path, step, model, optimizer)
    writer.wait()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step_00000{n}" for n in (1, 2, 3)]
    assert [damage(path) for path in tmp_path.iterdir()] == [None] * 3


def test_an_error_comes_out_once_and_later(tmp_path, gate, monkeypatch):
    model = tiny()
    optimizer, writer = trained(model), CheckpointWriter()

    def full(*arguments):
        assert gate.wait(60)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_trainer", full)
    begin(writer, tmp_path, 7, model, optimizer)
    writer.check()
    gate.set()
    with pytest.raises(CheckpointWriteError, match="step_000007: No space left on device; the checkpoints"):
        writer.wait()
    writer.check()
    writer.wait()
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_a_copy_the_run_waits(tmp_path, monkeypatch):
    model = tiny()
    optimizer = trained(model)
    weights = sum(tensor.nbytes for tensor in model.state_dict().values())
    counted = size_of((dict(model.state_dict()), optimizer.state_dict()))
    assert counted > 2 * weights
    monkeypatch.setattr(checkpoint_writer, "free_memory", lambda: 2 * counted - 1)
    monkeypatch.setattr(checkpoint_writer, "Thread", None)
    begin(CheckpointWriter(), tmp_path, 1, model, optimizer)
    assert latest_good(tmp_path) == tmp_path / "step_000001"


def test_what_shares_its_memory_shares_it_in_the_copy():
    one = torch.ones(3)
    copied = on_cpu({"a": one, "b": [one, (one[:2], 5)], "c": "text"})
    one.zero_()
    assert copied["a"] is copied["b"][0]
    assert copied["a"].tolist() == [1.0] * 3
    assert (copied["b"][1][0].tolist(), copied["b"][1][1], copied["c"]) == ([1.0] * 2, 5, "text")
