"""A frontier in its own process: arms from one start, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from transcripts import read_records

SMALL = (
    *("env.limit=40", "held_out.limit=12", "held_out.every=2", "train.steps=2", "train.batch_size=2"),
    *("train.group_size=2", "warm_start.solve_steps=2", "warm_start.debate_steps=4"),
    *("warm_start.solve_batch=8", "warm_start.batch=[4,4,2,2]", "train.sample_batch_size=24"),
)
SIGNALS = "ttrl,truth=1"


def command(*words):
    return [sys.executable, "-m", "experiments.frontier", "quickstart", *SMALL, "--signals", SIGNALS, *words]


@pytest.fixture(scope="module")
def frontier(tmp_path_factory):
    """A frontier of two seeds that was killed once, and the folder it lies in."""
    home = tmp_path_factory.mktemp("frontier")
    words = command("--seeds", "7,13", "--out", "out", "--json", "figures.json")
    first = subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state = home / "out" / "sweep.json"
    while first.poll() is None and not (state.exists() and "seed_7" in state.read_text()):
        time.sleep(0.1)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return home, done


@pytest.mark.slow
def test_a_frontier_that_was_killed_resumes_to_its_tables(frontier):
    home, done = frontier
    found = json.loads((home / "figures.json").read_text())
    cells = {cell["signal"]: cell for cell in found["cells"]}
    assert list(cells) == ["votes", "ttrl", "truth=1"]
    assert all(set(cell["seeds"]) == {"7", "13"} for cell in cells.values())
    assert [cells[name]["seeds"]["7"]["labels"] for name in ("votes", "truth=1")] == [0, 4]
    assert {rule["name"]: rule["verdict"] for rule in found["rules"]}["C"] == "not tested"
    assert "p_v, p_c and p_m by round" in done.stdout
    assert (home / "out" / "frontier.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_all_arms_begin_with_one_start_and_generate_as_many_tokens(frontier):
    home, _ = frontier
    out = home / "out"
    starts = sorted(path.name for path in (out / "starts").iterdir())
    assert starts == ["start-13.json", "start-7.json"]
    begun = [out / arm / "seed_7" / "warm_start" for arm in ("votes", "ttrl", "truth=1")]
    assert len({next(path.rglob("model.safetensors")).read_bytes() for path in begun}) == 1
    figures = json.loads((home / "figures.json").read_text())
    tokens = {cell["signal"]: cell["seeds"]["7"]["generated"] for cell in figures["cells"]}
    assert tokens["ttrl"] == pytest.approx(tokens["votes"], rel=0.2)
    assert "seed = 7" in (out / "ttrl" / "seed_7" / "config.toml").read_text()
    shown = [
        [record.debate.problem.id for record in read_records(out / arm / "seed_7" / "transcripts")]
        for arm in ("votes", "truth=1")
    ]
    assert shown[0] == shown[1]


@pytest.mark.slow
def test_a_second_call_does_nothing_anew(frontier):
    home, _ = frontier
    before = {path: path.stat().st_mtime_ns for path in (home / "out").glob("*/seed_*/metrics.jsonl")}
    words = command("--seeds", "7,13", "--out", "out")
    again = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=900)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
