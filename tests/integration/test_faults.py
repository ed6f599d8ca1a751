"""What can befall a run between two starts, in this process: signals, damage, other settings, clocks."""

from __future__ import annotations

import shutil
import signal
from itertools import count
from pathlib import Path

import pytest
import torch

import debate_rl.rollouts.worker
import debate_rl.training.loop
import debate_rl.training.run
from debate_rl.inference.local import LocalPolicy
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.training.loop import train
from debate_rl.training.run import open_training
from transcripts import read_records

from .conftest import left_by

QUIET = ("logging.progress=none", "train.steps=3", "train.save_every=0")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def config(tiny_recipe):
    """Return make(folder, *overrides) -> the configuration of a tiny run of three steps."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config

    def make(folder: str, *overrides: str):
        return load_config(Config, tiny_recipe, [f"run.dir={folder}", *QUIET, *overrides])

    return make


PLACES = {
    "rollout": (debate_rl.rollouts.worker, "run_debates", 1),
    "learning": (torch.optim.AdamW, "step", 2),
    "transcripts": (debate_rl.training.loop, "write_step", 2),
    "saving": (debate_rl.training.run, "save_checkpoint", 3),
}
"""Where a signal comes in the second step, and how many steps are then kept; saving comes after the third."""


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_keeps_every_finished_step_and_the_same_command_goes_on(
    place, config, tiny_recipe, debate_command, monkeypatch
):
    module, name, kept = PLACES[place]
    real, calls = getattr(module, name), count()

    def with_signal(*arguments, **named):
        if next(calls) == (0 if place == "saving" else 1):
            signal.raise_signal(signal.SIGTERM)
        return real(*arguments, **named)

    overrides = ("run.dir=run", *QUIET)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, with_signal)
        code, out, err = debate_command("train", tiny_recipe, *overrides)
    assert (code, "done" in out) == (143, False)
    told, last = err.splitlines()[:-1], err.splitlines()[-1]
    waits = "debate: SIGTERM: the step that is being learnt from is finished and saved first"
    assert all(line.startswith(waits) for line in told)
    assert last == (
        f"debate: stopped by SIGTERM; {kept} of 3 steps are saved in run/checkpoints; "
        "the same command resumes from there"
    )
    assert [step_of(path) for path in checkpoints(Path("run/checkpoints"))] == [kept]
    assert debate_command("train", tiny_recipe, *overrides)[0] == 0
    train(config("straight"))
    assert left_by(Path("run")) == left_by(Path("straight"))


@pytest.mark.slow
def test_a_second_signal_leaves_at_once_and_keeps_what_was_saved(
    config, tiny_recipe, debate_command, monkeypatch
):
    overrides = ("run.dir=run", *QUIET, "train.save_every=1")
    real, calls = torch.optim.AdamW.step, count()

    def twice(*arguments, **named):
        if next(calls) == 1:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", twice)
        code, _, err = debate_command("train", tiny_recipe, *overrides)
    assert code == 130
    assert err.endswith(
        "left at once by SIGINT; the same command resumes from the newest checkpoint, if any\n"
    )
    assert [step_of(path) for path in checkpoints(Path("run/checkpoints"))] == [1]
    assert debate_command("train", tiny_recipe, *overrides)[0] == 0
    train(config("straight"))
    assert left_by(Path("run")) == left_by(Path("straight"))


@pytest.mark.slow
def test_a_damaged_checkpoint_is_named_and_skipped_and_the_run_ends_as_without(
    config, tiny_recipe, debate_command
):
    overrides = ("run.dir=run", *QUIET, "train.save_every=1")
    assert debate_command("train", tiny_recipe, *overrides)[0] == 0
    straight = left_by(Path("run"))
    weights = Path("run/checkpoints/step_000003/model/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="checkpoint") as notes:
        assert debate_command("train", tiny_recipe, *overrides)[0] == 0
    assert [str(note.message) for note in notes] == [
        f"{weights}: not as it was written; the checkpoint is skipped"
    ]
    assert left_by(Path("run")) == straight
    assert Path("run/checkpoints/step_000003.damaged").is_dir()
    shutil.rmtree("run/checkpoints/step_000001")
    for step in (2, 3):
        Path(f"run/checkpoints/step_00000{step}/manifest.json").unlink()
    with pytest.warns(UserWarning, match="checkpoint") as notes:
        assert debate_command("train", tiny_recipe, *overrides)[0] == 0
    assert len(notes) == 3
    assert str(notes[2].message) == "run: no checkpoint is good; the run begins again"
    assert left_by(Path("run")) == straight


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_is_one_line_and_the_first_command_still_goes_on(
    tiny_recipe, debate_command
):
    first = ("train", tiny_recipe, *QUIET, "model.lora_rank=2")
    assert debate_command(*first)[0] == 0
    facts = Path("runs/debate/run.json").read_bytes()
    other = ("model.lora_rank=3", 'run.allow_changes=["model"]')
    code, _, err = debate_command(*first, *other)
    assert (code, err) == (
        2,
        "debate: runs/debate/checkpoints/step_000003: does not fit this run: "
        "the adapter has rank 2, this run's has 3 (model.lora_rank)\n",
    )
    other = ("model.lora_rank=0", 'run.allow_changes=["model"]')
    assert "it has an adapter, but this run trains full weights" in debate_command(*first, *other)[2]
    other = ("model.tiny.hidden_size=24", 'run.allow_changes=["model"]')
    code, _, err = debate_command(*first, *other)
    assert (code, err.count("\n")) == (2, 1)
    assert "step_000003: does not fit this run: " in err
    assert Path("runs/debate/run.json").read_bytes() == facts
    assert debate_command(*first)[0] == 0


@pytest.mark.slow
def test_a_resumed_run_publishes_its_weights_before_it_samples(config, monkeypatch):
    train(config("run", "train.steps=2"))
    saved = torch.load("run/checkpoints/step_000002/trainer.pt")["parts"]["learner"]["steps"]
    told = []
    update, sample_all = LocalPolicy.update, LocalPolicy.sample_all

    async def told_update(self, weights, version):
        told.append(("update", version))
        await update(self, weights, version)

    def told_sample(self, requests):
        told.append(("sample", self.version))
        return sample_all(self, requests)

    monkeypatch.setattr(LocalPolicy, "update", told_update)
    monkeypatch.setattr(LocalPolicy, "sample_all", told_sample)
    train(config("run"))
    samples = [version for kind, version in told if kind == "sample"]
    assert told[0] == ("update", 2)
    assert set(samples) == {2}
    assert told[-1] == ("update", 3)
    assert saved == 2


def test_a_best_figure_that_there_is_not_is_refused(config):
    for name in ("eval/x", "eval/debate/winner/accuracy/low", "eval/direct/missing", "accuracy"):
        with pytest.raises(ValueError, match=rf"train.keep_best='{name}': is not a held-out accuracy"):
            train(config("run", f"train.keep_best={name}"))
    unmeasured = r"train.keep_best='eval/judge/accuracy':"
    with pytest.raises(ValueError, match=unmeasured):
        train(config("run", "train.keep_best=eval/judge/accuracy"))
    assert not Path("run").exists()


@pytest.mark.slow
def test_a_run_with_other_steps_goes_on_at_its_place_in_the_data(config):
    def ids(step):
        return [r.group for r in read_records(Path(f"run/transcripts/step_00000{step}.jsonl"))][::2]

    train(config("run", "train.steps=1"))
    train(config("run", "train.steps=2", "train.batch_size=3", 'run.allow_changes=["train"]'))
    with open_training(config("straight", "train.batch_size=5")) as session:
        problems = [session.data.train[index].id for index in session.sampler.draw(0).problems]
    assert [*ids(0), *ids(1)] == problems
