"""A run that is killed anywhere, again and again, ends as the one that was left alone: bit for bit."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from random import Random

import pytest
import torch

from learner.checkpoint import damage
from learner.step_lines import read_metrics

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("DEBATE_KILL_SEED", "0"))
"""Draws the points; every message shows it."""
IN_FOLDER = 3
"""Kills of one run before it is let to its end."""
TIMED = ("seconds/", "tokens_per_second", "time")
WAYS = {
    "sample": ("before", "before", "after", "after"),
    "evaluate": ("before", "after"),
    "learn": ("before", "before", "after", "after"),
    "transcript": ("half", "half", "half", "after"),
    "samples": ("half",),
    "metrics": ("before", "half", "half", "after"),
    "save_weights": ("before", "after"),
    "save_trainer": ("before", "after"),
    "publish": ("before", "after"),
    "rename": ("before", "before", "after", "after"),
    "replace": ("before", "after"),
    "fsync": ("before", "before", "before"),
    "rmtree": ("before", "after"),
    "delete": ("after",),
}
"""How a run is killed at each point; which call it is, is drawn."""


@pytest.fixture(scope="module")
def straight(forked, tmp_path_factory):
    """Return what an undisturbed run leaves, how often it passes each point, and its seconds."""
    folder = tmp_path_factory.mktemp("straight")
    process = forked(folder / "run", folder / "log")
    process.join()
    assert process.exitcode == 0, (folder / "log").read_text()
    return left_by(folder / "run"), json.loads((folder / "log.counts").read_text())


def left_by(run: Path) -> dict[str, object]:
    """Return everything of a finished run that must not depend on its kills."""
    checkpoints = {path.name: path for path in (run / "checkpoints").iterdir() if path.is_dir()}
    return {
        "checkpoints": sorted(checkpoints),
        "best": os.readlink(run / "checkpoints/best"),
        "damage": [damage(path) for path in checkpoints.values()],
        "weights": {
            name: (path / "model/model.safetensors").read_bytes() for name, path in checkpoints.items()
        },
        "states": {name: json.loads((path / "state.json").read_text()) for name, path in checkpoints.items()},
        "trainers": {name: plain(torch.load(path / "trainer.pt")) for name, path in checkpoints.items()},
        "metrics": [untimed(row) for row in read_metrics(run / "metrics.jsonl")],
        "transcripts": {path.name: path.read_bytes() for path in (run / "transcripts").glob("*.jsonl")},
        "samples": (run / "samples.jsonl").read_bytes(),
        "unfinished": sorted(p.name for p in run.rglob("*") if p.name.startswith(".") and p.name != ".lock"),
    }


def plain(value):
    """Return tensors as lists, so that == compares them."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def untimed(row):
    return {name: value for name, value in row.items() if not name.startswith(TIMED)}


def assert_same(run: Path, straight, story: list[object]) -> None:
    found = left_by(run)
    different = [name for name in straight if found[name] != straight[name]]
    assert not different, f"{different} differ; DEBATE_KILL_SEED={SEED}: {story}"


def drawn_faults(counts, rng: Random):
    from mortal_run import Fault

    faults = [
        Fault(point, rng.randint(1, counts[point]), how) for point, ways in WAYS.items() for how in ways
    ]
    rng.shuffle(faults)
    return faults


def test_runs_killed_at_drawn_calls_end_as_the_one_left_alone(forked, straight, tmp_path):
    expected, counts = straight
    waiting = drawn_faults(counts, Random(SEED))
    assert len(waiting) >= 30
    killed, folders = 0, 0
    while waiting:
        folders += 1
        run, story = tmp_path / f"run{folders}", []
        for _ in range(IN_FOLDER):
            if not waiting:
                break
            fault = waiting.pop(0)
            story.append(fault)
            process = forked(run, tmp_path / f"log{folders}", fault)
            process.join()
            if process.exitcode == 0:  # fewer calls were left than drawn: a new run has enough
                waiting.insert(0, fault)
                break
            assert process.exitcode == -signal.SIGKILL, (story, (tmp_path / f"log{folders}").read_text())
            killed += 1
        process = forked(run, tmp_path / f"log{folders}")
        process.join()
        assert process.exitcode == 0, (story, (tmp_path / f"log{folders}").read_text())
        assert_same(run, expected, story)
    assert killed == sum(map(len, WAYS.values()))


def test_runs_killed_at_drawn_times_end_as_the_one_left_alone(forked, straight, tmp_path):
    expected, counts = straight
    rng, story = Random(SEED), []
    for _ in range(8):
        process = forked(tmp_path / "run", tmp_path / "log")
        time.sleep(rng.random() * counts["seconds"])
        process.kill()  # one that has just ended is none the worse for it
        process.join()
        story.append(process.exitcode)
        assert process.exitcode in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
    process = forked(tmp_path / "run", tmp_path / "log")
    process.join()
    assert process.exitcode == 0, (tmp_path / "log").read_text()
    assert_same(tmp_path / "run", expected, story)


FULL = ["transcript", "metrics", "samples", "save_weights", "save_trainer", "rename", "replace", "fsync"]


@pytest.mark.parametrize("point", FULL)
def test_a_run_that_finds_the_disk_full_goes_on_when_there_is_room(forked, straight, tmp_path, point):
    from mortal_run import Fault

    expected, counts = straight
    fault = Fault(point, Random(f"{SEED} {point}").randint(1, counts[point]), "full")
    process = forked(tmp_path / "run", tmp_path / "log", fault)
    process.join()
    [line] = (tmp_path / "log").read_text().splitlines()
    assert process.exitcode == 2, (fault, line)
    assert "No space left on device" in line, fault
    process = forked(tmp_path / "run", tmp_path / "log")
    process.join()
    assert process.exitcode == 0, (fault, (tmp_path / "log").read_text())
    assert_same(tmp_path / "run", expected, [fault])
