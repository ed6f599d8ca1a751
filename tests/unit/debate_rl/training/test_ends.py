from types import SimpleNamespace
from typing import Any

from debate_rl.config import Config
from debate_rl.training.loop import reached_limit


def test_hours_end_a_run():
    config = Config.model_validate({"model": {"tiny": {}}, "train": {"hours": 0.5}})
    run: Any = SimpleNamespace(config=config)
    assert reached_limit(run, 1700.0) is None
    end = reached_limit(run, 1900.0)
    assert end is not None
    assert (end.reason, end.why) == ("hours", "32 min are spent, of train.hours = 0.5")
