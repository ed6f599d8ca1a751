from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from debate_rl.config import Config
from debate_rl.runs.folder import open_run
from debate_rl.training.ends import Limits


def test_hours_count_from_the_command_and_not_from_the_first_step():
    config = Config.model_validate({"model": {"tiny": {}}, "train": {"hours": 0.5}})
    loaded: Any = SimpleNamespace(
        config=config,
        clock=lambda: 0.0,  # the steps have taken no time yet
        began=time.monotonic() - 900,
        folder=SimpleNamespace(starts=[{"seconds": 800.0}]),
    )
    assert Limits(loaded).end_of({}) is None  # 1,700 of 1,800 s
    loaded.began -= 200
    end = Limits(loaded).end_of({})
    assert end is not None
    assert (end.reason, end.why) == ("hours", "32 min are spent, of train.hours = 0.5")


def test_a_start_in_the_run_folder_began_with_the_command(tmp_path: Path):
    config = Config.model_validate({"model": {"tiny": {}}})
    with open_run(tmp_path, config, seed=0, since=time.time() - 170) as run:
        run.record()
        run.record_end("steps", step=0, why="done")
    facts = json.loads((tmp_path / "run.json").read_text())
    assert 169 <= facts["wall_seconds"] < 1000
