"""Answers to the questions at the edges of their thresholds, on figures alone; hypotheses and proposals."""

from pathlib import Path

import numpy as np
import pytest

from debate_rl.alarms import DETECTORS, readings
from debate_rl.alarms.settings import NOTHING_LEFT, open_advice
from debate_rl.reports.diagnosis import QUESTIONS, ranked
from debate_rl.reports.figures import TABLES
from debate_rl.reports.findings import KINDS
from debate_rl.reports.run import Run, load_run
from debate_rl.reports.training import alarms_section


@pytest.fixture
def run_of(make_curves):
    def make(group=None, settings=None, **columns):
        curves = make_curves(group, **columns)
        return Run(Path("r"), "r", curves, settings or {}, readings=readings(curves))

    return make


def answer(name, run):
    return QUESTIONS[name](run)


def votes(valid, parsed):
    return {"votes/cast": [100.0] * 3, "votes/valid": [float(valid)] * 3, "judge/parsed_share": [parsed] * 3}


def judged(accuracy):
    return {"judge/accuracy": [accuracy] * 4, "judge/decidable_votes": [10.0] * 4}


def spread(truth, peer, norm):
    return {"reward/truth/std": [truth] * 3, "reward/peer/std": [peer] * 3, "grad_norm": [norm] * 3}


SAME = {"completions/distinct": [0.09] * 10}
NOISE = [0.01, -0.01] * 10
RISING = list(np.linspace(0.1, 0.6, 20))
TRAINED = {"accuracy/round_0": list(np.linspace(0.2, 0.7, 30))}
HELD_OUT = [None] * 9 + [0.3] + [None] * 9 + [0.3] + [None] * 9
ANSWERS = [
    *(
        ("Q1", {"accuracy/round_0": [value] * 5 + [0.9] * 9}, word)
        for value, word in ((0.005, "bad"), (0.03, "warn"), (0.05, "good"), (0.95, "good"), (0.97, "warn"))
    ),
    ("Q2", votes(0, 1.0), "bad"),
    ("Q2", votes(100, 0.95), "good"),
    ("Q2", votes(40, 0.95), "warn"),
    ("Q2", votes(20, 0.95), "bad"),
    ("Q2", votes(100, 0.4), "bad"),
    ("Q2", votes(100, 0.7), "warn"),
    ("Q3", SAME | {"accuracy": [0.3] * 10}, "bad"),
    ("Q3", SAME | {"accuracy": [0.95] * 10}, "good"),  # right answers may be alike
    ("Q4", judged(0.7), "good"),
    ("Q4", judged(0.6), "warn"),
    ("Q4", judged(0.54), "bad"),
    ("Q5", spread(0.4, 0.7, 1.0), "good"),
    ("Q5", spread(0.4, 0.0, 1.0), "warn"),
    ("Q5", spread(0.0, 0.0, 1.0), "bad"),
    ("Q5", spread(0.4, 6.0, 1.0), "bad"),
    ("Q5", spread(0.4, 0.7, 0.0), "bad"),
    ("Q6", {"accuracy": RISING}, "good"),
    ("Q6", {"accuracy": RISING[::-1]}, "bad"),
    ("Q6", {"accuracy": [0.04 + one for one in NOISE]}, "warn"),
    ("Q6", {"accuracy": RISING[:4]}, "unknown"),
    ("Q7", {"updates": [0.0] * 3, "kl_mean": [0.0] * 3}, "bad"),
    ("Q7", {"updates": [2.0] * 3, "kl_mean": [0.01] * 3}, "good"),
    ("Q8", TRAINED | {"eval/direct/accuracy": [*HELD_OUT, 0.31]}, "warn"),
    ("Q8", TRAINED | {"eval/direct/accuracy": [*HELD_OUT, 0.5]}, "good"),
    *((name, {}, "unknown") for name in QUESTIONS),
]


@pytest.mark.parametrize(("name", "figures", "word"), ANSWERS)
def test_the_answer_to_a_question(run_of, name, figures, word):
    found, text = answer(name, run_of(12, **figures))
    assert found == word
    assert "prefer wrong solutions" not in text


def test_an_evaluation_before_training_comes_first(run_of):
    run = run_of(accuracy__round_0=[0.5] * 5)
    run.evaluations = {"x (run@start)": {"direct/accuracy": (0.001, 0.0, 0.01)}}
    assert answer("Q1", run)[0] == "bad"
    run.evaluations = {"x (runs/warm_start_2@7)": {"direct/accuracy": (0.001, 0.0, 0.01)}}  # after step 7
    assert answer("Q1", run)[0] == "good"


@pytest.mark.parametrize(
    ("ties", "decidable", "against"), [(0.0, 30.0, True), (20.0, 30.0, False), (0.0, 5.0, False)]
)
def test_votes_are_against_truth_where_neither_ties_nor_few_votes_explain(run_of, ties, decidable, against):
    wrong = {"judge/accuracy": [0.3] * 4, "votes/valid": [100.0] * 4, "votes/ties": [ties] * 4}
    text = answer("Q4", run_of(**wrong, judge__decidable_votes=[decidable] * 4))[1]
    assert ("prefer wrong solutions" in text) == against


def test_held_out_problems_that_are_trained_on_are_named(run_of):
    same = {"env.path": "a", "held_out.path": "a", "env.split": "x", "held_out.split": "x"}
    assert "same problems" in answer("Q8", run_of(settings=same))[1]


def test_hypotheses_are_ranked_by_the_share_of_their_signs(run_of):
    columns = {"accuracy/round_0": [0.01] * 20, "accuracy/all_wrong": [0.9] * 20, "agreement": [0.5] * 20}
    columns |= {"reward/peer/std": [0.5] * 20, "completions/distinct": [0.2] * 20}
    found = ranked(run_of(**columns))
    assert [(one.crossed, one.known) for one in found[:3]] == [(2, 2), (1, 2), (0, 1)]
    assert [one.source[-3:] for one in found[:3]] == ["3.1", "3.3", "3.2"]


WEAK = TABLES["hypothesis"]["weak_signal"]["fix"]


@pytest.mark.parametrize(("weight", "left"), [(None, 2), (0.25, 2), (0.5, 1), (1, 1), ("0.5", 2)])
def test_what_a_run_has_set_is_not_proposed_to_it(weight, left):
    settings = {} if weight is None else {"rewards.truth_weight": weight}
    assert open_advice(settings, WEAK) == "; ".join(WEAK.split("; ")[-left:])


def test_of_every_proposal_what_is_set_is_left_out():
    settings = {"debate.order": "per_viewer", "learner.adam_eps": 1e-5}
    sided, finite = DETECTORS["one_sided"].fix, DETECTORS["not_finite"].fix
    assert open_advice(settings, sided) == "more weight of truth for judges"
    assert "adam_eps" in finite
    assert "adam_eps" not in open_advice(settings, finite)
    assert open_advice(settings, KINDS["bias/position"].advice) == NOTHING_LEFT
    proposals = [one.fix for one in DETECTORS.values()] + [one.advice for one in KINDS.values()]
    proposals += [one["fix"] for one in TABLES["hypothesis"].values()]
    assert [open_advice({}, text) for text in proposals] == proposals


def test_detectors_that_cannot_fire_yet_are_not_counted(whole):
    lines = (whole / "metrics.jsonl").read_text().splitlines()[:1]
    (whole / "metrics.jsonl").write_text(lines[0] + "\n")
    run = load_run(whole)
    able = sum(reading.able for reading in run.readings)
    assert 0 < able < len(run.readings)
    assert alarms_section([run]).about == f"0 of {able} detectors with enough data fired"
