"""A step has one figure of a name: what the run logs is what its debates give when they are read."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate_rl.metrics.debates import debate_metrics
from rewards import STREAMS, RewardConfig, score_debate
from transcripts import RunStore, write_step

LOGGED = {
    "accuracy_round_0": "accuracy/round_0",
    "accuracy_last_round": "accuracy/round_1",
    "winner_accuracy": "winner/accuracy",
    "judge_accuracy": "judge/accuracy",
    **{f"reward_{name}": f"reward/{name}/mean" for name in STREAMS},
}
GRADES = st.sampled_from([True, False, "missing", None])
TABLES = st.lists(st.tuples(*[st.tuples(GRADES, GRADES)] * 3), min_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(tables=TABLES)
def test_what_is_logged_of_a_step_is_what_its_debates_give(tmp_path_factory, step_records, tables):
    """Debates in which some answers have no grade weigh less: means of means would differ."""
    folder = tmp_path_factory.mktemp("run")
    records = [
        replace(record, correct=table, rewards=score_debate(record.debate, table, RewardConfig()))
        for record, table in zip(step_records(0), tables, strict=False)
    ]
    write_step(folder / "transcripts", 0, records)
    parts = zip(*((r.debate, r.correct, r.rewards) for r in records), strict=True)
    logged = debate_metrics(*parts, evaluation="judge")
    with RunStore.open(folder) as store:
        for row in (*store.steps(), store.overall()):
            for name, metric in LOGGED.items():
                value = logged.get(metric)
                expected = None if value is None else pytest.approx(value, abs=1e-12)
                assert getattr(row, name) == expected, name
