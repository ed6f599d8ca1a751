"""What holds for every detector on any figures, and of the simulated runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulated_runs import COLLAPSES, collapsed_run, healthy_run, reward_fell_at
from debate_rl.alarms import DETECTORS, FIRST_SEED, RUNS, STEPS, Curves, readings
from debate_rl.metrics.intervals import wilson
from debate_rl.reports.run import change

NAMES = sorted({name for one in DETECTORS.values() for name in one.reads})
NAMES += ["accuracy", "votes/ties", "judge/decidable_votes", "sample/first/wins"]
NAMES += ["sample/winner_accuracy", "kl_max"]
VALUE = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, -1.0, 1e300, np.nan])


@st.composite
def any_curves(draw):
    length = draw(st.integers(0, 40))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=8))
    column = st.lists(VALUE, min_size=length, max_size=length)
    steps = np.cumsum(np.array([0, *draw(st.lists(st.integers(1, 9), min_size=length, max_size=length))]))
    values = {name: np.array(draw(column), dtype=float) for name in names}
    broken = {name: (0,) for name in names[:1] if length and draw(st.booleans())}
    return Curves(steps[:length].astype(np.int64), values, broken, draw(st.none() | st.integers(0, 64)))


def until(curves, step):
    """What was known when a step had ended."""
    count = int(np.searchsorted(curves.steps, step, side="right"))
    values = {name: column[:count] for name, column in curves.values.items()}
    broken = {name: tuple(at for at in where if at <= step) for name, where in curves.broken.items()}
    return Curves(curves.steps[:count], values, broken, curves.group)


@given(any_curves())
@settings(max_examples=150, deadline=None)
def test_no_detector_raises_and_an_alarm_is_at_a_step(curves):
    for found in readings(curves):
        where = {*curves.steps.tolist(), *sum(curves.broken.values(), ())}
        assert found.alarm is None or found.alarm.step in where


@pytest.mark.parametrize("name", COLLAPSES)
@given(st.integers(0, 10_000), st.sampled_from([5, 20, 60]))
@settings(max_examples=3, deadline=None)
def test_an_alarm_needs_nothing_that_comes_after_it(name, seed, speed):
    curves = collapsed_run(name, seed, speed=speed).curves
    alarm = DETECTORS[name].detect(curves)
    if alarm is not None:
        assert DETECTORS[name].detect(until(curves, alarm.step)) == alarm
        assert DETECTORS[name].detect(until(curves, alarm.step - 1)) is None


@pytest.mark.parametrize("name", DETECTORS)
@given(st.integers(30, 120))
@settings(max_examples=3, deadline=None)
def test_steps_that_all_are_as_the_last_healthy_one_raise_nothing(name, more):
    curves = healthy_run(5, 60).curves
    assert DETECTORS[name].detect(curves) is None
    steps = np.arange(60 + more)
    values = {}
    for figure, column in curves.values.items():
        known = column[np.isfinite(column)]
        last = np.median(known[-20:]) if len(known) else np.nan
        values[figure] = np.append(column, np.full(more, last))
    assert DETECTORS[name].detect(Curves(steps, values, {}, curves.group)) is None


def test_every_detector_has_a_collapse_a_rate_and_words():
    assert set(DETECTORS) == set(COLLAPSES)
    for one in DETECTORS.values():
        assert all((one.rule, one.source, one.fix, one.least >= 1))
        assert wilson(one.fired / RUNS, RUNS)[0] < 0.01


@pytest.mark.parametrize(
    "name", ["ratio", "entropy", "gradient", "kl", "repetition", "format", "wrong_consensus"]
)
def test_simulated_collapses_alarm_before_accuracy_has_halved(name):
    for seed in range(3):
        curves = collapsed_run(name, seed, speed=20).curves
        alarm, fell = DETECTORS[name].detect(curves), reward_fell_at(curves)
        assert alarm is not None
        assert fell is not None
        assert 100 <= alarm.step < fell


def test_the_noise_of_accuracy_is_that_of_problems_and_answers():
    """Over many runs: mean squared error of `accuracy/round_0` at P = 8, K = 4, N = 3 by its two parts."""
    off = []
    for seed in range(40):
        run = healthy_run(seed, 40, (8, 4, 3))
        marginal = _marginal(np.log(run.skill / (1 - run.skill)))
        off.extend(run.curves.values["accuracy/round_0"] - marginal)
    # with a spread of 1.3 in the logit the chance of a problem has a deviation near .24: .24 / sqrt(8) = .085
    assert np.mean(off) == pytest.approx(0.0, abs=0.01)
    assert np.std(off) == pytest.approx(0.085, abs=0.02)


def _marginal(skill):
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    return (1 / (1 + np.exp(-(skill[:, None] + 1.3 * nodes)))) @ weights / weights.sum()


@pytest.mark.slow
def test_the_constants_agree_with_a_new_measurement():
    """500 other healthy runs: with 19 detectors, Fisher's exact p below .001 would be no chance."""
    runs, seed = 500, FIRST_SEED + RUNS
    fired = dict.fromkeys(DETECTORS, 0)
    for number in range(seed, seed + runs):
        curves = healthy_run(number, STEPS).curves
        for name, one in DETECTORS.items():
            fired[name] += one.detect(curves) is not None
    for name, count in fired.items():
        told = DETECTORS[name].fired
        p = stats.fisher_exact([[count, runs - count], [told, RUNS - told]]).pvalue
        assert p > 0.001, (name, count, told)


@pytest.mark.parametrize("size", [1e-120, 1.0, 1e80, 1e120])
def test_a_change_is_the_same_at_every_scale(size):
    values = np.random.default_rng(0).normal(size=60) + np.linspace(0, 3, 60)
    plain, scaled = change(values), change(values * size)
    assert (scaled.low / size, scaled.high / size) == pytest.approx((plain.low, plain.high))
