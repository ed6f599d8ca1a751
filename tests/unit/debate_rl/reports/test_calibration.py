"""The 95% intervals hold the truth 95 times in a hundred, where naive ones do not."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture
def calibration(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("judging_calibration")


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.05, 0.25])
@pytest.mark.parametrize(("accuracy", "problems"), [(0.6, 100), (0.7, 120), (0.8, 200)])
def test_intervals_cover(calibration, accuracy, problems, icc):
    setting = calibration.Setting(accuracy, icc=icc, problems=problems)
    found = calibration.coverage(setting, 2000, seed=round(100 * accuracy))
    for name in calibration.FIGURES:
        assert 0.93 <= found[name, "clustered"] <= 0.97, name
        assert found[name, "naive"] <= found[name, "clustered"] + 0.005, name
    if icc == 0.25:
        assert found["accuracy", "naive"] < 0.9


def test_a_few_replications_cover_about_as_often(calibration):
    found = calibration.coverage(calibration.Setting(icc=0.25, problems=100), 150, seed=1)
    for name in calibration.FIGURES:
        assert 0.9 <= found[name, "clustered"] <= 0.99, name
    assert found["accuracy", "naive"] < 0.9


def test_simulated_votes_are_as_said(calibration):
    setting = calibration.Setting(0.7, 0.05, icc=0.25, problems=40_000)
    votes = calibration.simulate(setting, np.random.default_rng(0))
    right = votes.won == (votes.better == 1)
    for better, share in ((1, 0.75), (-1, 0.65)):
        assert right[votes.better == better].mean() == pytest.approx(share, abs=0.01)
    assert votes.won[votes.better == 0].mean() == pytest.approx(0.55, abs=0.01)
    # the variance of a problem's sum of m votes on equal pairs is m p q (1 + (m - 1) icc)
    equal = votes.better == 0
    sizes = np.bincount(votes.problem[equal], minlength=40_000)
    sums = np.bincount(votes.problem[equal], weights=votes.won[equal] - 0.55, minlength=40_000)
    pairs = (sizes * (sizes - 1)).sum()
    within = (sums**2).sum() - ((votes.won[equal] - 0.55) ** 2).sum()
    assert within / pairs / (0.55 * 0.45) == pytest.approx(0.25, abs=0.02)
