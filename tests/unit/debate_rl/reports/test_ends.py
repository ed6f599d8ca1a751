"""What the report says of how a run ended and of what its alarms did."""

from __future__ import annotations

import json

import pytest

from debate_rl.reports.diagnosis import ended_line, status
from debate_rl.reports.run import load_run


@pytest.fixture
def run_of(tmp_path):
    """Return make(starts) -> the folder of a run of two of five steps with these starts in run.json."""

    def make(*starts: object):
        (tmp_path / "config.toml").write_text("[train]\nsteps = 5\n")
        lines = [json.dumps({"step": step, "time": 100.0 + step, "accuracy": 0.5}) for step in range(2)]
        (tmp_path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / "run.json").write_text(json.dumps({"starts": starts}))
        return tmp_path

    return make


def test_the_report_says_why_a_run_ended_and_its_wall_time(run_of):
    back = {"seconds": 60.0, "end": {"reason": "rollback", "step": 3, "why": "kl"}}
    end = {"seconds": 120.0, "end": {"reason": "alarm", "step": 2, "why": "kl at step 1: it rose"}}
    run = load_run(run_of(back, end), "one")
    assert status(run) == "ended: alarm"
    assert ended_line(run) == (
        "one: ended (alarm): kl at step 1: it rose; 3 min of wall time in 2 starts. 1 rollback before."
    )


@pytest.mark.parametrize("starts", [(), (3,), ({"end": 7},), ({"end": {"reason": 3}},)])
def test_a_foreign_run_json_says_nothing(run_of, starts):
    run = load_run(run_of(*starts))
    assert ended_line(run) == ""
    assert status(run) == "stopped"
