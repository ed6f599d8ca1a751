"""The card of weights, of runs that anybody may have made."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.runs.model_card import LONGEST, _held_out, _provenance, _training

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\n# forged\n\x1b[2J"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
START = st.fixed_dictionaries(
    {}, optional={"versions": ODD, "commit": ODD, "hardware": ODD | st.fixed_dictionaries({"gpus": ODD})}
)
FACTS = ODD | st.fixed_dictionaries(
    {}, optional={"starts": ODD | st.lists(START | ODD, max_size=2), "data": ODD, "seed": ODD}
)


@given(FACTS)
def test_what_a_run_says_of_itself_is_a_line_each_or_one_error(tmp_path_factory, facts):
    path = tmp_path_factory.getbasetemp() / "run.json"
    path.write_text(json.dumps(facts))
    try:
        lines = list(_provenance(path))
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    assert lines[-1] == ""
    assert all(line.startswith("- ") and len(line.splitlines()) == 1 for line in lines[:-1])


def test_the_figures_are_those_of_the_weights():
    """The newest evaluation, one agent alone and judges too, and the last third of the steps."""
    rows = [{"step": float(step), "accuracy": step / 10, "judge/accuracy": None} for step in range(7)]
    names = ("direct/accuracy", "debate/winner/accuracy", "judge/accuracy")
    figures = {f"eval/{name}": (index + 1) / 5 for index, name in enumerate(names)}
    figures |= {f"{name}{end}": value for name, value in figures.items() for end in ("/low", "/high")}
    card = [*_held_out([*rows, rows[-1] | figures]), *_training(rows)]
    assert "| direct accuracy | 0.200 | 0.200 to 0.200 |" in card
    assert "| judge accuracy | 0.600 | 0.600 to 0.600 |" in card
    assert "On training problems, mean of the last third of 7 steps; 95% intervals over steps:" in card
    [accuracy] = [line for line in card if line.startswith("| accuracy")]
    assert accuracy.startswith("| accuracy | 0.550 |")  # of .5 and .6
    assert [*_training([])] == []


@pytest.mark.parametrize("seed", ["9" * 100_000, ["x" * 100_000]])
def test_a_fact_has_an_end(tmp_path, seed):
    (tmp_path / "run.json").write_text(json.dumps({"seed": seed}))
    [line, _] = _provenance(tmp_path / "run.json")
    assert len(line) < LONGEST + 20
