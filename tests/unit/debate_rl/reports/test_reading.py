"""Files of a run as they come: foreign, hostile."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.reports.charts import thinned
from debate_rl.reports.run import load_run, read_config


def test_nothing_deep_or_foreign_raises(tmp_path):
    (tmp_path / "config.toml").write_text("a = " + "[" * 5000)
    assert read_config(tmp_path / "config.toml")[1]
    (tmp_path / "config.toml").write_bytes(b"a = '\xff'")
    assert "is not TOML" in read_config(tmp_path / "config.toml")[1][0]
    assert read_config(tmp_path / "none.toml")[1] == ["no none.toml: settings are not known"]
    (tmp_path / "run.json").write_text("[1]")
    assert load_run(tmp_path).info == {}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 40))
def test_thinned_curves_keep_their_range_and_order(values, most):
    x, y = thinned(np.arange(len(values)), np.array(values), most)
    assert len(x) == len(y) == min(most, len(values))
    assert list(x) == sorted(x)
    assert min(values) - 1e-6 <= min(y) <= max(y) <= max(values) + 1e-6
