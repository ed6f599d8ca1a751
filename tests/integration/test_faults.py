"""What can befall a run between two starts, in this process: signals, damage, other settings, clocks."""

import shutil
import signal
from itertools import count
from pathlib import Path

import pytest
import torch

import debate_rl.rollouts.worker
import debate_rl.training.loop
import debate_rl.training.run
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.inference.local import LocalPolicy
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.training.loop import train
from debate_rl.training.open_or_resume import open_training
from transcripts import read_records

from .conftest import left_by

QUIET = ("logging.progress=none", "train.steps=3", "train.save_every=0")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def config(tiny_recipe):
    """Return make(folder, *overrides) -> the configuration of a tiny run of three steps."""
    return lambda folder, *more: load_config(Config, tiny_recipe, [f"run.dir={folder}", *QUIET, *more])


@pytest.fixture
def trained(tiny_recipe, debate_command):
    """Return train(*overrides) -> how the command ended, in the folder ``run``."""
    return lambda *more: debate_command("train", tiny_recipe, "run.dir=run", *QUIET, *more)


@pytest.fixture(scope="module")
def straight(tiny_recipe, tmp_path_factory):
    """Return what the run leaves that nothing befalls."""
    run = tmp_path_factory.mktemp("straight") / "run"
    train(load_config(Config, tiny_recipe, [f"run.dir={run}", *QUIET]))
    return left_by(run)


def kept_steps():
    return [step_of(path) for path in checkpoints(Path("run/checkpoints"))]


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
    place, trained, straight, monkeypatch
):
    module, name, kept = PLACES[place]
    real, calls = getattr(module, name), count()

    def with_signal(*arguments, **named):
        if next(calls) == (0 if place == "saving" else 1):
            signal.raise_signal(signal.SIGTERM)
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, with_signal)
        code, out, err = trained()
    assert (code, "done" in out) == (143, False)
    *told, last = err.splitlines()
    assert all(line.startswith("debate: SIGTERM: ") for line in told)
    assert last.startswith(f"debate: stopped by SIGTERM; {kept} of 3 steps are saved in run/checkpoints; ")
    assert kept_steps() == [kept]
    assert trained().code == 0
    assert left_by(Path("run")) == straight


@pytest.mark.slow
def test_a_second_signal_leaves_at_once_and_keeps_what_was_saved(trained, straight, monkeypatch):
    real, calls = torch.optim.AdamW.step, count()

    def twice(*arguments, **named):
        if next(calls) == 1:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", twice)
        code, _, err = trained("train.save_every=1")
    assert (code, "ended at once by SIGINT; " in err) == (130, True)
    assert kept_steps() == [1]
    assert trained("train.save_every=1").code == 0
    assert left_by(Path("run")) == straight


@pytest.mark.slow
def test_a_damaged_checkpoint_is_named_and_skipped_and_the_run_ends_as_without(trained, straight):
    assert trained("train.save_every=1").code == 0
    weights = Path("run/checkpoints/step_000003/model/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=rf"^{weights}: .*; the checkpoint is skipped$"):
        assert trained("train.save_every=1").code == 0
    assert left_by(Path("run")) == straight
    assert Path("run/checkpoints/step_000003.damaged").is_dir()
    shutil.rmtree("run/checkpoints/step_000001")
    for step in (2, 3):
        Path(f"run/checkpoints/step_00000{step}/manifest.json").unlink()
    with pytest.warns(UserWarning, match="checkpoint") as notes:
        assert trained("train.save_every=1").code == 0
    assert [str(note.message).partition(":")[0] for note in notes][2:] == ["run"]
    assert left_by(Path("run")) == straight


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_is_one_line_and_the_first_command_still_goes_on(trained):
    first = "model.lora_rank=2"
    assert trained(first).code == 0
    facts = Path("run/run.json").read_bytes()
    for other, said in (
        ("model.lora_rank=3", "the adapter has rank 2, "),
        ("model.lora_rank=0", "an adapter"),
        ("model.tiny.hidden_size=24", ""),
    ):
        code, _, err = trained(first, other, 'run.allow_changes=["model"]')
        assert (code, err.count("\n"), "step_000003: does not fit this run: " in err) == (2, 1, True), err
        assert said in err
    assert Path("run/run.json").read_bytes() == facts
    assert trained(first).code == 0


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
        with pytest.raises(ValueError, match=rf"train.keep_best='{name}': must be a held-out accuracy"):
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
