from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from debate_rl.config import Config
from debate_rl.runs.folder import open_run
from debate_rl.training.loop import reached_limit


def test_hours_end_a_run():
    config = Config.model_validate({"model": {"tiny": {}}, "train": {"hours": 0.5}})
    run: Any = SimpleNamespace(config=config)
    assert reached_limit(run, 1700.0) is None
    end = reached_limit(run, 1900.0)
    assert end is not None
    assert (end.reason, end.why) == ("hours", "32 min are spent, of train.hours = 0.5")


def test_a_start_in_the_run_folder_began_with_the_command(tmp_path: Path):
    config = Config.model_validate({"model": {"tiny": {}}})
    with open_run(tmp_path, config, seed=0, since=time.time() - 170) as run:
        run.record()
        run.record_end("steps", step=0, why="done")
    facts = json.loads((tmp_path / "run.json").read_text())
    assert 169 <= facts["wall_seconds"] < 1000
