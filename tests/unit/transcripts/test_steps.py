from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewards import STREAMS
from transcripts import RunStore, StepRow


def expected(rows, step):
    """The figures of some rows of a list."""

    facts = [row.facts for row in rows]

    def mean(values):
        known = list(values)
        return fmean(known) if known else None

    def weighed(name, count):
        known = [(getattr(fact, name), getattr(fact, count)) for fact in facts if getattr(fact, count)]
        return sum(mean * n for mean, n in known) / sum(n for _, n in known) if known else None

    graded = [row.winner == "right" for row in rows if row.winner in ("right", "wrong")]
    return {
        "step": step,
        "debates": len(rows),
        "winner_accuracy": mean(graded),
        "cycles": sum(fact.cycle for fact in facts),
        **{
            name: sum(getattr(f, name) for f in facts)
            for name in ("votes", "malformed", "truncated", "tokens")
        },
        **{
            name: weighed(name, count)
            for name, count in (
                ("accuracy_round_0", "graded_round_0"),
                ("accuracy_last_round", "graded_last_round"),
                ("judge_accuracy", "decidable_votes"),
                *((f"reward_{stream}", f"reward_{stream}_n") for stream in STREAMS),
            )
        },
    }


def assert_same(row: StepRow, rows):
    for name, value in expected(rows, row.step).items():
        assert getattr(row, name) == (value if value is None else pytest.approx(value)), name


FILTERS = (
    "",
    "step:1..",
    "winner:right",
    "winner:none",
    "judge.accuracy:<1 OR votes:0",
    "problem:sum/3",
    'text:"boxed"',
    '-text:"boxed 5" step:>0',
)


@pytest.mark.parametrize("filter", FILTERS)
def test_steps_have_the_figures_of_their_debates(run, filter):
    with RunStore.open(run) as store:
        rows = store.debates(filter, limit=10_000)
        steps = store.steps(filter)
        assert [row.step for row in steps] == sorted({row.step for row in rows})
        for row in steps:
            assert_same(row, [one for one in rows if one.step == row.step])
        overall = store.overall(filter)
        assert overall.step is None
        assert_same(overall, rows)
        assert overall.debates == store.count(filter)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(first=st.integers(-1, 4), last=st.integers(-1, 4), votes=st.integers(0, 12))
def test_the_steps_of_any_filter_add_up(run, first, last, votes):
    filter = f"step:{first}..{last} votes:<={votes}"
    with RunStore.open(run) as store:
        steps, overall = store.steps(filter), store.overall(filter)
    assert sum(row.debates for row in steps) == overall.debates
    assert sum(row.votes for row in steps) == overall.votes
