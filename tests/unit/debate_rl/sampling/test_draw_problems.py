"""Epochs, mixtures, orders and gates: what a step draws, worked out by hand, and the laws of all draws."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from debate import Problem
from debate_rl.config import Config
from debate_rl.sampling.difficulty import Difficulty, question_checksum, write_difficulty
from debate_rl.sampling.draw_problems import Sampler, parts_of

PROBLEMS = tuple(Problem(f"p{n}", str(n), "1", level=str(1 + n // 4)) for n in range(12))
"""Four of each of the levels 1, 2 and 3."""
MIX = [{"name": name, "kind": "gsm8k", "weight": 1} for name in ("easy", "hard")]


def config(**tables):
    return Config.model_validate({"model": {"name_or_path": "none"}, "train": {"batch_size": 4}} | tables)


def sampler(count=12, set_of=None, **tables):
    return Sampler(config(**tables), SimpleNamespace(train=PROBLEMS[:count], set_of=set_of or {}))


def steps_of(one, steps, first=0):
    """Return the draws of this many steps, each finished before the next."""
    draws = []
    for step in range(first, first + steps):
        draws.append(one.draw(step).problems)
        one.finish(step)
    return draws


def drawn(count, steps, size, seed=0):
    one = sampler(count, seed=seed, train={"batch_size": size})
    return [index for draw in steps_of(one, steps) for index in draw]


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 3))
def test_every_problem_comes_once_an_epoch(count, size, seed):
    order = drawn(count, steps=2 * count, size=size, seed=seed)
    epochs = [order[i : i + count] for i in range(0, len(order) - count + 1, count)]
    assert all(Counter(epoch) == Counter(range(count)) for epoch in epochs)


def test_epochs_and_seeds_differ_and_repeat():
    first, second = drawn(12, 1, 24)[:12], drawn(12, 1, 24)[12:]
    assert first != second
    assert drawn(12, 1, 12, seed=1) != first
    assert drawn(12, 1, 12) == first


@pytest.mark.parametrize("weights", [None, [1, 1]])
def test_a_resumed_run_draws_what_the_straight_one_does(weights):
    straight, first, resumed = (mixed(weights) if weights else sampler() for _ in range(3))
    wanted = steps_of(straight, 8)
    steps_of(first, 3)
    resumed.restore(3, first.drawn, first.state())
    assert (first.state() is None) == (weights is None)
    assert steps_of(resumed, 5, first=3) == wanted[3:]


def test_later_steps_are_drawn_before_the_next_is_done_and_stay_the_same():
    one = sampler()
    ahead = [one.draw(step) for step in (0, 1, 2, 3)]
    assert [draw.problems for draw in ahead] == steps_of(one, 4)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=5).filter(sum), st.integers(1, 40), st.floats(0, 0.999))
def test_parts_are_within_one_of_their_shares_and_sum_to_all(weights, size, coin):
    shares = [weight / sum(weights) for weight in weights]
    parts = parts_of(size, shares, coin)
    assert sum(parts) == size
    assert all(abs(part - size * share) < 1 + 1e-6 for part, share in zip(parts, shares, strict=True))


def mixed(weights, **tables):
    names = {problem.id: "easy" if problem.level == "1" else "hard" for problem in PROBLEMS}
    mix = [one | {"weight": weight} for one, weight in zip(MIX, weights, strict=True)]
    return sampler(set_of=names, env={"mix": mix}, held_out={"limit": 0}, **tables)


def test_a_mixture_follows_its_weights_as_they_change():
    one = mixed([[[0, 0.7], [10, 0.2]], [[0, 0.3], [10, 0.8]]], train={"batch_size": 10})
    shares = []
    for step in range(12):
        easy = sum(index < 4 for index in one.draw(step).problems)
        figures = one.finish(step)
        assert figures["share/set/easy"] == easy / 10
        shares.append(easy)
        assert figures["weight/set/easy"] == pytest.approx(max(0.7 - 0.05 * step, 0.2))
    assert shares[0] == 7
    assert shares[10:] == [2, 2]
    assert all(abs(easy - 10 * max(0.7 - 0.05 * step, 0.2)) < 1 for step, easy in enumerate(shares))


def test_every_set_of_a_mixture_has_epochs_of_its_own():
    easy = [index for draw in steps_of(mixed([1, 1]), 8) for index in draw if index < 4]
    assert sorted(easy[:4]) == sorted(easy[4:8]) == [0, 1, 2, 3]


def test_levels_by_step():
    one = sampler(sampling={"levels": [[0, [1]], [2, [2, 3]]]})
    before, after = steps_of(one, 2), steps_of(one, 3, first=2)
    assert {index for draw in before for index in draw} == {0, 1, 2, 3}
    assert {index for draw in after for index in draw} <= set(range(4, 12))
    assert one.finish(5)["gate/levels/admitted"] == pytest.approx(2 / 3, abs=0.25)


def graded(indices, verdicts):
    """A debate of each problem, one agent and one round."""
    return [(PROBLEMS[index].id, [verdict]) for index, verdict in zip(indices, verdicts, strict=True)]


def test_what_is_remembered_of_a_problem():
    one = sampler(sampling={"towards_half": True})
    one.remember(0, graded([0, 0, 1], [True, False, None]))
    one.remember(3, graded([0, 0], [True, True]))
    memory = one.state().memory
    assert (memory["p0"].rate, memory["p0"].newest, memory["p0"].step) == (0.75, 1.0, 3)
    assert (memory["p1"].rate, memory["p1"].step) == (None, 0)


def test_sampling_towards_a_half_leaves_no_problem_out_for_good():
    one = sampler(sampling={"towards_half": True})
    one.remember(0, graded([*range(12)], [*[True] * 4, *[False] * 4, *[None] * 4]))
    for index in range(8, 12):
        one.memory[f"p{index}"] = type(one.memory["p0"])(0, 0.5, 0.5)
    draws = Counter(index for draw in steps_of(one, 300) for index in draw)
    solved, never, half = (sum(draws[i] for i in range(k, k + 4)) for k in (0, 4, 8))
    assert all(draws[index] for index in range(12))
    # Admitted with .1, .1 and 1: shares 1/12, 1/12 and 10/12 of 1200, binomial within four deviations.
    assert (solved, never) == (pytest.approx(100, abs=40), pytest.approx(100, abs=40))
    assert half == pytest.approx(1000, abs=55)


def test_memory_and_cursors_resume_exactly():
    def run(one, steps, first=0):
        draws = []
        for step in range(first, first + steps):
            draw = one.draw(step).problems
            one.remember(step, graded([*draw], [*(index % 3 == 0 for index in draw)]))
            draws.append(draw)
            one.finish(step)
        return draws

    tables = {"sampling": {"towards_half": True, "rest_steps": 1, "retry_steps": 4}}
    wanted, first, resumed = run(sampler(**tables), 12), sampler(**tables), sampler(**tables)
    run(first, 5)
    resumed.restore(5, first.drawn, first.state())
    assert run(resumed, 7, first=5) == wanted[5:]


@pytest.fixture
def measured(tmp_path):
    """Problem n solved in n of 12 samples, the rest missing for odd n."""
    path = tmp_path / "rates.jsonl"
    checksums = map(question_checksum, PROBLEMS)
    rows = [Difficulty(f"p{n}", question, n, 12, (12 - n) * (n % 2)) for n, question in enumerate(checksums)]
    write_difficulty(path, {"model": "m", "samples": 12}, rows)
    return str(path)


@pytest.mark.parametrize(
    ("order", "first"),
    [("easy_first", [11, 10, 9, 8]), ("hard_first", [0, 1, 2, 3]), ("format_first", [0, 2, 4, 6, 8, 10])],
)
def test_orders_by_what_was_measured(measured, order, first):
    one = sampler(env={"difficulty": {"path": measured, "order": order}})
    size = len(first)
    every = [index for draw in steps_of(one, 3) for index in draw]
    assert (sorted(every[:size]) if order == "format_first" else every[:size]) == first
    assert sorted(every) == list(range(12))  # all of an epoch


def test_bounds_of_measured_rates_change_with_the_step(measured):
    bounds = {"at_least": [[0, 0.5], [4, 0.0]], "at_most": [[0, 1.0], [4, 0.34]]}
    draws = steps_of(sampler(env={"difficulty": {"path": measured} | bounds}), 6)
    assert min(draws[0]) >= 6  # of 12 samples
    assert max(draws[5]) <= 4


@pytest.mark.parametrize(
    ("tables", "match"),
    [
        ({"sampling": {"levels": [[1, [1]]]}}, "must begin with step 0, got 1"),
        ({"sampling": {"measured_at_least": 0.5}}, "it is now env.difficulty.at_least"),
        ({"env": {"mix": [one | {"weight": 0} for one in MIX]}}, "all weights are 0 at step 0"),
        ({"env": {"mix": MIX}}, "held_out.kind: with env.mix"),
        ({"env": {"difficulty": {"path": "x", "at_least": 0.9, "at_most": 0.1}}}, "at_least = 0.9 is above"),
    ],
)
def test_settings_that_cannot_be_are_refused(tables, match):
    with pytest.raises(ValidationError, match=match):
        config(**tables)
