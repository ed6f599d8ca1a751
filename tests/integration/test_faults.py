"""What can befall a run between two starts, in this process: signals, damage, other settings, clocks."""

import shutil
from pathlib import Path

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
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
