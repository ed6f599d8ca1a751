"""Reports of stored runs: the same from records and lines, as training measures it, of any files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.metrics.answers import winner_metrics
from debate_rl.metrics.debates import judge_metrics
from debate_rl.reports import judgment_figures
from debate_rl.reports.charts import thinned
from debate_rl.reports.diagnosis import ended_line, status
from debate_rl.reports.run import load_run, read_config
from transcripts import RunStore, write_step

from .conftest import scored


def played(agents, **protocol):
    """Records of three steps by scripted debaters who solve half and judge well."""
    config = DebateConfig(num_agents=agents, num_rounds=2, **protocol)
    problems = [Problem(f"sum/{n}", f"What is {n} + 1?", str(n + 1), "sums/small") for n in range(8)]
    answers = {p.id: Answers(str(p.answer), ("5", "6")) for p in problems}
    policy = scripted_debaters(answers, solve=(0.6, 0.4) * 2, judge=0.8)
    steps = ((step, run_debates(problems, policy, config, seed=step)) for step in range(3))
    return [scored(debate, step) for step, debates in steps for debate in debates]


@pytest.mark.parametrize("agents", [3, 4])
def test_figures_are_those_of_training(agents):
    records = played(agents)
    found = {f.name: f.estimate for f in judgment_figures(records) if f.estimate}
    debates, tables = [r.debate for r in records], [r.correct for r in records]
    wanted = judge_metrics(debates, tables) | winner_metrics(debates, tables, [r.rewards for r in records])
    assert found["judge/accuracy"].n == wanted["judge/decidable_votes"]
    assert found["judge/coverage"].n == wanted["judge/decidable_pairs"]
    for name in ("accuracy", "strict_accuracy", "coverage"):
        assert found[f"judge/{name}"].value == pytest.approx(wanted[f"judge/{name}"]), name
    for name in ("winner/accuracy", "winner/lift"):
        assert found[name].value == pytest.approx(wanted[name]), name


@pytest.mark.parametrize(("order", "swapped"), [("per_debate", False), ("per_viewer", True)])
def test_an_order_for_each_viewer_makes_swapped_pairs(order, swapped):
    found = {f.name: f.estimate for f in judgment_figures(played(4, order=order))}
    shares = [found[f"swaps/{name}"] for name in ("consistency", "primacy", "recency")]
    assert all((share is not None) == swapped for share in shares)
    assert not swapped or sum(share.value for share in shares) == pytest.approx(1.0)


def test_a_stored_run_is_read_and_its_filters_find_the_debates(tmp_path):
    records = played(3)
    for step in range(3):
        write_step(tmp_path / "transcripts", step, [r for r in records if r.step == step])
    with RunStore.open(tmp_path) as run:
        read = judgment_figures(record for _, record in run.records())
        assert read == judgment_figures(records)
        found = {figure.name: figure for figure in read}
        for name in ("winner/accuracy", "winner/mixed_accuracy", "graph/cycles", "graph/condorcet"):
            assert run.count(found[name].filter) == found[name].estimate.n, name
        step = found["judge/accuracy/step/1"]
        again = judgment_figures(debate for _, debate in run.records(step.filter))
        assert next(f for f in again if f.name == "judge/accuracy").estimate == step.estimate
        flips = judgment_figures(debate for _, debate in run.records(found["cascade/vulnerability"].filter))
        [same] = [f for f in flips if f.name == "cascade/vulnerability"]
        assert same.estimate == found["cascade/vulnerability"].estimate
        rates = (found["graph/cycles"].estimate.value, found["graph/condorcet"].estimate.value)
        assert rates == (run.count("cycle:yes") / run.count(), run.count("condorcet:yes") / run.count())


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


def test_nothing_deep_or_foreign_raises(tmp_path):
    (tmp_path / "config.toml").write_text("a = " + "[" * 5000)
    assert read_config(tmp_path / "config.toml")[1]
    (tmp_path / "config.toml").write_bytes(b"a = '\xff'")
    assert "is not TOML" in read_config(tmp_path / "config.toml")[1][0]
    assert read_config(tmp_path / "none.toml")[1] == ["no none.toml: settings are unknown"]
    (tmp_path / "run.json").write_text("[1]")
    assert load_run(tmp_path).info == {}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 40))
def test_thinned_curves_keep_their_range_and_order(values, most):
    x, y = thinned(np.arange(len(values)), np.array(values), most)
    assert len(x) == len(y) == min(most, len(values))
    assert list(x) == sorted(x)
    assert min(values) - 1e-6 <= min(y) <= max(y) <= max(values) + 1e-6
