"""Traces as their users collect them: killed, gone on with, and the same file as without that."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
HOME = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"}
TEACHER = ("train", "rlvr/tiny", "run.dir=teacher", "train.steps=1", "train.batch_size=2")
TEACHER += ("train.group_size=2", "held_out.every=0", "env.limit=40")
TEACHER += ("warm_start.solve_steps=40", "warm_start.debate_steps=0")
TRACES = ("traces", "teacher", "--samples", "6", "train.sample_batch_size=8", "--out", "traces.jsonl")


def command(*words):
    return [sys.executable, "-m", "debate_rl", *words]


def kept_replies(home):
    """Return how many replies of the teacher are on the disk."""
    files = (home / "teacher/traces").rglob("*.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)


def test_traces_that_are_killed_twice_are_those_that_were_left_alone(tmp_path):
    done = subprocess.run(command(*TEACHER), cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for limit in (1, 80):
        with subprocess.Popen(
            command(*TRACES), cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            while kept_replies(tmp_path) < limit:
                assert child.poll() is None, child.communicate()[1].decode()
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
    had = kept_replies(tmp_path)
    assert 80 <= had < 240
    again = subprocess.run(command(*TRACES), cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    killed = (tmp_path / "traces.jsonl").read_bytes()
    (tmp_path / "teacher/traces").rename(tmp_path / "elsewhere")
    straight = subprocess.run(command(*TRACES), cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert straight.returncode == 0, straight.stderr
    assert (tmp_path / "traces.jsonl").read_bytes() == killed
    assert straight.stdout == again.stdout
