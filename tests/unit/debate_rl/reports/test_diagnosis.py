"""Answers to the questions at the edges of their thresholds, on figures alone."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("value", "word"), [(0.005, "bad"), (0.03, "warn"), (0.05, "good"), (0.95, "good"), (0.97, "warn")]
)
def test_what_the_model_could_do(run_of, value, word):
    assert answer("Q1", run_of(accuracy__round_0=[value] * 5 + [0.9] * 9))[0] == word


def test_an_evaluation_before_training_comes_first(run_of):
    run = run_of(accuracy__round_0=[0.5] * 5)
    run.evaluations = {"x (run@start)": {"direct/accuracy": (0.001, 0.0, 0.01)}}
    assert answer("Q1", run)[0] == "bad"
    run.evaluations = {"x (runs/warm_start_2@7)": {"direct/accuracy": (0.001, 0.0, 0.01)}}  # after step 7
    assert answer("Q1", run)[0] == "good"


@pytest.mark.parametrize(
    ("valid", "parsed", "word"),
    [
        (0, 1.0, "bad"),
        (100, 0.95, "good"),
        (40, 0.95, "warn"),
        (20, 0.95, "bad"),
        (100, 0.4, "bad"),
        (100, 0.7, "warn"),
    ],
)
def test_votes_and_the_seeds_bounds(run_of, valid, parsed, word):
    columns = {
        "votes__cast": [100.0] * 3,
        "votes__valid": [float(valid)] * 3,
        "judge__parsed_share": [parsed] * 3,
    }
    assert answer("Q2", run_of(**columns))[0] == word


def test_alike_solutions_are_bad_unless_they_are_right(run_of):
    same = {"completions__distinct": [0.09] * 10}
    assert answer("Q3", run_of(12, **same, accuracy=[0.3] * 10))[0] == "bad"
    assert answer("Q3", run_of(12, **same, accuracy=[0.95] * 10))[0] == "good"


@pytest.mark.parametrize(("accuracy", "word"), [(0.7, "good"), (0.6, "warn"), (0.54, "bad")])
def test_right_votes(run_of, accuracy, word):
    run = run_of(judge__accuracy=[accuracy] * 4, judge__decidable_votes=[10.0] * 4)
    assert answer("Q4", run)[0] == word
    assert "against" not in answer("Q4", run)[1]


def test_votes_are_against_truth_only_where_ties_cannot_explain_it(run_of):
    wrong = {"judge__accuracy": [0.3] * 4, "judge__decidable_votes": [30.0] * 4, "votes__valid": [100.0] * 4}
    assert "against truth" in answer("Q4", run_of(**wrong, votes__ties=[0.0] * 4))[1]
    assert "against truth" not in answer("Q4", run_of(**wrong, votes__ties=[20.0] * 4))[1]
    few = wrong | {"judge__decidable_votes": [5.0] * 4}
    assert "against truth" not in answer("Q4", run_of(**few, votes__ties=[0.0] * 4))[1]


@pytest.mark.parametrize(
    ("truth", "peer", "norm", "word"),
    [
        (0.4, 0.7, 1.0, "good"),
        (0.4, 0.0, 1.0, "warn"),
        (0.0, 0.0, 1.0, "bad"),
        (0.4, 6.0, 1.0, "bad"),
        (0.4, 0.7, 0.0, "bad"),
    ],
)
def test_spreads_and_gradients(run_of, truth, peer, norm, word):
    columns = {"reward__truth__std": [truth] * 3, "reward__peer__std": [peer] * 3, "grad_norm": [norm] * 3}
    assert answer("Q5", run_of(**columns))[0] == word


def test_progress_by_its_interval(run_of):
    noise = [0.01, -0.01] * 10
    rising = list(np.linspace(0.1, 0.6, 20))
    assert answer("Q6", run_of(accuracy=rising))[0] == "good"
    assert answer("Q6", run_of(accuracy=rising[::-1]))[0] == "bad"
    assert answer("Q6", run_of(accuracy=[0.04 + one for one in noise]))[0] == "warn"
    assert answer("Q6", run_of(accuracy=rising[:4]))[0] == "unknown"


def test_a_policy_that_is_never_updated(run_of):
    assert answer("Q7", run_of(updates=[0.0] * 3, kl_mean=[0.0] * 3))[0] == "bad"
    assert answer("Q7", run_of(updates=[2.0] * 3, kl_mean=[0.01] * 3))[0] == "good"


def test_gains_that_stay_in_training(run_of):
    trained = list(np.linspace(0.2, 0.7, 30))
    evals = [None] * 9 + [0.3] + [None] * 9 + [0.3] + [None] * 9 + [0.31]
    run = run_of(accuracy__round_0=trained, eval__direct__accuracy=evals)
    assert answer("Q8", run)[0] == "warn"
    evals[-1] = 0.5
    assert answer("Q8", run_of(accuracy__round_0=trained, eval__direct__accuracy=evals))[0] == "good"
    same = {"env.path": "a", "held_out.path": "a", "env.split": "x", "held_out.split": "x"}
    assert "same problems" in answer("Q8", run_of(settings=same))[1]


def test_nothing_known_is_unknown(run_of):
    assert {answer(f"Q{n}", run_of())[0] for n in range(1, 9)} == {"unknown"}


def test_hypotheses_are_ranked_by_the_share_of_their_signs(run_of):
    columns = {"accuracy__round_0": [0.01] * 20, "accuracy__all_wrong": [0.9] * 20}
    columns |= {
        "reward__peer__std": [0.5] * 20,
        "completions__distinct": [0.2] * 20,
        "agreement": [0.5] * 20,
    }
    found = ranked(run_of(**columns))
    assert [(one.crossed, one.known) for one in found[:3]] == [(2, 2), (1, 2), (0, 1)]
    assert [one.source[-3:] for one in found[:3]] == ["3.1", "3.3", "3.2"]


WEAK = "mix in truth: rewards.truth_weight = 0.5 or more; more debates of a problem"


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, WEAK),
        ({"rewards.truth_weight": 0.25}, WEAK),
        ({"rewards.truth_weight": 0.5}, "more debates of a problem"),
        ({"rewards.truth_weight": 1}, "more debates of a problem"),
        ({"rewards.truth_weight": "0.5"}, WEAK),
    ],
)
def test_what_a_run_has_set_is_not_proposed_to_it(run_of, settings, left):
    run = run_of(accuracy=[0.5] * 20, settings=settings)
    weak = next(one for one in ranked(run) if one.source.endswith("3.2"))
    assert open_advice(run.settings, weak.fix) == left


def test_of_every_proposal_what_is_set_is_left_out(run_of):
    run = run_of(settings={"debate.order": "per_viewer", "learner.adam_eps": 1e-5})
    sided, finite = DETECTORS["one_sided"].fix, DETECTORS["not_finite"].fix
    assert open_advice(run.settings, sided) == "more weight of truth for judges"
    assert open_advice(run.settings, finite) == "a warm-up, bfloat16 in place of float16"
    assert open_advice(run.settings, KINDS["bias/position"].advice) == NOTHING_LEFT
    assert open_advice({}, sided) == sided
    others = run_of()
    proposals = [one.fix for one in DETECTORS.values()] + [
        one["fix"] for one in TABLES["hypothesis"].values()
    ]
    proposals += [one.advice for one in KINDS.values()]
    assert [open_advice(others.settings, text) for text in proposals] == proposals


def test_detectors_that_cannot_fire_yet_are_not_counted(whole):
    lines = (whole / "metrics.jsonl").read_text().splitlines()[:1]
    (whole / "metrics.jsonl").write_text(lines[0] + "\n")
    run = load_run(whole)
    able = sum(reading.able for reading in run.readings)
    assert 0 < able < len(run.readings)
    assert alarms_section([run]).about == f"0 of {able} detectors that can fire yet"
