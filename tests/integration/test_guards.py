"""What alarms, a target and a time limit do to a run, with real steps of a tiny model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import debate_rl.training.act_on_alarms
import debate_rl.training.run
from debate_rl.alarms import DETECTORS, Alarm, Reading
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.step_log import read_metrics
from debate_rl.runs.checkpoint import checkpoints
from debate_rl.runs.folder import RunFolder
from debate_rl.training.loop import train
from debate_rl.training.open_or_resume import open_training
from transcripts import RunStore

from .conftest import left_by

LR = 3e-3


@pytest.fixture
def config(tiny_recipe, tmp_path):
    """Return make(*overrides) -> the configuration of a run of four steps in this test's folder."""

    def make(*overrides: str, run: str = "run") -> Config:
        fixed = ("train.steps=4", f"learner.lr={LR}", "logging.progress=none", f"run.dir={tmp_path / run}")
        return load_config(Config, tiny_recipe, [*fixed, *overrides])

    return make


@pytest.fixture
def high_lr(monkeypatch):
    """Let "ratio" fire from step 2 on where the learning rate is that of the recipe."""

    def detect(curves):
        steps, values = curves.of("lr")
        high = steps[(steps >= 2) & (values > LR * 0.9)]
        return Alarm(int(high[0]), LR, LR * 0.9, "the rate is high") if len(high) else None

    one = replace(DETECTORS["ratio"], detect=detect, fix="a lower learner.lr")
    monkeypatch.setattr(
        debate_rl.training.act_on_alarms, "readings", lambda curves: [Reading(one, detect(curves), 1)]
    )


def ended_as(run: Path) -> tuple[object, ...]:
    """Return the weights and the metrics that a run ended with."""
    left = left_by(run)
    return left["weights"], left["metrics.jsonl"]


def ends(folder: RunFolder) -> list[tuple[str, int]]:
    return [(start["end"]["reason"], start["end"]["step"]) for start in folder.starts]


@pytest.mark.slow
def test_hours_count_all_starts_and_a_run_with_more_of_them_goes_on(config):
    first = train(config("train.hours=1e-9", "train.steps=2"))
    assert ends(first.folder) == [("hours", 0)]
    second = train(config("train.hours=1", "train.steps=2"))
    assert ends(second.folder) == [("hours", 0), ("steps", 2)]
    spent = [start["seconds"] for start in second.folder.starts]
    assert json.loads(second.folder.facts.read_text())["wall_seconds"] == pytest.approx(sum(spent))
    tiny = f"train.hours={sum(spent) / 3600 / 2}"
    third = train(config(tiny, "train.steps=4"))
    assert ends(third.folder)[-1] == ("hours", 2)


@pytest.mark.parametrize(
    ("action", "steps", "reason"),
    [
        pytest.param("warn", 4, "steps", marks=pytest.mark.slow),
        ("checkpoint", 4, "steps"),
        ("stop", 3, "alarm"),
    ],
)
def test_an_alarm_warns_saves_or_ends_the_run_and_names_the_tokens_furthest_from_the_sampler(
    config, high_lr, capsys, action, steps, reason
):
    own = ("train.save_every=0", "train.keep_last=9", "logging.progress=lines")
    session = train(config(f"train.on_alarm={action}", *own))
    assert ends(session.folder) == [(reason, steps)]
    [line] = map(json.loads, session.folder.alarms.read_text().splitlines())
    assert (line["detector"], line["since"], line["step"], line["action"]) == ("ratio", 2, 2, action)
    saved = [path.name for path in checkpoints(session.folder.checkpoints)]
    assert ("step_000003" in saved) == (action != "warn")
    apart = [abs(token["trainer"] - token["sampler"]) for token in line["tokens"]]
    assert len(apart) == 5
    assert apart == sorted(apart, reverse=True)
    [largest] = [row["mismatch_max"] for row in read_metrics(session.folder.metrics) if row["step"] == 2]
    assert apart[0] == pytest.approx(largest, rel=1e-3, abs=1e-7)
    assert capsys.readouterr().err.count("  token ") == 3


@pytest.mark.slow
def test_a_rollback_is_a_resume_from_before_the_alarm_with_half_the_learning_rate(config, high_lr):
    session = train(config("train.on_alarm=rollback"))
    assert ends(session.folder) == [("rollback", 3), ("steps", 4)]
    assert session.folder.starts[0]["end"]["back_to"] == 2
    assert [row["lr"] for row in read_metrics(session.folder.metrics)] == [LR, LR, LR / 2, LR / 2]
    train(config("train.steps=2", run="other"))
    lower = (f"learner.lr={LR / 2}", "run.allow_changes=['learner.lr']")
    assert ended_as(session.folder.path) == ended_as(train(config(*lower, run="other")).folder.path)


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.slow
def test_killed_before_or_after_a_rollback_is_written_the_run_ends_the_same(config, high_lr, monkeypatch):
    undisturbed = train(config("train.on_alarm=rollback", run="undisturbed")).folder.path
    once = RunFolder.record_end

    def before(self, reason, **more):
        raise Killed

    def after(self, reason, **more):
        once(self, reason, **more)
        raise Killed

    for name, kill in (("before", before), ("after", after)):
        rolling = config("train.on_alarm=rollback", run=name)
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "record_end", kill)
            with pytest.raises(Killed):
                train(rolling)
        session = train(rolling)
        assert ended_as(session.folder.path) == ended_as(undisturbed)
    assert [reason for reason, _ in ends(session.folder)] == ["rollback", "steps"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kll", "stop", "did you mean 'kl'?"),
        ("held_out", "stop", "there are no evaluations during training"),
        ("grader_drift", "stop", "no second grader is set"),
        ("likelihood", "stop", "no likelihood is rewarded"),
    ],
)
def test_an_action_for_a_detector_without_figures_is_refused_before_training(config, key, value, words):
    refused = config(f"train.on_alarm.{key}={value}")
    with pytest.raises(ValueError, match=words), open_training(refused):
        pass
    assert not (Path(refused.run.dir) / "config.toml").exists()


@pytest.mark.slow
def test_the_command_says_why_a_run_ended_and_an_alarm_is_exit_code_1(
    tiny_recipe, debate_command, high_lr, tmp_path
):
    words = ("train", tiny_recipe, f"run.dir={tmp_path / 'run'}", "train.steps=4", f"learner.lr={LR}")
    code, out, err = debate_command(*words, "train.on_alarm=stop", "logging.progress=lines")
    assert code == 1
    assert "  ended        ratio at step 2: the rate is high; " in out
    [line] = [line for line in err.splitlines() if line.startswith("alarm at step 2")]
    assert line.endswith("the rate is high. Proposed: a lower learner.lr. train.on_alarm: stop")
    code, out, _ = debate_command(*words, "train.on_alarm=stop")
    assert code == 0
    assert "  ended        4 steps done, as many as train.steps; " in out
    assert " of wall time in 2 starts" in out


@pytest.mark.slow
def test_the_real_detectors_end_a_run_whose_learning_rate_is_a_hundred_times_too_high(config):
    of_learning = [f"train.on_alarm.{name}=stop" for name in ("ratio", "gradient", "not_finite", "kl")]
    watched = ("train.steps=8", "learner.beta=0.01", *of_learning)
    usual = train(config(*watched))
    assert ends(usual.folder) == [("steps", 8)]
    high = train(config(*watched, f"learner.lr={100 * LR}", run="high"))
    [(reason, steps)] = ends(high.folder)
    assert (reason, steps < 8) == ("alarm", True), high.end


def test_debates_of_some_problems_of_each_step_are_kept_and_metrics_are_of_all(
    tiny_run, tiny_recipe, tmp_path
):
    """Of two steps of two problems with two debates each: all, or those of one problem."""
    runs = {"all": tiny_run, "one": tmp_path / "one"}
    more = (f"run.dir={runs['one']}", "logging.transcript_groups=1", "logging.progress=none")
    train(load_config(Config, tiny_recipe, [*more, 'advantages.peer.baseline="rae"']))
    kept, figures = {}, {}
    for name, run in runs.items():
        with RunStore.open(run) as store:
            kept[name] = {id: record.debate for id, record in store.records()}
        lines = read_metrics(run / "metrics.jsonl")
        figures[name] = [{key: line[key] for key in ("accuracy", "loss", "votes/cast")} for line in lines]
    assert list(kept["one"]) == ["0.0", "0.1", "1.0", "1.1"]
    assert len(kept["all"]) == 8
    assert kept["one"].items() <= kept["all"].items()
    assert figures["one"] == figures["all"]
