"""Figures of each source, by hand: three debates of one agent and one round, two of them on one problem."""

import pytest
from msgspec.structs import replace

from debate import Problem
from debate_rl.metrics.answers import MOST, score_metrics, source_metrics, sources_of
from rewards import Rewards


def problems(*sources):
    return [Problem(str(index), "?", source=source) for index, source in enumerate(sources)]


def test_names_of_sources():
    assert sources_of(problems("gsm8k", "gsm8k")) == {}
    assert sources_of(problems("m/Counting & Probability", "m/Algebra")) == {
        "m/Counting & Probability": "counting_and_probability",
        "m/Algebra": "algebra",
    }
    assert sources_of(problems("gsm8k", "math/algebra")) == {"gsm8k": "gsm8k", "math/algebra": "math_algebra"}
    assert sources_of(problems("m", "m/x", "")) == {"m": "m", "m/x": "m_x", "": "none"}
    assert sources_of(problems("m/ü, é", "m/b")) == {"m/ü, é": "___", "m/b": "b"}
    assert len(sources_of(problems(*(f"m/{n}" for n in range(MOST))))) == MOST
    assert sources_of(problems(*(f"m/{n}" for n in range(MOST + 1)))) == {}


@pytest.fixture
def batch(step_records):
    """Two debates of source a (one problem) and one of b, with their tables (3, 2)."""
    held = [record.debate for record in step_records(0)[:3]]
    sources = ("set/a", "set/a", "set/b")
    debates = [
        replace(debate, problem=replace(debate.problem, id=source, source=source))
        for debate, source in zip(held, sources, strict=True)
    ]
    tables = [
        ((True, False), (False, False), ("missing", None)),
        ((True, True), (True, False), (False, False)),
        ((False, False),) * 3,
    ]
    return debates, tables


def test_figures_of_two_sources(batch):
    debates, tables = batch
    nothing = ((None, None, None),) * 3
    rewards = [
        Rewards((), ((1.0, 0.0), (None, None), (None, None)), nothing, nothing),
        Rewards((), ((0.5, None), (None, None), (None, None)), nothing, nothing),
        Rewards((), (), nothing, nothing),
    ]
    figures = source_metrics(debates, tables, rewards, {"set/a": "a", "set/b": "b"})
    assert figures == {
        "share/source/a": pytest.approx(2 / 3),
        "accuracy/source/a": pytest.approx(4 / 11),
        "pass@11/source/a": 1.0,
        "reward/truth/source/a": 0.5,
        "share/source/b": pytest.approx(1 / 3),
        "accuracy/source/b": 0.0,
        "pass@6/source/b": 0.0,
    }
    assert source_metrics(debates, tables, rewards, {}) == {}
    assert source_metrics([], [], [], {"set/a": "a"}) == {}


def test_a_missing_solution_has_none_of_it_right(batch):
    debates, tables = batch
    turns = tuple(replace(turn, score=0.5) if turn.id == (0, 0) else turn for turn in debates[0].turns)
    measured = replace(debates[0], turns=turns)
    assert score_metrics([measured], tables[:1]) == {"score": pytest.approx(0.5 / 5)}
    assert score_metrics(debates, tables) == {}
    told = replace(debates[2], problem=replace(debates[2].problem, kind="instructions"))
    assert score_metrics([told], tables[2:]) == {"score": 0.0}
    assert score_metrics([told], [None]) == {}
