"""Metrics and samples in files, W&B and TensorBoard, and on the screen."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.config import LoggingConfig
from debate_rl.metrics import step_log
from debate_rl.metrics.group_table import group_table
from debate_rl.metrics.held_out import HeldOut, append_held_out
from debate_rl.metrics.progress import step_display
from debate_rl.metrics.step_log import draw_debates, metrics_line, read_metrics, samples_of
from debate_rl.metrics.trackers import TensorBoardTracker, open_trackers
from debate_rl.metrics.wandb_tracker import WandbTracker, read_wandb_file
from rewards import RewardConfig, score_debate
from transcripts import Record, TurnAdvantages, write_step

QUIET = LoggingConfig(progress="none")


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


@pytest.mark.parametrize("line", ["nonsense", '{"step":"1"}', "[" * 100_000, '{"loss":"x"}', '{"loss":true}'])
def test_a_damaged_line_of_metrics_is_named(tmp_path: Path, line: str):
    (tmp_path / "metrics.jsonl").write_text(f'{{"step": 0}}\n{line}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl:2: not a line of metrics"):
        read_metrics(tmp_path / "metrics.jsonl")


def test_a_number_that_no_metric_can_be_is_not_finite(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 1e999, "kl": NaN, "tokens": 1e3}\n')
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 0, "loss": None, "kl": None, "tokens": 1e3}]


def test_piped_output_is_one_plain_line_a_step():
    out = io.StringIO()
    display = step_display("auto", 3, console=Console(file=out))
    display.log(0, {"accuracy": 0.5, "other": 9.0, "seconds/rollout": 2.0, "seconds/learn": 0.5})
    display.log(1, {"accuracy": 1.0, "[red]": 1.0})
    first, second = out.getvalue().splitlines()
    assert first == "step 0 (1 of 3 done)  accuracy 0.500  2.5 s, about 5 s left"
    assert second.startswith("step 1 (2 of 3 done)  accuracy 1.000  0.01 s, about ")
    assert "\x1b" not in out.getvalue()


def test_a_verbose_run_also_prints_what_the_optimizer_did():
    figures = {"accuracy": 0.5, "loss": -0.00123, "lr": 1e-5, "grad_norm": 12.5, "kl_max": float("nan")}
    said: dict[str, str] = {}
    for kind in ("lines", "verbose"):
        out = io.StringIO()
        display = step_display(kind, 3, console=Console(file=out, width=200))
        display.log(0, figures)
        display.log(1, {"accuracy": 0.25})
        display.close()
        said[kind] = out.getvalue()
    assert "grad norm" not in said["lines"]
    assert "\n  loss -0.00123  lr 1e-05  grad norm 12.5  kl max nan\n" in said["verbose"]
    assert said["verbose"].count("loss -0.00123") == 1  # and a step without any of it has no second line


def test_steps_without_anything_to_learn_from_are_said_once():
    out = io.StringIO()
    display = step_display("auto", 9, console=Console(file=out))
    for step in range(6):
        display.log(step, {"accuracy": 0.0, "format/valid": 0.0})
    lines = out.getvalue().splitlines()
    assert len(lines) == 7
    assert lines[3].startswith("no learning signal: in 3 steps no solution was right")
    display.log(6, {"accuracy": 0.0, "format/valid": 0.25})
    display.log(7, {"accuracy": 0.0})  # a protocol without comparisons
    assert len(out.getvalue().splitlines()) == 9


def test_a_missing_wandb_is_one_clear_line(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match="wandb is not installed: pip install"):
        WandbTracker("p", tmp_path, {})


class FakeRun:
    """A run of W&B that holds ``there`` rows when it begins, and keeps what it is told."""

    def __init__(self, there: int) -> None:
        self.step = there
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self.metrics: dict[str, dict[str, str]] = {}
        self.alerts: list[tuple[str, str, str]] = []

    def alert(self, title: str, text: str, level: str) -> None:
        self.alerts.append((title, text, level))

    def define_metric(self, name: str, **about: str) -> None:
        self.metrics[name] = about

    def log(self, row: dict[str, Any], *, step: int, commit: bool) -> None:
        assert commit  # a row that is not committed is lost in a kill
        self.rows.append((step, row))

    def finish(self) -> None:
        pass


@pytest.fixture
def fake_wandb(monkeypatch):
    """Return call(there, mode) -> the run that the next tracker gets."""
    made: list[FakeRun] = []

    def init(**settings: Any) -> FakeRun:
        assert settings["settings"] == {"console": "off"}
        return made[-1]

    fake = SimpleNamespace(
        init=init, Table=lambda columns, rows: (columns, rows), Settings=dict, Error=RuntimeError
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)

    def call(there: int = 0) -> FakeRun:
        made.append(FakeRun(there))
        return made[-1]

    return call


def test_figures_are_charted_in_groups_by_the_steps_done_with_those_before_the_first(tmp_path, fake_wandb):
    run = fake_wandb()
    tracker = WandbTracker("p", tmp_path, {})
    tracker.begin({"eval/direct/accuracy": 0.25, "seconds/evaluate": 9.0})
    tracker.log(0, {"lr": 0.5, "tokens_per_second": 3.0, "eval/direct/accuracy/low": 0.1})
    first = {"steps_done": 0, "eval/direct/accuracy": 0.25, "perf/seconds/evaluate": 9.0}
    second = {"train/learning_rate": 0.5, "perf/tokens_per_second": 3.0}
    assert run.rows == [(0, first), (1, {"steps_done": 1} | second)]
    by_steps = {"step_metric": "steps_done"}
    assert run.metrics == {
        **dict.fromkeys(("train/*", "eval/*", "perf/*"), by_steps),
        "eval/direct/accuracy": by_steps | {"summary": "max,last"},
    }


@pytest.mark.parametrize(
    ("mode", "there", "sent"),
    [("online", 5, []), ("online", 4, [4]), ("online", 0, [0, 1, 2, 3, 4]), ("offline", 9, [0, 1, 2, 3, 4])],
)
def test_a_resumed_run_logs_again_the_steps_that_wandb_lacks(
    tmp_path, fake_wandb, mode, there, sent, monkeypatch
):
    first = {"p": (1.0, 4)}, {"q": (3.0, 4)}
    figures = {"direct/accuracy": first[0] | first[1]}
    append_held_out(tmp_path / "held_out.jsonl", HeldOut(0, {"p": "a", "q": "b"}, figures))
    with open_trackers(tmp_path, QUIET, steps=9) as trackers:
        for step in range(5):
            trackers.log(step, {"loss": step, "kl_mean": float("nan")})
    run = fake_wandb(there)
    config = QUIET.model_copy(update={"wandb": "p"})
    monkeypatch.setenv("WANDB_MODE", mode)
    with open_trackers(tmp_path, config, steps=9, first_step=3) as trackers:
        trackers.log(3, {"loss": 7.0})  # step 4 was not in the checkpoint
    rows = {0: {"eval/direct/accuracy": 0.5}} | {n: {"train/loss": n - 1} for n in (1, 2, 3)}
    rows[4] = {"train/loss": 7.0}
    assert run.rows == [(done, {"steps_done": done} | rows[done]) for done in sent]


def test_the_groups_of_drawn_debates_are_a_table_of_their_step(tmp_path, fake_wandb):
    run = fake_wandb()
    tracker = WandbTracker("p", tmp_path, {})
    for step in range(3):
        if step != 1:
            tracker.groups(step, (["step"], [[step]]))
        tracker.log(step, {"loss": 0.0})
    tables = [(done, row["groups"]) for done, row in run.rows if "groups" in row]
    assert tables == [(1, (["step"], [[0]])), (3, (["step"], [[2]]))]


def test_an_alarm_is_an_alert(tmp_path, fake_wandb):
    run = fake_wandb()
    tracker = WandbTracker("p", tmp_path, {})
    tracker.alarm(3, "kl at step 2", "too high", ends=False)
    tracker.alarm(3, "x" * 70, "too high", ends=True)
    assert run.alerts == [("kl at step 2", "too high", "WARN"), ("x" * 63 + "…", "too high", "ERROR")]


OFFLINE = """
import os, sys
from pathlib import Path
from debate_rl.config import LoggingConfig
from debate_rl.metrics.trackers import open_trackers
from transcripts import read_records
run, shown, done, end = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
config = LoggingConfig(progress="none", wandb="debates")
many = {f"accuracy/source/{n}": 0.5 for n in range(200)}  # wandb writes blocks of 32 KB
with open_trackers(run, config, steps=10, first_step=done, settings={"seed": 3}) as trackers:
    for step in range(done, end):
        trackers.show(step, list(read_records(shown)))
        trackers.log(step, many | {"reward/peer/mean": step / 4, "kl_mean": 1e999})
    trackers.alarm(end, "kl at step 2", "too high", ends=False)
    if end < 10:
        os.kill(os.getpid(), 9)
"""


def history(record: Any) -> dict[str, Any]:
    """Return what a record of a .wandb file logs."""
    items = record.history.item
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


@pytest.mark.slow
def test_killed_offline_runs_of_wandb_have_every_step_once_and_the_groups(tmp_path):
    pytest.importorskip("wandb")
    run = tmp_path / "run"
    run.mkdir()
    append_held_out(run / "held_out.jsonl", HeldOut(0, {"p": "a"}, {"direct/accuracy": {"p": (1.0, 2)}}))
    policy = scripted_debaters({"p": Answers("1", ("2",))}, solve=1.0, judge=1.0)
    [debate] = run_debates([Problem("p", "2 - 1?", answer="1")], policy, DebateConfig(), seed=2)
    write_step(tmp_path / "shown", 0, [Record(debate, 0, "p")])
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(tmp_path)}
    for done, end in ((0, 8), (8, 10)):  # the first is killed, and wandb loses what it has not written
        command = [sys.executable, "-c", OFFLINE, str(run), str(tmp_path / "shown"), str(done), str(end)]
        ended = subprocess.run(command, check=False, timeout=300, env=os.environ | quiet)
        assert ended.returncode == (-9 if end < 10 else 0)
    files = sorted(run.glob("wandb/offline-run-*/run-*.wandb"))
    assert len(files) == 2  # one for each start, of one run
    assert len({path.name for path in files}) == 1
    parts = [[*read_wandb_file(path)] for path in files]
    first, second = ([row for record in part if (row := history(record))] for part in parts)
    rows = first + second
    assert first
    assert len(second) > 2  # of the first, some were lost
    assert [row["steps_done"] for row in rows] == [*range(11)]
    assert [row.get("train/reward/peer/mean") for row in rows] == [None, *(step / 4 for step in range(10))]
    assert rows[0]["eval/direct/accuracy"] == 0.5
    assert [record.alert.title for record in parts[1] if record.HasField("alert")] == ["kl at step 2"]
    tables = sorted(run.glob("wandb/offline-run-*/files/media/table/groups_*.json"))
    table = json.loads(tables[-1].read_text())
    at = table["columns"].index("answer 0")
    assert [row[at] for row in table["data"]] == ["1", "1", "1"]


def test_tensorboard_has_the_names_of_charts_and_a_resumed_run_continues_there(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = LoggingConfig(progress="none", tensorboard=True)
    with open_trackers(tmp_path, config, steps=3) as trackers:
        trackers.begin({"eval/direct/accuracy": 0.25})
        for step in range(3):
            trackers.log(step, {"reward/peer/mean": step / 4, "pass@4": 1.0, "seconds/learn": 2.0})
        trackers.alarm(2, "kl at step 2", "too high", ends=False)
    with open_trackers(tmp_path, config, steps=3, first_step=1) as trackers:
        trackers.log(1, {"reward/peer/mean": 0.75})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    names = {"train/reward/peer/mean", "train/pass@4", "perf/seconds/learn", "eval/direct/accuracy"}
    assert set(events.Tags()["scalars"]) == names
    assert events.Tags()["tensors"] == ["alarms/text_summary"]
    found = [(event.step, event.value) for event in events.Scalars("train/reward/peer/mean")]
    assert found == [(1, 0.0), (2, 0.75)]  # by the steps that are done
    assert [(event.step, event.value) for event in events.Scalars("eval/direct/accuracy")] == [(0, 0.25)]


def test_a_missing_tensorboard_is_one_clear_line(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"tensorboard is not installed: pip install .\.\[tensorboard"):
        TensorBoardTracker(tmp_path)


PROBLEM = Problem("p0", "2 - 1?", answer="1", kind="number")


@pytest.fixture(scope="module")
def record():
    """One debate of two rounds and a ballot in which every agent always says 1."""
    policy = scripted_debaters({"p0": Answers("1", ("2",))}, solve=1.0, judge=1.0, tokens=True)
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=2, max_tokens=500), seed=2)
    correct = ((True, True),) * 3
    rewards = score_debate(debate, correct, RewardConfig())
    last = debate.turns[-1].id
    parts = (TurnAdvantages(debate.turns[0].id, 0.5, None, -0.5), TurnAdvantages(last, None, 0.25))
    return Record(debate, 7, "p0", correct, rewards, parts)


def test_each_turn_is_a_row_with_its_answer_rewards_and_advantages(record):
    rows = list(samples_of(record, 4))
    assert [(row["round"], row["agent"]) for row in rows] == [(r, a) for r in range(3) for a in range(3)]
    assert {(r["step"], r["debate"], r["problem"], r["gold"]) for r in rows} == {(7, "7.4", "p0", "1")}
    first, last = rows[0], rows[-1]
    assert (first["answer"], first["grade"], first["ballot"]) == ("1", "right", False)
    assert first["text"] == record.debate.turns[0].completion.text
    assert first["tokens"] == len(record.debate.turns[0].completion.tokens) > 0
    assert [first[f"advantage_{name}"] for name in ("generator", "judge", "format")] == [0.5, None, -0.5]
    assert first["reward_truth"] == 1.0
    assert (last["answer"], last["grade"], last["ballot"]) == (None, "", True)
    assert (last["reward_peer"], last["reward_truth"]) == (None, None)
    assert (last["advantage_generator"], last["advantage_judge"]) == (None, 0.25)
    assert rows[4]["advantage_generator"] is None


def test_about_the_share_is_drawn_and_always_the_same(record, monkeypatch):
    records = [replace(record, debate=replace(record.debate, seed=seed)) for seed in range(2000)]
    chosen = draw_debates(records)
    assert 61 < len(chosen) < 139  # 100 expected, 9.7 the standard deviation
    assert draw_debates(records[500:]) == [index - 500 for index in chosen if index >= 500]
    missed = [one for index, one in enumerate(records) if index not in chosen]
    assert len(draw_debates(missed[:3])) == 1
    monkeypatch.setattr(step_log, "SAMPLE_SHARE", 1)
    assert draw_debates(records[:3]) == [0, 1, 2]


def test_a_group_is_a_row_for_each_agent_of_each_debate(record):
    other = replace(record, debate=replace(record.debate, problem=replace(PROBLEM, id="p1")))
    columns, rows = group_table([other, record, record], [2])
    assert [row[columns.index("debate")] for row in rows] == ["7.1"] * 3 + ["7.2"] * 3
    first = dict(zip(columns, rows[0], strict=True))
    assert (first["step"], first["problem"], first["question"], first["gold"]) == (7, "p0", "2 - 1?", "1")
    assert [first[f"{what} 0"] for what in ("answer", "grade", "advantage")] == ["1", "right", 0.5]
    assert [first[f"{what} 1"] for what in ("answer", "grade", "advantage")] == ["1", "right", None]
    assert (first["votes right"], first["votes decidable"]) == (0, 0)  # all are right: nothing to decide
    last = dict(zip(columns, rows[2], strict=True))
    assert (last["agent"], last["advantage of votes"]) == (2, 0.25)


def test_a_table_has_whole_groups_up_to_64_rows(record):
    groups = [
        replace(record, debate=replace(record.debate, problem=replace(PROBLEM, id=f"p{i // 10}")))
        for i in range(30)
    ]
    columns, rows = group_table(groups, [0, 1, 12, 25])  # 30 rows a group
    assert [row[columns.index("problem")] for row in rows] == ["p0"] * 30 + ["p1"] * 30
    assert len(group_table([record] * 30, [3])[1]) == 64


def test_samples_are_lines_that_a_resumed_run_writes_again(tmp_path, record, monkeypatch):
    monkeypatch.setattr(step_log, "SAMPLE_SHARE", 1)
    config = LoggingConfig(progress="none")
    for first in (0, 7):
        with open_trackers(tmp_path, config, steps=9, first_step=first) as trackers:
            trackers.show(6, [replace(record, step=6)])
            trackers.show(7, [record])
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6] * 18 + [7] * 9  # step 6 was kept, and here written once more
    assert rows[-9:] == list(samples_of(record, 0))
    assert len((tmp_path / "samples.superseded.jsonl").read_text().splitlines()) == 9
