"""The whole training report, of a run with everything, of one with transcripts alone, and of nothing."""

import json
import shutil

import numpy as np
import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate.types import TurnId
from debate_rl.alarms.settings import risky
from debate_rl.formatting import title
from debate_rl.metrics.intervals import apart
from debate_rl.reports import judgment_figures
from debate_rl.reports.charts import histogram
from debate_rl.reports.diagnosis import changed_outputs, status, verdict
from debate_rl.reports.document import Chart, Paragraph, Table
from debate_rl.reports.figures import TABLES
from debate_rl.reports.run import NO_METRICS, change, load_run, load_runs
from debate_rl.reports.training import sections_of
from rewards import RewardConfig, score_debate
from transcripts import Record, RunStore, compile_filter, write_step


def report(*paths):
    return sections_of(load_runs(paths))


def parts(sections, kind):
    every = [(section, part) for section in sections for part in section.parts]
    return {getattr(part, "name", n): part for n, (_, part) in enumerate(every) if isinstance(part, kind)}


def rows_of(table):
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def write_lines(run, lines):
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_whole_run(whole):
    sections = report(whole)
    names = "runs alarms questions final causes phases settings curves distributions"
    assert [section.name for section in sections] == names.split()
    tables = parts(sections, Table)
    # .2 to .72 by .04: thirds of 4 steps are .26 and .66
    steps, state, word, figure, early, late, *_, best = rows_of(tables["runs/table"])["whole"]
    assert (steps, state, word, figure) == ("14 of 14", "finished", "learning", "accuracy")
    assert (early, late, best) == ("0.260", "0.660", "13")
    questions = {row[0].text: row[3].text for row in tables["questions/1"].rows}
    assert questions == {f"Q{n}": "good" for n in range(1, 9)} | {"Q4": questions["Q4"]}
    final = rows_of(tables["final/1"])
    assert final["direct accuracy"][0] == "0.390 [0.350, 0.430]"
    assert final["direct accuracy"][-1] == "0.280 [0.223, 0.337]"  # .04 * sqrt(2) = .057
    charts = parts(sections, Chart)
    assert charts["curves/held_out"].series[0].x == (6.0, 13.0)
    assert charts["curves/held_out"].series[0].low == pytest.approx((0.35, 0.63))
    assert charts["curves/rewards"].series[0].high[0] == pytest.approx(0.6)
    assert charts["curves/time/1"].series[0].y[0] == pytest.approx(0.75)
    sources = charts["curves/sources"].series
    assert [one.label for one in sources] == ["accuracy, source gsm8k", "accuracy, source math"]
    assert (sources[0].y[-1], sources[1].y[-1]) == (pytest.approx(0.72), pytest.approx(0.1))
    assert charts["curves/source_shares"].series[0].y[0] == pytest.approx(0.25)
    assert not {"curves/source_rewards", "curves/graders"} & charts.keys()  # there is one grader


def test_every_filter_is_one_and_every_link_is_to_the_run(whole):
    every = [part for section in report(whole) for part in section.parts]
    cells = [cell for part in every if isinstance(part, Table) for row in part.rows for cell in row]
    behind = [one.behind for one in (*cells, *(part for part in every if not isinstance(part, Table)))]
    found = [link for link in behind if link is not None]
    assert found
    for link in found:
        compile_filter(link.filter)
        assert link.run == str(whole)


def test_transcripts_alone_make_a_report_that_says_what_is_missing(traced, tmp_path):
    texts = {part.text for part in parts(report(traced), Paragraph).values()}
    assert {f"traced: {NO_METRICS}", "traced: no config.toml: settings are unknown"} <= texts
    run = load_run(traced)
    assert (run.debates, len(run.curves.steps), run.read) == (14 * 8, 14, 14 * 8)
    assert len(run.curves.of("accuracy/round_0")[1]) == 14
    assert not set(traced.glob("*")) - {traced / "transcripts"}
    for path in (tmp_path, tmp_path / "none"):  # an empty folder, and none
        assert rows_of(parts(report(path), Table)["runs/table"])[path.name][2] == "no figures"


def test_status_by_the_last_line_and_no_verdict_on_few_steps(whole):
    run = load_run(whole)
    run.settings = dict(run.settings) | {"train.steps": 100}
    assert status(run, now=1130.0 + 500) == "running"
    assert status(run, now=1130.0 + 700) == "stopped"
    write_lines(whole, read_lines(whole)[:4])
    (whole / "transcripts").unlink()
    assert verdict(load_run(whole))[0] == "too few steps"


def test_two_runs_are_compared(whole, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    text = (other / "config.toml").read_text().replace("lr = 5e-5", "lr = 1e-5")
    (other / "config.toml").write_text(text)
    sections = report(whole, other)
    tables, charts = parts(sections, Table), parts(sections, Chart)
    assert rows_of(tables["settings/differing"]) == {"learner.lr": ["5e-05", "1e-05"]}
    assert rows_of(tables["final/beside"])["direct accuracy"][-1] == "0.000 [-0.057, 0.057]"
    assert [one.label for one in charts["curves/loss"].series] == ["loss, whole", "loss, other"]
    assert [one.label for one in charts["curves/rewards/truth_reward_mean"].series] == ["whole", "other"]
    names = [part.name for s in sections for part in s.parts if not isinstance(part, Paragraph)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("right", "by", "word"),
    [(0.02, 0.01, "collapsed"), (0.45, 0.3, "signs of collapse"), (0.9, 0.01, "learning, with alarms")],
)
def test_a_run_with_an_alarm_is_named_by_its_late_answers(whole, right, by, word):
    """First third .2 to .36; the seven last values are those of the end."""
    early = [{"accuracy": 0.2 + 0.06 * (step % 7), "ratio_mean": 1} for step in range(14)]
    late = [{"accuracy": right + by * (step % 2), "ratio_mean": 21.75} for step in range(14, 21)]
    write_lines(whole, [{"step": step} | line for step, line in enumerate(early + late)])
    found, _, sentence = verdict(load_run(whole))
    assert found == word
    assert "from step 14 on: the mean ratio left 1/2 to 2 (alarms: ratio" in sentence


def test_one_agent_alone_is_no_consensus(tmp_path):
    protocol = DebateConfig(num_agents=1, num_rounds=1)
    policy = scripted_debaters({"p": Answers("4", ("5",))}, solve=(0.0,), judge=1.0)
    debates = run_debates([Problem("p", "What is 3 + 1?", "4")] * 4, policy, protocol, seed=0)
    write_step(tmp_path / "transcripts", 0, [Record(debate, 0, "p", ((False,),)) for debate in debates])
    curves = load_run(tmp_path).curves
    assert curves.of("accuracy")[1].tolist() == [0.0]
    assert not {"agreement", "wrong_consensus"} & curves.values.keys()


def test_the_lift_without_metrics_is_that_of_the_winners_own_round(tmp_path):
    """Without a ballot the last votes are on the first of two rounds; in the second all are right."""
    protocol = DebateConfig(num_agents=3, num_rounds=2, final_ballot=False)
    problem = Problem("p", "What is 3 + 1?", "4")
    policy = scripted_debaters({"p": Answers("4", ("5", "6"))}, solve=(0.5,) * 3, judge=0.9)
    records = []
    for debate in run_debates([problem] * 20, policy, protocol, seed=0):
        correct = tuple((debate.turn(TurnId(agent, 0)).parsed.answer == "4", True) for agent in range(3))
        records.append(Record(debate, 0, "p", correct, score_debate(debate, correct, RewardConfig())))
    write_step(tmp_path / "transcripts", 0, records)
    [found] = [one for one in judgment_figures(records) if one.name == "winner/lift"]
    assert found.estimate.value > 0
    assert load_run(tmp_path).curves.of("winner/lift")[1].tolist() == [pytest.approx(found.estimate.value)]


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"rewards.likelihood_weight": 0.5, "learner.loss": "ppo"}, ["learner.loss = ppo"]),
        ({"rewards.likelihood_weight": 1.0, "learner.loss": "grpo"}, ["rewards.likelihood_weight = 1"]),
        ({"rewards.likelihood_weight": [[0, 0.1], [9, 1.0]], "learner.loss": "grpo"}, []),
        ({"rewards.likelihood_weight": 0.0, "learner.loss": "ppo"}, []),
        ({"learner.beta": 0.0, "learner.keep_reference": True}, []),
        ({"learner.beta": 0.0, "learner.keep_reference": False}, ["learner.beta = 0"]),
    ],
)
def test_settings_that_broke_a_likelihood_reward_are_named(settings, warned):
    assert [setting for setting, _, _ in risky(settings)] == warned


def test_a_change_needs_twelve_values_and_an_interval_off_zero():
    assert change(np.zeros(0)) is None
    assert change(np.arange(11.0)).direction == "too few steps"
    assert change(np.arange(12.0)).direction == "up"
    assert change(np.tile([0.0, 1.0], 20)).direction == "flat"
    # thirds 0 1 0 1 and 2 3 2 3: means .5 and 2.5, variance 1/3 each, 6 degrees of freedom
    found = change(np.array([0, 1, 0, 1, 9, 9, 9, 9, 2, 3, 2, 3.0]))
    reach = 2.4469 * np.sqrt(2 * (1 / 3) / 4)
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach), abs=1e-3)


def test_differences_histograms_and_thirds_by_hand(traced):
    assert apart((0.5, 0.4, 0.6), (0.5, 0.4, 0.6)) == pytest.approx((0.0, -0.1414, 0.1414), abs=1e-4)
    x, y = histogram(np.array([0.0, 10.0]), np.arange(0.0, 20.5, 0.5))
    assert (len(x), sum(y)) == (20, 1.0)
    assert load_run(traced).thirds == [("early", 0, 3), ("middle", 4, 9), ("late", 10, 13)]


def test_outputs_of_a_policy_that_never_changes_are_no_further_apart_late(traced):
    run = load_run(traced)
    run.sample.texts = {f"p{n}": [(step, "the same words") for step in range(14)] for n in range(6)}
    assert changed_outputs(run) == (0.0, 0.0, 6)
    run.sample.texts = {f"p{n}": [(step, f"words {step > 7}") for step in range(14)] for n in range(6)}
    between, before, _ = changed_outputs(run)
    assert between > before + 0.02


@pytest.mark.slow
def test_many_figures_that_only_fluctuate_have_no_direction(whole):
    """Of 14 figures of noise one in 50 would fall or rise: none may, in a table of them."""
    rng = np.random.default_rng(1)
    names = [name for name in TABLES["figures"]["phases"] if not name.startswith("sample/")]
    write_lines(whole, [{"step": s} | {name: 0.5 + rng.normal() / 50 for name in names} for s in range(60)])
    rows = rows_of(parts(report(whole), Table)["phases/1"])
    assert len(rows) >= len(names)
    alone = {name: change(load_run(whole).curves.of(name)[1]) for name in names}
    assert any(found.low > 0 or found.high < 0 for found in alone.values())  # 95% alone would call one
    assert {rows[title(name)][-1] for name in names} == {"flat"}


def test_causes_of_wrong_answers_early_and_late_with_what_shows_them(tmp_path):
    """A run of 3 steps: wrong by a false sum at first, right, and wrong where nobody knows why."""
    problem = Problem("p", "What is 12 * 4 + 17?", "65", kind="number")
    said = {0: r"48 + 17 = 55, so \boxed{55}", 1: r"\boxed{65}", 2: r"12 + 4 + 17 = 33, so \boxed{33}"}
    for step, text in said.items():
        policy = ScriptedPolicy({(0, 0): f"<solution>{text}</solution>"})
        debates = run_debates([problem] * 2, policy, DebateConfig(num_agents=1, num_rounds=1), seed=step)
        write_step(tmp_path / "transcripts", step, [Record(d, step, "p", ((step == 1,),)) for d in debates])
    tables = parts(report(tmp_path), Table)
    found = rows_of(tables["causes/1"])
    counts = {"extraction": "0", "incoherent": "0", "cut off": "0", "arithmetic": "2", "not known": "2"}
    assert {name: cells[1] for name, cells in found.items()} == counts
    assert [cell.split()[0] for cell in found["arithmetic"][2:]] == ["0.500", "1.000", "0.000"]
    assert [cell.split()[0] for cell in found["not known"][2:]] == ["0.500", "0.000", "1.000"]
    first, second = ([cell.text for cell in row] for row in tables["causes/1/examples"].rows)
    assert first == ["arithmetic", "0.1", problem.question, "65", "55", "48 + 17 = 55"]
    assert second == ["not known", "2.1", problem.question, "65", "33", ""]
    with RunStore.open(tmp_path) as store:
        assert [store.count(f"cause:{n}") for n in ("arithmetic", "not_known", "extraction")] == [2, 2, 0]


def test_graders_share_a_chart_and_so_do_the_forms_in_training_and_held_out(whole):
    more = {"accuracy [boxed]": 0.1, "missing [boxed]": 0.9, "missing": 0.2}
    more |= {"eval/direct/missing": 0.3, "eval/direct/missing [boxed]": 0.8}
    write_lines(whole, [line | more for line in read_lines(whole)])
    charts = parts(report(whole), Chart)
    assert {"accuracy", "accuracy [boxed]"} <= {one.label for one in charts["curves/graders"].series}
    labels = [one.label for one in charts["curves/missing"].series]
    assert labels[:2] == ["missing", "missing [boxed]"]
    assert {"direct missing, held out", "direct missing [boxed], held out"} <= set(labels)


def test_every_aspect_of_a_solution_has_a_figure_or_says_why_not(whole):
    rows = rows_of(parts(report(whole), Table)["phases/1/aspects"])
    assert list(rows) == [name for name, _, _ in TABLES["figures"]["aspects"]]
    # .2 to .72 by .04: thirds of 4 steps are .26 and .66
    assert rows["final answer right"][:3] == ["accuracy", "0.260", "0.660"]
    assert rows["final answer right"][-1] == ""
    assert rows["approach"][:4] == [*"----"]
    assert rows["partial credit"][0] == "score"
    assert all(rows[name][-1] for name in ("approach", "partial credit"))
