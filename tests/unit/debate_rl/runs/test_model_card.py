"""The facts in the README of exported weights, of runs that anybody may have made."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.runs.export import LONGEST, _provenance

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
    assert all(line.startswith("- ") and len(line.splitlines()) == 1 for line in lines)


@pytest.mark.parametrize("seed", ["9" * 100_000, ["x" * 100_000]])
def test_a_fact_has_an_end(tmp_path, seed):
    (tmp_path / "run.json").write_text(json.dumps({"seed": seed}))
    [line] = _provenance(tmp_path / "run.json")
    assert len(line) < LONGEST + 20
