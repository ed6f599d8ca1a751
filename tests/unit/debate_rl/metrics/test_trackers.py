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

from debate import Debate, DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.config import LoggingConfig
from debate_rl.metrics import step_log
from debate_rl.metrics.progress import step_display
from debate_rl.metrics.step_log import SAMPLE, draw_samples, metrics_line, read_metrics, samples_of
from debate_rl.metrics.trackers import TensorBoardTracker, WandbTracker, open_trackers
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

    fake = SimpleNamespace(init=init, Table=lambda _, rows: rows, Settings=dict, Error=RuntimeError)
    monkeypatch.setitem(sys.modules, "wandb", fake)

    def call(there: int = 0) -> FakeRun:
        made.append(FakeRun(there))
        return made[-1]

    return call


def test_figures_are_charted_in_groups_by_the_steps_done_with_those_before_the_first(tmp_path, fake_wandb):
    run = fake_wandb()
    tracker = WandbTracker("p", tmp_path, {})
    tracker.begin({"eval/direct/accuracy": 0.25, "seconds/evaluate": 9.0})
    tracker.log(0, {"loss": 0.5, "tokens_per_second": 3.0, "eval/direct/accuracy/low": 0.1})
    first = {"steps_done": 0, "eval/direct/accuracy": 0.25, "perf/seconds/evaluate": 9.0}
    second = {"train/loss": 0.5, "perf/tokens_per_second": 3.0, "eval/direct/accuracy/low": 0.1}
    assert run.rows == [(0, first), (1, {"steps_done": 1} | second)]
    by_steps = {"step_metric": "steps_done"}
    assert run.metrics == {
        **dict.fromkeys(("train/*", "eval/*", "perf/*"), by_steps),
        "eval/direct/accuracy": by_steps | {"summary": "max,last"},
    }


@pytest.mark.parametrize(
    ("mode", "there", "sent"), [("online", 5, []), ("online", 4, [4]), ("offline", 9, [4])]
)
def test_a_resumed_run_leaves_out_steps_that_wandb_has(tmp_path, fake_wandb, mode, there, sent, monkeypatch):
    run = fake_wandb(there)
    config = QUIET.model_copy(update={"wandb": "p"})
    monkeypatch.setenv("WANDB_MODE", mode)
    with open_trackers(tmp_path, config, steps=9, first_step=3) as trackers:
        trackers.log(3, {"loss": 7.0})
    assert [done for done, _ in run.rows] == sent


def test_drawn_turns_are_a_table_of_their_step(tmp_path, fake_wandb):
    run = fake_wandb()
    tracker = WandbTracker("p", tmp_path, {})
    for step in range(3):
        if step != 1:
            tracker.show(step, [dict.fromkeys(SAMPLE, "") | {"step": step}])
        tracker.log(step, {"loss": 0.0})
    tables = [(done, [turn[0] for turn in row["samples"]]) for done, row in run.rows if "samples" in row]
    assert tables == [(1, [0]), (3, [2])]


OFFLINE = """
import sys
from pathlib import Path
from debate_rl.config import LoggingConfig
from debate_rl.metrics import step_log
from debate_rl.metrics.trackers import open_trackers
from transcripts import read_records
step_log.SAMPLE_SHARE = 1
config = LoggingConfig(progress="none", wandb="debates")
with open_trackers(Path(sys.argv[1]), config, steps=2, settings={"seed": 3}) as trackers:
    trackers.begin({"eval/direct/accuracy": 0.5})
    trackers.show(0, list(read_records(sys.argv[2])))
    trackers.log(0, {"reward/peer/mean": 0.25})
with open_trackers(Path(sys.argv[1]), config, steps=2, first_step=1, settings={"seed": 3}) as trackers:
    trackers.log(1, {"reward/peer/mean": 0.5, "kl_mean": float("inf"), "eval/direct/accuracy": 0.25})
"""


@pytest.fixture(scope="module")
def wandb_run(tmp_path_factory) -> tuple[Path, Debate]:
    """A run folder with an offline run of wandb, and the debate that it shows."""
    pytest.importorskip("wandb")
    home = tmp_path_factory.mktemp("wandb")
    run = home / "run"
    run.mkdir()
    policy = scripted_debaters({"p": Answers("1", ("2",))}, solve=1.0, judge=1.0)
    [debate] = run_debates([Problem("p", "2 - 1?", answer="1")], policy, DebateConfig(), seed=2)
    write_step(home / "shown", 0, [Record(debate, 0, "p")])
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(home)}
    # In a process of its own: wandb starts a service that would outlive the test.
    command = [sys.executable, "-c", OFFLINE, str(run), str(home / "shown")]
    subprocess.run(command, check=True, timeout=300, env=os.environ | quiet)
    return run, debate


@pytest.mark.slow
def test_an_offline_run_of_wandb_leaves_its_files_and_drawn_debates_as_a_table(wandb_run):
    run, debate = wandb_run
    assert len([*run.glob("wandb/offline-run-*/run-*.wandb")]) == 2  # one for each start
    assert len({path.name.split("-")[-1] for path in run.glob("wandb/offline-run-*/*.wandb")}) == 1
    [path] = run.glob("wandb/offline-run-*/files/media/table/samples_*.json")  # one for both steps
    table = json.loads(path.read_text())
    texts = [row[table["columns"].index("text")] for row in table["data"]]
    assert texts == [turn.completion.text for turn in debate.turns]


def test_tensorboard_has_the_names_of_charts_and_a_resumed_run_continues_there(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = LoggingConfig(progress="none", tensorboard=True)
    with open_trackers(tmp_path, config, steps=3) as trackers:
        trackers.begin({"eval/direct/accuracy": 0.25})
        for step in range(3):
            trackers.log(step, {"reward/peer/mean": step / 4, "pass@4": 1.0, "seconds/learn": 2.0})
    with open_trackers(tmp_path, config, steps=3, first_step=1) as trackers:
        trackers.log(1, {"reward/peer/mean": 0.75})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    names = {"train/reward/peer/mean", "train/pass@4", "perf/seconds/learn", "eval/direct/accuracy"}
    assert set(events.Tags()["scalars"]) == names
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
    drawn = {int(row["debate"][2:]) for row in draw_samples(records)}
    assert 61 < len(drawn) < 139  # 100 expected, 9.7 the standard deviation
    later = {int(row["debate"][2:]) for row in draw_samples(records[500:])}
    assert later == {d - 500 for d in drawn if d >= 500}
    missed = [one for index, one in enumerate(records) if index not in drawn]
    assert len(draw_samples(missed[:3])) == 9
    monkeypatch.setattr(step_log, "SAMPLE_SHARE", 1)
    assert len(draw_samples(records[:3])) == 3 * 9


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
