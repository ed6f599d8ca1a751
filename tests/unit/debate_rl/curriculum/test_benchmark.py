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
    def run(curriculum, direct):
        return {"start": 0.0, "curriculum": curriculum, "direct": direct, "mixed": 0.5}

    runs = {1: [run(0.6, 0.2), run(0.8, 0.2)], 2: [run(0.4, 0.1)]}  # gains .4 and .6, and .3
    found = {figure.name: figure for figure in benchmark.figures_of(runs)}
    assert found["curriculum_gain"].value == pytest.approx(0.4)  # the mean of .5 and .3
    assert found["lowest_gain"].value == pytest.approx(0.3)
    assert found["curriculum_minus_mixed"].value == pytest.approx(0.05)  # of .2 and -.1
    assert found["jitter_sd"].value == pytest.approx(0.02**0.5)  # of .4 and .6 alone
    seed = found["curriculum/seed_1"]
    assert (seed.value, seed.low, seed.high, seed.n) == (pytest.approx(0.7), 0.6, 0.8, 2)
    assert found["direct/accuracy"].n == 2
