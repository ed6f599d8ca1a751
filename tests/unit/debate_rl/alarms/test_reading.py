"""metrics.jsonl as it comes: torn, doubled, foreign, hostile; settings; parts on one axis."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.alarms.curves import joined, parsed, read_metrics
from debate_rl.alarms.settings import flat


@pytest.fixture
def metrics(tmp_path):
    def write(*lines):
        path = tmp_path / "metrics.jsonl"
        written = (line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
        path.write_bytes(b"".join(written))
        return read_metrics(path)

    return write


def test_columns_are_by_step_and_missing_values_are_nan(metrics):
    curves, notes = metrics({"step": 0, "loss": 1, "mine": 3}, {"step": 1}, {"step": 2, "loss": 0.5})
    assert curves.steps.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(curves.dense("loss"), [1.0, np.nan, 0.5])
    assert (set(curves.values), notes) == ({"step", "loss", "mine"}, [])


def test_the_later_line_of_a_step_replaces_the_earlier_one_whole(metrics):
    lines = [{"step": step, "loss": loss} for step, loss in ((0, 1.0), (1, 2.0), (2, 3.0), (1, 4.0))]
    lines[1]["kl_mean"] = 9.0
    curves, notes = metrics(*lines)
    assert curves.of("loss")[1].tolist() == [1.0, 4.0, 3.0]
    assert len(curves.of("kl_mean")[1]) == 0
    assert notes == ["metrics.jsonl: 1 lines repeat a step; the later line of a step counts"]


def test_null_nan_and_huge_numbers_are_broken_values(metrics):
    lines = [
        {"step": 0, "loss": None, "nonfinite": ["loss"]},
        b'{"step": 1, "loss": NaN}\n',
        b'{"step": 2, "loss": 1e999, "kl_mean": ' + b"9" * 400 + b"}\n",
    ]
    curves, notes = metrics(*lines)
    assert (curves.broken, notes) == ({"loss": (0, 1, 2), "kl_mean": (2,)}, [])


def test_what_is_no_line_of_ours_is_named_by_line_and_value(metrics):
    curves, notes = metrics({"step": 0, "loss": "<b>"}, {"step": -1}, {"step": True}, {}, [], b'{"step": 4')
    assert "loss" not in curves.values
    [note] = notes
    assert "5 lines left out (first in line 2: step is -1, not a whole number from 0)" in note


def test_a_torn_last_line_is_told(metrics):
    curves, notes = metrics({"step": 0, "loss": 1.0}, b'{"step": 1, "lo')
    assert len(curves.steps) == 1
    assert "the line is incomplete" in notes[0]


def test_nothing_deep_raises():
    assert parsed(b"[" * 100_000) is None


def test_nested_settings_are_flat_in_their_order():
    assert flat({"b": {"x": {"y": 1}, "z": 2}, "a": 3}) == {"b.x.y": 1, "b.z": 2, "a": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


FIGURES = st.sampled_from(("step", "loss", "accuracy", "reward/peer/mean", "other"))


@given(st.lists(st.dictionaries(FIGURES, JSON) | st.binary(max_size=20), max_size=8))
def test_any_lines_are_read(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("any") / "metrics.jsonl"
    path.write_bytes(b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines))
    curves, _ = read_metrics(path)
    assert (np.diff(curves.steps) > 0).all()
    assert all(len(column) == len(curves.steps) for column in curves.values.values())


def test_parts_are_joined_on_all_steps_and_the_first_names_win(make_curves):
    one, other = make_curves(accuracy=[0.1, 0.2]), make_curves(accuracy=[9.0] * 4, votes__ties=[1.0] * 4)
    both = joined([one, other])
    np.testing.assert_array_equal(both.dense("accuracy"), [0.1, 0.2, np.nan, np.nan])
    assert both.dense("votes/ties").tolist() == [1.0] * 4
