import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from safetensors.torch import load_file, save_file  # noqa: E402

from debate_rl.runs.checkpoint import (  # noqa: E402  # noqa: E402
    HIDDEN,
    CheckpointError,
    CheckpointWriteError,
    TrainState,
    best_checkpoint,
    checkpoints,
    damage,
    latest_good,
    load_checkpoint,
    save_checkpoint,
    step_of,
    tidy,
)
from debate_rl.runs.weights import named_weights  # noqa: E402

STATE = TrainState(step=12, policy_version=12, data_position=96, seed=2**62, baselines=(("solver/A", 1 / 3),))


SIZES = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}


def tiny(seed: int = 0, *, hidden: int = 32, tied: bool = True):
    torch.manual_seed(seed)
    config = transformers.Qwen3Config(**SIZES | {"hidden_size": hidden}, tie_word_embeddings=tied)
    return transformers.Qwen3ForCausalLM(config)


def tiny_lora(seed: int = 0, *, rank: int = 4):
    config = peft.LoraConfig(r=rank, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    base = tiny(0)
    if seed:
        torch.manual_seed(seed)
    return peft.get_peft_model(base, config)


def trained(model, steps: int = 2):
    """Take a few AdamW steps so that the optimizer has a state."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    for _ in range(steps):
        advance(model, optimizer, scheduler)
    return optimizer, scheduler


def advance(model, optimizer, scheduler) -> None:
    ids = torch.randint(0, 40, (2, 8))  # from the global generator: a resumed run must draw the same
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()


def same(a, b) -> bool:
    ours, theirs = a.state_dict(), b.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("build", [tiny, lambda s=0: tiny(s, tied=False), tiny_lora])
def test_a_loaded_run_goes_on_bit_for_bit(tmp_path: Path, build):
    model = build(0)
    optimizer, scheduler = trained(model)
    parts = {"optimizer": optimizer, "scheduler": scheduler}
    path = save_checkpoint(tmp_path, STATE, model=model, parts=parts)
    for _ in range(2):
        advance(model, optimizer, scheduler)
    draws = (random.random(), np.random.random(), torch.rand(1).item())

    again = build(1)
    new_optimizer, new_scheduler = trained(again, steps=0)
    state = load_checkpoint(path, model=again, parts={"optimizer": new_optimizer, "scheduler": new_scheduler})
    assert state == STATE
    for _ in range(2):
        advance(again, new_optimizer, new_scheduler)
    assert same(model, again)
    assert (random.random(), np.random.random(), torch.rand(1).item()) == draws


def test_weights_are_safetensors_that_load_elsewhere(tmp_path: Path):
    full = save_checkpoint(tmp_path / "full", STATE, model=tiny(3)) / "model"
    assert same(transformers.Qwen3ForCausalLM.from_pretrained(full), tiny(3))
    lora = save_checkpoint(tmp_path / "lora", STATE, model=tiny_lora()) / "model"
    assert not list(lora.glob("model*.safetensors"))  # the adapter alone, not its base
    assert same(peft.PeftModel.from_pretrained(tiny(0), lora), tiny_lora())


def test_an_architecture_saved_under_other_names_comes_back(tmp_path: Path):
    experts = {"moe_intermediate_size": 16, "num_experts": 2, "num_experts_per_tok": 1}
    config = transformers.Qwen3MoeConfig(**SIZES, **experts)
    torch.manual_seed(0)
    model = transformers.Qwen3MoeForCausalLM(config)
    other = transformers.Qwen3MoeForCausalLM(config)
    load_checkpoint(save_checkpoint(tmp_path, STATE, model=model), model=other)
    assert same(model, other)


def saved(folder: Path, *steps: int) -> list[Path]:
    return [save_checkpoint(folder, TrainState(step=step), model=tiny()) for step in steps]


def test_the_newest_whole_checkpoint_is_found_and_the_damaged_are_named(tmp_path: Path):
    assert latest_good(tmp_path / "none") is None
    paths = saved(tmp_path, 1, 2, 3, 4, 5)
    (paths[4] / "model" / "config.json").unlink()
    trainer = paths[3] / "trainer.pt"
    data = bytearray(trainer.read_bytes())
    data[len(data) // 2] ^= 1
    trainer.write_bytes(data)
    (paths[2] / "manifest.json").write_text("{}")
    named: list[str] = []
    assert latest_good(tmp_path, on_damaged=named.append) == paths[1]
    causes = [line.split(": ")[1].split(";")[0] for line in named]
    assert causes == ["missing", "was changed after it was written", "damaged ('format')"]
    with pytest.raises(CheckpointError, match=r"step_000004/trainer.pt: was changed after it was written"):
        load_checkpoint(paths[3], model=tiny())
    shutil.rmtree(paths[2])
    shutil.rmtree(paths[3])
    with pytest.warns(UserWarning, match=r"step_000005/model/config.json: missing"):
        latest_good(tmp_path)


def test_only_the_newest_are_kept(tmp_path: Path):
    saved(tmp_path, 1, 2, 1000000)
    save_checkpoint(tmp_path, TrainState(step=1000001), model=tiny(), keep_last=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["step_1000000", "step_1000001"]
    with pytest.raises(ValueError, match="keep_last must be at least 1, got 0"):
        save_checkpoint(tmp_path, STATE, model=tiny(), keep_last=0)


def test_a_step_saved_again_replaces(tmp_path: Path):
    saved(tmp_path, 7, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000007"]


KILLED = """
import os, sys
from pathlib import Path
from debate_rl.runs import checkpoint
from tests_tiny import tiny
checkpoint.publish = lambda fresh, final: os.kill(os.getpid(), 9)
checkpoint.save_checkpoint(Path(sys.argv[1]), checkpoint.TrainState(step=2), model=tiny())
"""


@pytest.mark.slow
def test_a_writer_killed_before_the_rename_leaves_the_one_before(tmp_path: Path):
    [first] = saved(tmp_path / "c", 1)
    shutil.copy(__file__, tmp_path / "tests_tiny.py")
    path = os.pathsep.join([str(tmp_path), os.getcwd()])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "c")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, timeout=300, check=False)
    assert done.returncode == -9
    assert latest_good(tmp_path / "c") == first


@pytest.mark.parametrize("limit", [200, 2000, 40_000])  # config.json, the weights, the optimizer
def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path, files_of_at_most, limit: int):
    [first] = saved(tmp_path, 1)
    model = tiny()
    optimizer, _ = trained(model)
    said = r"cannot write checkpoint .*step_000012: .*; the checkpoints"
    with files_of_at_most(limit), pytest.raises(CheckpointWriteError, match=said):
        save_checkpoint(tmp_path, STATE, model=model, parts={"optimizer": optimizer})
    assert [path.name for path in tmp_path.iterdir()] == ["step_000001"]
    assert latest_good(tmp_path) == first


def test_another_model_is_refused_by_name(tmp_path: Path):
    full = save_checkpoint(tmp_path / "full", STATE, model=tiny())
    lora = save_checkpoint(tmp_path / "lora", STATE, model=tiny_lora())
    for path, model, said in (
        (full, tiny(hidden=64), "the weights are of another model: model"),
        (full, tiny_lora(), "it has full weights, but this run trains an adapter"),
        (lora, tiny(), "it has an adapter, but this run trains full weights"),
    ):
        with pytest.raises(CheckpointError, match=said):
            load_checkpoint(path, model=model)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("trainer.pt", b"no zip"),
        ("trainer.pt", b""),
        ("trainer.pt", pickle.dumps(exit, protocol=2)),
        ("state.json", b'{"state": [], "rng": 3}'),
        ("state.json", b"[" * 100_000),
        ("model/model.safetensors", b"\xff" * 100),
    ],
)
def test_a_file_of_another_making_is_one_clear_line(tmp_path: Path, name: str, data: bytes):
    model = tiny()
    path = save_checkpoint(tmp_path, STATE, model=model)
    (path / name).write_bytes(data)
    with pytest.raises(CheckpointError, match="does not fit this run"):
        load_checkpoint(path, model=model, verify=False)


def test_the_best_is_kept_beside_the_newest_and_a_link_leads_to_it(tmp_path: Path):
    figures = {1: 0.25, 2: 0.75, 3: 0.5, 4: 0.5, 5: 0.875}
    best: tuple[int, float] | None = None
    kept = []
    for step, figure in figures.items():
        best = (step, figure) if best is None or figure > best[1] else best
        save_checkpoint(tmp_path, TrainState(step=step, best=best), model=tiny(), keep_last=1)
        kept.append([step_of(path) for path in checkpoints(tmp_path)])
        assert os.readlink(tmp_path / "best") == f"step_{best[0]:06d}"
    assert kept == [[1], [2], [2, 3], [2, 4], [5]]
    state = load_checkpoint(tmp_path / "best", model=tiny(1))
    assert (state.step, state.best) == (5, (5, 0.875))


def test_damaged_checkpoints_are_set_aside_when_a_run_goes_on_and_push_no_good_one_out(tmp_path: Path):
    paths = saved(tmp_path, 4, 6, 8)
    for path in paths[1:]:
        (path / "state.json").write_text("torn")
    (tmp_path / f"{HIDDEN}step_000009").mkdir()
    tidy(tmp_path, 4, best=None, keep_last=2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step_000004", "step_000006.damaged", "step_000008.damaged"]
    save_checkpoint(tmp_path, TrainState(step=5), model=tiny(), keep_last=2)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [4, 5]  # and not 6 and 8, which are no good
    (saved(tmp_path, 6)[0] / "state.json").write_text("torn")
    tidy(tmp_path, 5, best=None, keep_last=2)
    assert (tmp_path / "step_000006.2.damaged").is_dir()


def test_a_pruning_that_was_cut_short_is_finished_when_the_run_goes_on(tmp_path: Path):
    saved(tmp_path, 1, 2, 3)
    tidy(tmp_path, 3, best=1, keep_last=1)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [1, 3]
    tidy(tmp_path, 3, best=None, keep_last=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_000003"]


def test_an_adapter_of_another_rank_is_one_line_and_changes_nothing(tmp_path: Path):
    path = save_checkpoint(tmp_path, STATE, model=tiny_lora(1, rank=4))
    model = tiny_lora(rank=8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path, model=model)
    assert str(caught.value) == (
        f"{path}: does not fit this run: the adapter has rank 4, but this run's has 8 (model.lora_rank)"
    )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Touches:
    """Unpickled, it makes a file: code instead of data."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path):
    path = save_checkpoint(tmp_path, STATE, model=tiny())
    made = tmp_path / "made"
    torch.save({"parts": {}, "torch_rng": Touches(made)}, path / "trainer.pt")
    with pytest.raises(CheckpointError, match=r": trainer.pt must be"):
        load_checkpoint(path, model=tiny(), verify=False)
    assert not made.exists()


def test_weights_under_names_that_no_layer_has_are_refused_and_not_made_up(tmp_path: Path):
    path = save_checkpoint(tmp_path, STATE, model=tiny())
    file = path / "model/model.safetensors"
    save_file({f"other.{name}": value for name, value in load_file(file).items()}, file)
    with pytest.raises(CheckpointError, match="the weights are of another model: "):
        load_checkpoint(path, model=tiny(1), verify=False)


def test_a_file_of_another_size_is_damage_without_being_read(tmp_path: Path):
    path = save_checkpoint(tmp_path, STATE, model=tiny())
    with (path / "trainer.pt").open("r+b") as file:
        file.truncate(1 << 42)
    assert damage(path) == f"{path / 'trainer.pt'}: was changed after it was written"


def test_a_copy_that_followed_links_is_resumed_and_knows_its_best(tmp_path: Path):
    run, copy = tmp_path / "run/checkpoints", tmp_path / "copy/checkpoints"
    for step in (1, 2):
        save_checkpoint(run, TrainState(step=step, best=(1, 0.5)), model=tiny())
    shutil.copytree(run, copy, symlinks=False)
    assert not (copy / "best").is_symlink()
    assert named_weights(tmp_path / "copy", "best") == [copy / "step_000001"]
    tidy(copy, 2, best=1, keep_last=1)
    save_checkpoint(copy, TrainState(step=3, best=(3, 0.75)), model=tiny(), keep_last=1)
    assert best_checkpoint(copy) == copy / "step_000003"
