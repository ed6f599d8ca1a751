"""A run that is killed anywhere, again and again, ends as the one that was left alone: bit for bit."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
import tomli_w
import torch

from debate_rl.runs.checkpoint import damage
from transcripts import read_records

from ..integration.conftest import HOME, steps_of, untimed

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("DEBATE_KILL_SEED", "0"))
"""Draws the points; every message shows it."""
HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}:{HOME}"}
IN_FOLDER = 3
"""Kills of one run before it is let to its end."""
WAYS = {
    "sample": ("before", "before", "after", "after"),
    "evaluate": ("before", "after"),
    "learn": ("before", "before", "after", "after"),
    "transcript": ("half", "half", "half", "after"),
    "samples": ("half",),
    "metrics": ("before", "half", "half", "after"),
    "held_out": ("before", "half", "half", "after"),
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
        "metrics": untimed(run),
        "shards": sorted(
            path.name for path in (run / "transcripts").rglob("step_*") if "superseded" not in path.parts
        ),
        "transcripts": list(read_records(run)),
        "samples": (run / "samples.jsonl").read_bytes(),
        "held_out": (run / "held_out.jsonl").read_bytes(),
        "unfinished": sorted(p.name for p in run.rglob("*") if p.name.startswith(".") and p.name != ".lock"),
    }


def plain(value):
    """Return tensors as lists, so that == compares them."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def assert_same(run: Path, straight, story: list[object]) -> None:
    found = left_by(run)
    different = [name for name in straight if found[name] != straight[name]]
    assert not different, f"{different} differ; DEBATE_KILL_SEED={SEED}: {story}"


def drawn_faults(ways, counts):
    """Return a fault for each way of each point, at a call that is drawn, in drawn order."""
    from mortal_run import Fault

    rng = Random(SEED)
    faults = [Fault(point, rng.randint(1, counts[point]), how) for point in ways for how in ways[point]]
    rng.shuffle(faults)
    return faults


def assert_all_survived(waiting, ended, forked, expected, folder: Path) -> int:
    """Let every fault befall a run, ``IN_FOLDER`` to each run; return how many did."""
    befallen, runs = 0, 0
    while waiting:
        runs += 1
        run, log, story = folder / f"run{runs}", folder / f"log{runs}", []
        for fault in waiting[:IN_FOLDER]:
            story.append(fault)
            process = forked(run, log, fault)
            process.join()
            if process.exitcode == 0:  # fewer calls were left than drawn: a new run has enough
                assert len(story) > 1, f"{fault} did not befall a whole run"
                break
            assert process.exitcode == ended(fault), (SEED, story, log.read_text())
            befallen += 1
            waiting = waiting[1:]
        process = forked(run, log)
        process.join()
        assert process.exitcode == 0, (SEED, story, log.read_text())
        assert_same(run, expected, story)
    return befallen


def test_runs_killed_at_drawn_calls_end_as_the_one_left_alone(forked, straight, tmp_path):
    expected, counts = straight
    faults = drawn_faults(WAYS, counts)
    assert len(faults) >= 30
    killed = assert_all_survived(faults, lambda _: -signal.SIGKILL, forked, expected, tmp_path)
    assert killed == len(faults)


def test_runs_stopped_by_signals_at_drawn_calls_end_as_the_one_left_alone(forked, straight, tmp_path):
    expected, counts = straight
    faults = drawn_faults(dict.fromkeys(WAYS, ("SIGTERM",)) | {"sample": ("SIGINT",)}, counts)
    assert_all_survived(faults, lambda fault: 128 + signal.Signals[fault.how], forked, expected, tmp_path)
    for log in (path for path in tmp_path.glob("log*") if not path.suffix):
        told = [line for line in log.read_text().splitlines() if not line.startswith("debate: SIG")]
        assert all(line.startswith("stopped by SIG") for line in told), told


def command(*, cwd: Path, recipe: Path) -> list[str]:
    """Write the recipe and return ``debate train`` of it, to be run in a folder with room for ./run."""
    import mortal_run

    recipe.write_text(tomli_w.dumps(mortal_run.RECIPE | {"run": {"dir": str(cwd / "run")}}))
    return [sys.executable, "-m", "debate_rl.commands.main", "train", str(recipe)]


def test_the_command_line_killed_at_drawn_times_ends_as_the_one_left_alone(straight, tmp_path):
    expected, counts = straight
    rng, story = Random(SEED), []
    words = command(cwd=tmp_path, recipe=tmp_path / "recipe.toml")
    for lines in (0, 1, 3):
        with subprocess.Popen(words, cwd=HOME, env=ENVIRONMENT) as child:
            while child.poll() is None and len(steps_of(tmp_path / "run")) < lines:
                time.sleep(0.02)
            time.sleep(rng.random() * counts["seconds"] / 2)
            child.kill()
        story.append((lines, child.returncode))
        assert child.returncode in (0, -signal.SIGKILL)
    done = subprocess.run(words, cwd=HOME, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), story
    assert_same(tmp_path / "run", expected, story)


ROOM = """
mount -t tmpfs -o size={size} tmpfs disk || exit 77
"$@" >out1 2>err1; test $? = 2 || exit 1
mount -o remount,size=64m disk
"$@" >out2 2>err2 || exit 2
mount -o remount,ro disk
"$@" >out3 2>err3; test $? = 2 || exit 3
cp -a disk/run .
"""


@pytest.mark.parametrize("size", ["150k", "500k"])
def test_a_disk_that_is_full_and_then_read_only_costs_a_run_nothing(straight, tmp_path, size):
    expected, _ = straight
    (tmp_path / "disk").mkdir()
    words = command(cwd=tmp_path / "disk", recipe=tmp_path / "recipe.toml")
    script = ["unshare", "-m", "sh", "-c", ROOM.format(size=size), "sh", *words]
    try:
        done = subprocess.run(
            script, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode == 77 or done.stderr.startswith("unshare: "):
        pytest.skip(f"mounting is not allowed here: {done.stderr}")
    said = {path.name: path.read_text() for path in tmp_path.glob("*[123]") if path.is_file()}
    assert (done.returncode, said["err2"]) == (0, ""), said
    assert said["err1"].count("\n") == 1
    assert "No space left on device" in said["err1"]
    assert said["err3"].count("\n") == 1
    assert re.search(
        r"cannot write .*/run/.lock: Read-only file system; choose another run.dir", said["err3"]
    )
    assert_same(tmp_path / "run", expected, [size, said["err1"]])


FULL = ("transcript", "metrics", "held_out", "samples")
FULL += ("save_weights", "save_trainer", "rename", "replace", "fsync")


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
