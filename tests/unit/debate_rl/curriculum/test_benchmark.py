"""What ``benchmarks/curriculum.py`` says of runs: the seeds it plans, and its figures."""

import importlib
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(HOME / "benchmarks"))
    yield importlib.import_module("curriculum")
    sys.path.remove(str(HOME / "benchmarks"))


def test_the_seeds_that_a_gain_takes(benchmark):
    assert benchmark.seeds_needed(0.1, 0.1) == 13  # the tables of a t test: an effect of 1 at a power of .9
    assert benchmark.seeds_needed(0.1, 0.01) == 5  # never fewer
    assert "takes 5 seeds at a power of 0.9; these are 3" in benchmark.planned(3)


def test_a_seed_counts_once_however_many_runs_it_has(benchmark):
    runs = {
        (1, 0): {"start": 0.0, "curriculum": 0.6, "direct": 0.2, "mixed": 0.5},
        (1, 1): {"start": 0.0, "curriculum": 0.8, "direct": 0.2},
        (2, 0): {"start": 0.0, "curriculum": 0.4, "direct": 0.1, "mixed": 0.5},
    }
    found = {figure.name: figure for figure in benchmark.figures_of(runs)}
    assert found["curriculum_gain"].value == pytest.approx(0.4)  # of .5, the mean of .4 and .6, and .3
    assert found["curriculum_gain, lowest of all runs"].value == pytest.approx(0.3)
    assert found["curriculum_minus_mixed"].value == pytest.approx(0.0)  # of .1 and -.1
    assert found["curriculum/seed_1-jitter_1"].value == 0.8
    assert found["direct/accuracy"].n == 2
