"""Agreement with the test cases of other projects, source by source. Skips without the data folder."""

import os
from pathlib import Path

import pytest

from envs import Grader

DATA = os.environ.get("DEBATE_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="set DEBATE_TEST_DATA to the folder of the data files")


@pytest.mark.slow
def test_agreement_without_a_false_positive(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import grading

    rows = grading.rows_of(Path(str(DATA)), "graded_answers")
    with Grader(workers=1, limit_s=30.0) as grader:
        found = [
            (row["id"], grading.judged(row, grader).status == "correct", row["expected"]) for row in rows
        ]
    assert [number for number, right, expected in found if right and not expected] == []
    assert sum(right == expected for _, right, expected in found) >= 0.98 * len(rows)
