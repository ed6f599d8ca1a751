"""Training runs in processes that fork from one in which everything is imported already."""

import multiprocessing
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PRELOADED = [
    "mortal_run",
    "debate_rl.training.loop",
    "transformers.models.qwen3.modeling_qwen3",
    "peft",
    "pytest",
]


@pytest.fixture(scope="session")
def forked():
    """Return start(folder, log, fault) -> a started Process that trains there."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in (HERE.parents[1], HERE):
            patch.syspath_prepend(str(folder))
            patch.setenv("PYTHONPATH", str(folder), prepend=":")
        import mortal_run

        sys.modules["mortal_run"] = mortal_run
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)

        def start(folder: Path, log: Path, fault=None):
            process = context.Process(target=mortal_run.run, args=(str(folder), str(log), fault))
            process.start()
            return process

        yield start


@pytest.fixture(scope="session")
def start_model(tmp_path_factory, debate_command) -> Path:
    """Return the export of a short warm start: a model that an engine can begin with."""
    folder = tmp_path_factory.mktemp("start")
    shorter = ("warm_start.solve_steps=60", "warm_start.debate_steps=120", "held_out.limit=4")
    for name, *words in (
        ("train", "quickstart", *shorter, "train.steps=0", f"run.dir={folder}/warm"),
        ("export", folder / "warm", "--out", folder / "start"),
    ):
        ended = debate_command(name, *words)
        assert ended.code == 0, ended.err
    return folder / "start"
