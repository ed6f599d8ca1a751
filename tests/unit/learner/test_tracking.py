from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from rich.console import Console

from commands.config import apply_overrides
from learner.progress import Bar, Lines, progress_of
from learner.tracking import (
    LoggingConfig,
    MetricsLog,
    TrackerError,
    WandbConfig,
    WandbTracker,
    metrics_line,
    open_trackers,
    read_metrics,
    rewind_metrics,
)

QUIET = LoggingConfig(progress="none")


def test_the_project_is_set_from_the_command_line():
    tables = apply_overrides({}, ["logging.wandb.project=debates", "logging.wandb.mode=offline"])
    config = LoggingConfig.model_validate(tables["logging"])
    assert (config.wandb.project, config.wandb.mode) == ("debates", "offline")
    with pytest.raises(ValidationError, match="unknown key 'projcet'; did you mean 'project'"):
        WandbConfig.model_validate({"projcet": "x"})


def test_one_line_a_step_is_there_before_close(tmp_path: Path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.log(0, {"reward/peer/mean": 0.25})
    [line] = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["reward/peer/mean"] == 0.25
    log.log(1, {"reward/peer/mean": 0.5})
    log.close()
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [0, 1]


def test_numbers_that_are_not_finite_are_null_and_named():
    line = json.loads(metrics_line(2, {"a": float("inf"), "b": 1, "c": float("nan")}, at=0.0))
    assert line == {"step": 2, "time": 0.0, "a": None, "b": 1.0, "c": None, "nonfinite": ["a", "c"]}


def test_a_resumed_run_sets_later_lines_aside_and_goes_on(tmp_path: Path):
    with open_trackers(tmp_path, QUIET, steps=4) as trackers:
        for step in range(4):
            trackers.log(step, {"x": step})
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 4, "x"')  # killed while writing
    with open_trackers(tmp_path, QUIET, steps=4, first_step=2) as trackers:
        trackers.log(2, {"x": 20})
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [(row["step"], row["x"]) for row in rows] == [(0, 0.0), (1, 1.0), (2, 20.0)]
    aside = read_metrics(tmp_path / "metrics.superseded.jsonl")
    assert [(row["step"], row["x"]) for row in aside] == [(2, 2.0), (3, 3.0)]


def test_rewinding_past_the_end_or_without_a_file_changes_nothing(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    assert rewind_metrics(path, 0) == 0
    MetricsLog(path).log(0, {"x": 1})
    before = path.read_bytes()
    assert rewind_metrics(path, 1) == 0
    assert path.read_bytes() == before


def test_a_damaged_line_of_metrics_is_named(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\nnonsense\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl:2: not a line of metrics"):
        read_metrics(tmp_path / "metrics.jsonl")


def test_piped_output_is_one_plain_line_a_step():
    out = io.StringIO()
    display = progress_of("auto", 3, console=Console(file=out))
    assert isinstance(display, Lines)
    display.log(0, {"correct": 0.5, "other": 9.0})
    display.log(1, {"correct": 1.0, "[red]": 1.0})
    first, second = out.getvalue().splitlines()
    assert first.startswith("step 1/3  correct 0.500  ")
    assert second.startswith("step 2/3  correct 1.000  ")
    assert "\x1b" not in out.getvalue()


def test_a_terminal_gets_a_bar_that_ends_full():
    out = io.StringIO()
    display = progress_of("auto", 2, console=Console(file=out, force_terminal=True, width=100))
    assert isinstance(display, Bar)
    display.log(0, {})
    display.log(1, {"correct": 0.75})
    display.close()
    assert "2/2" in out.getvalue()
    assert "correct 0.750" in out.getvalue()


def test_nothing_is_shown_when_told_so():
    assert progress_of("none", 2) is None


def test_trackers_are_closed_when_the_run_fails(tmp_path: Path):
    def fails():
        with open_trackers(tmp_path, QUIET, steps=4) as trackers:
            trackers.log(0, {"x": 1.0})
            raise KeyError("boom")

    with pytest.raises(KeyError):
        fails()
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 1


def test_a_missing_wandb_is_one_clear_line(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(TrackerError, match="wandb is not installed: pip install"):
        WandbTracker(WandbConfig(project="p"), tmp_path, {})


def test_wandb_is_not_loaded_unless_asked(tmp_path: Path):
    code = "import sys, learner.tracking; sys.exit('wandb' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


OFFLINE = """
import sys
from pathlib import Path
from learner.tracking import LoggingConfig, WandbConfig, open_trackers
config = LoggingConfig(progress="none", wandb=WandbConfig(project="debates"))
with open_trackers(Path(sys.argv[1]), config, steps=2, settings={"seed": 3}) as trackers:
    trackers.log(0, {"reward/peer/mean": 0.25})
    trackers.log(1, {"reward/peer/mean": 0.5})
"""


def test_wandb_offline_leaves_a_run_with_our_names(tmp_path: Path, monkeypatch):
    pytest.importorskip("wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    run = tmp_path / "run"
    run.mkdir()
    # In a process of its own: wandb starts a service that would outlive the test.
    subprocess.run([sys.executable, "-c", OFFLINE, str(run)], check=True, timeout=300)
    [record] = run.glob("wandb/offline-run-*/run-*.wandb")
    data = record.read_bytes()
    assert b"reward/peer/mean" in data
    assert (run / "wandb_id").read_text().encode() in data
    assert len(read_metrics(run / "metrics.jsonl")) == 2
