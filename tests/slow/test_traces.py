"""Traces as their users collect them: killed, gone on with, and the same file as without that."""

import pytest

from ..integration.conftest import python, start, wait_until

pytestmark = pytest.mark.slow
TEACHER = ("train", "rlvr/tiny", "run.dir=teacher", "train.steps=1", "train.batch_size=2")
TEACHER += ("train.group_size=2", "held_out.every=0", "env.limit=40")
TEACHER += ("warm_start.solve_steps=40", "warm_start.debate_steps=0")
TRACES = ("traces", "teacher", "--samples", "6", "train.sample_batch_size=8", "--out", "traces.jsonl")


def kept_replies(home):
    """Return how many replies of the teacher are on the disk."""
    files = (home / "teacher/traces").rglob("*.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)


def test_traces_that_are_killed_twice_are_those_that_were_left_alone(tmp_path):
    def done(words):
        ended = python("-m", "debate_rl", *words, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    done(TEACHER)
    for limit in (1, 80):
        with start("-m", "debate_rl", *TRACES, cwd=tmp_path) as child:
            wait_until(lambda limit=limit: kept_replies(tmp_path) >= limit, child)
            child.kill()
    had = kept_replies(tmp_path)
    assert 80 <= had < 240
    again = done(TRACES)
    killed = (tmp_path / "traces.jsonl").read_bytes()
    (tmp_path / "teacher/traces").rename(tmp_path / "elsewhere")
    assert done(TRACES) == again
    assert (tmp_path / "traces.jsonl").read_bytes() == killed
